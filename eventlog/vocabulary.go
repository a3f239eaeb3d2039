package eventlog

import (
	"errors"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// typeInfo is what the log knows of an event type (docs/FORMAT.md, chapter 7).
type typeInfo struct {
	name    Type
	version int // the highest payload version
	scope   Scope
	fixed   bool     // cannot be redacted
	control bool     // says who runs the session
	kept    []string // members that redaction leaves, in the table's order

	// parse decodes data as the payload of t, a version of this type. It does
	// not apply the payload's rules.
	parse func(t Type, data jsontext.Value) (Payload, error)
}

// vocabulary holds every known type by its name. It is not changed once filled.
var vocabulary = buildVocabulary()

// Known reports whether t is of the vocabulary, in any version.
func (t Type) Known() bool {
	_, known := vocabulary[t.Name()]
	return known
}

// CheckVersion answers a *VersionError for a type of the vocabulary whose
// payload version is higher than this program knows.
func (t Type) CheckVersion() error {
	name, version, _ := t.split()
	if info, known := vocabulary[name]; known && version > info.version {
		return &VersionError{What: string(name), Got: version, Max: info.version}
	}
	return nil
}

// Scope says where events of type t count. Unknown types are PathScope.
func (t Type) Scope() Scope {
	if info, known := vocabulary[t.Name()]; known {
		return info.scope
	}
	return PathScope
}

// Types lists the vocabulary, sorted.
func Types() []Type { return slices.Sorted(maps.Keys(vocabulary)) }

func buildVocabulary() map[Type]*typeInfo {
	types := map[Type]*typeInfo{}
	for _, table := range [][]*typeInfo{conversationTypes(), lifecycleTypes(), effectTypes(), childTypeInfos(), stateTypes(), upkeepTypes()} {
		for _, info := range table {
			info.version = 1
			types[info.name] = info
		}
	}
	return types
}

func conversationTypes() []*typeInfo {
	return []*typeInfo{
		{name: MessageAdded, parse: parseAs[Message],
			kept: []string{"role", "provider", "model", "response_id", "group", "usage", "calls", "results"}},
		{name: ContextAdded, parse: parseAs[ContextEntry], kept: []string{"kind", "placement"}},
		{name: CompactionTriggered, parse: parseAs[Compaction], kept: []string{"strategy", "trigger", "covers", "cleared",
			"replace", "tokens_before", "tokens_after", "max_tokens", "entries"}},
		{name: ExternalInput, scope: SessionScope, parse: parseAs[External], kept: []string{"source", "input_id", "kind"}},
		{name: HandoffMade, parse: parseAs[Handoff], kept: []string{"from_agent", "to_agent"}},
	}
}

func lifecycleTypes() []*typeInfo {
	return []*typeInfo{
		{name: SessionStarted, scope: SessionScope, parse: parseState[Session], kept: []string{"agent", "parent"}},
		{name: SessionUpdated, scope: SessionScope, parse: parseState[Session], kept: []string{"agent"}},
		{name: TurnStarted, parse: parseAs[TurnStart], kept: []string{"agent", "index", "snapshot_id", "input_id"}},
		{name: TurnCompleted, scope: SessionScope, parse: parseAs[TurnCompletion],
			kept: []string{"turn_id", "status", "stop_reason", "steps", "usage", "duration_ms"}},
		{name: TurnHibernated, parse: parseAs[TurnHibernation], kept: []string{"turn_id", "cursor", "snapshot_id"}},
		{name: TurnResumed, scope: SessionScope, parse: parseAs[TurnResumption],
			kept: []string{"turn_id", "cursor_id", "snapshot_id"}},
		{name: StepStarted, parse: parseAs[StepStart],
			kept: []string{"step", "turn_id", "agent", "provider", "model", "prompt_cache", "request_digest"}},
		{name: StepCompleted, parse: parseAs[StepCompletion],
			kept: []string{"step", "turn_id", "agent", "provider", "model", "response_id", "stop_reason", "usage"}},
		{name: ToolStarted, parse: parseAs[ToolStart], kept: []string{"call_id", "name", "idempotency_key"}},
		{name: ToolCompleted, parse: parseAs[ToolCompletion],
			kept: []string{"call_id", "name", "idempotency_key", "is_error", "duration_ms"}},
		{name: ApprovalRequested, scope: SessionScope, parse: parseAs[ApprovalRequest], kept: []string{"interrupt_id", "effect_id",
			"call_id", "name", "arguments_digest", "boundary", "operation", "expires_at"}},
		{name: ApprovalResolved, scope: SessionScope, parse: parseAs[ApprovalResolution],
			kept: []string{"interrupt_id", "effect_id", "arguments_digest", "decision"}},
		{name: ApprovalCanceled, scope: SessionScope, parse: parseAs[ApprovalCancelation], kept: []string{"interrupt_id"}},
		{name: WaitStarted, parse: parseState[Wait], kept: []string{"wait_id", "external_id", "until"}},
		{name: WaitResolved, parse: parseState[Wait], kept: []string{"wait_id", "external_id"}},
		{name: EscalationRetried, parse: parseAs[Escalation], kept: []string{"agent", "scope", "attempt"}},
		{name: OpLogged, parse: parseAs[Op], kept: []string{"op_id", "parent_id", "kind", "level"}},
	}
}

func effectTypes() []*typeInfo {
	return []*typeInfo{
		{name: RunClaimed, scope: SessionScope, fixed: true, control: true, parse: parseAs[RunClaim]},
		{name: RunReleased, scope: SessionScope, fixed: true, control: true, parse: parseAs[RunRelease]},
		{name: AbortRequested, scope: SessionScope, fixed: true, control: true, parse: parseAs[Abort]},
		{name: EffectIntended, scope: SessionScope, parse: parseAs[EffectIntent],
			kept: []string{"key", "turn_id", "ordinal", "kind", "name", "class", "attempt", "arguments_digest"}},
		{name: EffectCompleted, scope: SessionScope, parse: parseAs[EffectCompletion],
			kept: []string{"key", "turn_id", "ordinal", "attempt", "usage"}},
	}
}

func childTypeInfos() (infos []*typeInfo) {
	kept := []string{"child_id", "child_session_id", "parent_event_id", "call_id", "agent", "mode", "shared_prefix_key",
		"artifact_ids", "episode_id", "usage"}
	for _, t := range childTypes {
		infos = append(infos, &typeInfo{name: t, scope: SessionScope, parse: parseState[Child], kept: kept})
	}
	return infos
}

func stateTypes() []*typeInfo {
	return []*typeInfo{
		{name: ArtifactRecorded, parse: parseAs[Artifact],
			kept: []string{"artifact_id", "kind", "media_type", "child_id", "session_id"}},
		{name: CustomPatched, parse: parseAs[CustomPatch], kept: []string{"name", "state_version"}},
		{name: ProjectionSnapshotted, parse: parseAs[Snapshot], kept: []string{"projection", "version", "snapshot_id",
			"parent_snapshot_id", "state_digest", "body_digest", "index", "turn_index", "trigger", "reason", "seq", "hash"}},
	}
}

func upkeepTypes() []*typeInfo {
	return []*typeInfo{
		{name: SessionForked, scope: TreeScope, fixed: true, parse: parseAs[Fork]},
		{name: HeadMoved, scope: TreeScope, fixed: true, parse: parseAs[HeadMove]},
		{name: Redacted, scope: SessionScope, fixed: true, parse: parseAs[RedactionNote]},
		{name: AccountingFlushed, scope: SessionScope, parse: parseAs[AccountingFlush],
			kept: []string{"ledger", "through", "total"}},
		{name: Lost, fixed: true, parse: parseAs[Loss]},
	}
}

func parseAs[T Payload](_ Type, data jsontext.Value) (Payload, error) {
	var p T
	err := parseInto(data, &p)
	return p, err
}

// parseState is parseAs for payloads whose state stands in the type.
func parseState[T Payload, P interface {
	*T
	stateFrom(t Type)
}](t Type, data jsontext.Value) (Payload, error) {
	var p T
	err := parseInto(data, &p)
	P(&p).stateFrom(t)
	return p, err
}

// parseInto decodes an object; null, which decodes into anything, is none.
func parseInto(data jsontext.Value, payload any) error {
	if data.Kind() == jsontext.KindNull {
		return errNoObject
	}
	return json.Unmarshal(data, payload, strictIDs)
}

var errNoObject = errors.New("not an object")

// strictIDs refuses ids that are not ULIDs; the type's own decoding takes any
// 26 characters.
var strictIDs = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, id *ulid.ULID) error {
	var text string
	if err := json.UnmarshalDecode(dec, &text); err != nil {
		return err
	}
	parsed, err := ulid.ParseStrict(text)
	*id = parsed
	return err
}))

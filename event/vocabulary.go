package event

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/rawjson"
)

// typeInfo describes an event type (docs/FORMAT.md, chapter 7).
type typeInfo struct {
	name    Type
	version int // the highest payload version
	scope   Scope
	control bool     // is decoded from what redaction kept, and is never spilled
	kept    []string // members that redaction keeps, in the table's order
	goType  reflect.Type

	// decode reads data as the payload of t, a version of this type. It does not
	// apply the payload's rules.
	decode func(t Type, data jsontext.Value) (Payload, error)
}

// vocabulary holds every known type by its name. It never changes.
var vocabulary = buildVocabulary()

// Known reports whether t is in the vocabulary, in any version.
func (t Type) Known() bool {
	_, known := vocabulary[t.Name()]
	return known
}

// Erasable reports whether redaction may erase the content of events of type t. Only
// lost events have none.
func (t Type) Erasable() bool { return t.Name() != Lost }

// Spillable reports whether the data of events of type t may be in a blob. Readers
// need control and tree events without a blob.
func (t Type) Spillable() bool { return !t.control() }

// control reports whether t is a control or tree type, or lost. A redacted event of
// such a type is decoded from the members that redaction kept.
func (t Type) control() bool {
	info, known := vocabulary[t.Name()]
	return known && info.control
}

// CheckVersion returns a *VersionError for a known type with a newer payload version
// than this program knows.
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

// typeOf describes a type with payload T.
func typeOf[T Payload](name Type, scope Scope, kept ...string) *typeInfo {
	return &typeInfo{
		name: name, scope: scope, kept: kept, goType: reflect.TypeFor[T](),
		decode: func(t Type, data jsontext.Value) (Payload, error) {
			var p T
			err := decodeStrictly(data, &p)
			setType(&p, t)
			return p, err
		},
	}
}

// controlType describes a control or tree type.
func controlType[T Payload](name Type, scope Scope, kept ...string) *typeInfo {
	info := typeOf[T](name, scope, kept...)
	info.control = true
	return info
}

func conversationTypes() []*typeInfo {
	return []*typeInfo{
		typeOf[Message](MessageAdded, PathScope, "role", "provider", "model", "response_id", "group", "input_id", "usage", "calls", "results"),
		typeOf[ContextEntry](ContextAdded, PathScope, "kind", "placement"),
		typeOf[Compaction](CompactionTriggered, PathScope, "strategy", "trigger", "covers", "cleared",
			"replace", "tokens_before", "tokens_after", "max_tokens", "entries"),
		typeOf[External](ExternalInput, SessionScope, "source", "input_id", "kind", "store"),
		typeOf[Handoff](HandoffMade, PathScope, "from_agent", "to_agent"),
	}
}

func lifecycleTypes() []*typeInfo {
	return []*typeInfo{
		typeOf[Session](SessionStarted, SessionScope, "agent", "source", "parent", "state"),
		typeOf[Session](SessionUpdated, SessionScope, "agent"),
		typeOf[TurnStart](TurnStarted, PathScope, "agent", "index", "snapshot_id", "input_id", "version"),
		typeOf[TurnCompletion](TurnCompleted, SessionScope, "turn_id", "status", "stop_reason", "steps", "usage", "code", "duration_ms"),
		typeOf[TurnHibernation](TurnHibernated, PathScope, "turn_id", "cursor", "snapshot_id"),
		typeOf[TurnResumption](TurnResumed, SessionScope, "turn_id", "cursor_id", "snapshot_id"),
		typeOf[StepStart](StepStarted, PathScope, "step", "turn_id", "agent", "provider", "model"),
		typeOf[StepCompletion](StepCompleted, PathScope, "step", "turn_id", "agent", "provider", "model", "response_id", "stop_reason", "usage"),
		typeOf[ToolStart](ToolStarted, PathScope, "call_id", "name", "idempotency_key"),
		typeOf[ToolCompletion](ToolCompleted, PathScope, "call_id", "name", "idempotency_key", "is_error", "duration_ms"),
		typeOf[ApprovalRequest](ApprovalRequested, SessionScope, "interrupt_id", "effect_id",
			"call_id", "name", "turn_id", "cursor_id", "ordinal", "boundary", "operation", "expires_at", "lapse"),
		typeOf[ApprovalResolution](ApprovalResolved, SessionScope, "interrupt_id", "effect_id", "decision"),
		typeOf[ApprovalCancelation](ApprovalCanceled, SessionScope, "interrupt_id"),
		typeOf[Wait](WaitStarted, PathScope, "wait_id", "external_id", "turn_id", "cursor_id", "ordinal", "until"),
		typeOf[Wait](WaitResolved, PathScope, "wait_id", "external_id", "outcome"),
		typeOf[Escalation](EscalationRetried, PathScope, "agent", "scope", "attempt"),
		typeOf[Op](OpLogged, PathScope, "op_id", "parent_id", "kind", "level"),
	}
}

func effectTypes() []*typeInfo {
	return []*typeInfo{
		controlType[RunClaim](RunClaimed, SessionScope, "epoch", "runner", "lease", "store"),
		controlType[RunRelease](RunReleased, SessionScope, "epoch"),
		controlType[Abort](AbortRequested, SessionScope, "turn_id"),
		typeOf[EffectIntent](EffectIntended, SessionScope, "key", "turn_id", "ordinal", "kind", "name", "class", "attempt", "interrupt_id"),
		typeOf[EffectCompletion](EffectCompleted, SessionScope, "key", "turn_id", "ordinal", "attempt", "retry_at", "event_ids", "usage"),
	}
}

func childTypeInfos() (infos []*typeInfo) {
	for _, t := range childTypes {
		infos = append(infos, typeOf[Child](t, SessionScope, "child_id", "child_session_id", "parent_event_id", "call_id", "agent",
			"mode", "interrupt_id", "shared_prefix_key", "artifact_ids", "episode_id", "usage"))
	}
	return infos
}

func stateTypes() []*typeInfo {
	return []*typeInfo{
		typeOf[Artifact](ArtifactRecorded, PathScope, "artifact_id", "kind", "media_type", "child_id", "session_id", "removed"),
		typeOf[CustomPatch](CustomPatched, PathScope, "name", "state_version"),
		typeOf[Snapshot](ProjectionSnapshotted, PathScope, "projection", "version", "snapshot_id",
			"parent_snapshot_id", "index", "turn_index", "trigger", "reason", "seq", "hash"),
	}
}

func upkeepTypes() []*typeInfo {
	return []*typeInfo{
		controlType[Fork](SessionForked, TreeScope, "parent", "seq", "event_id", "hash", "child"),
		controlType[HeadMove](HeadMoved, TreeScope, "to"),
		controlType[RedactionNote](Redacted, SessionScope, "seqs", "kept"),
		controlType[StoreNote](removed, SessionScope, "sessions"),
		controlType[StoreNote](retired, SessionScope, "sessions"),
		controlType[StoreNote](noteErased, SessionScope, "sessions"),
		controlType[StoreNote](held, SessionScope, "sessions"),
		controlType[StoreNote](released, SessionScope, "holds"),
		typeOf[AccountingFlush](AccountingFlushed, SessionScope, "ledger", "through", "total"),
		controlType[Loss](Lost, PathScope),
	}
}

// decodeStrictly decodes an object. It refuses null, which decodes into anything,
// and ids that are no ULIDs, which the id's own decoding accepts.
func decodeStrictly(data jsontext.Value, payload any) error {
	if data.Kind() == jsontext.KindNull {
		return errNoObject
	}
	if m, ok := payload.(*Message); ok { // it has no ULIDs
		return unmarshalMessage(data, m)
	}
	return rawjson.Unmarshal(data, payload, strictIDs)
}

var errNoObject = errors.New("not an object")

var strictIDs = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, id *ulid.ULID) error {
	var text string
	if err := json.UnmarshalDecode(dec, &text); err != nil {
		return err
	}
	parsed, err := ulid.ParseStrict(text)
	*id = parsed
	return err
}))

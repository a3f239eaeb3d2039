package event

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	sampleID     = "01K5ZP3Z0G5R8QJ2W6V7X8Y9ZA"
	sampleDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	sampleHash   = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	sampleUsage  = `"usage":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5,"extra":{"tier":"x"}}`
	sampleParts  = `[{"type":"text","text":"hi"},{"type":"hologram","b":2,"a":[1.50]}]`
	sampleChild  = `{"child_id":"c","child_session_id":"s","parent_event_id":"ID","call_id":"1","agent":"a","mode":"fork","interrupt_id":"i","task":"t",` +
		`"context":"x","shared_prefix_key":"k","status":"s","message":"m","reason":"r","error":"e","summary":"s",` +
		`"artifact_ids":["a"],"episode_id":"e",USAGE,"note":"n","extra":{"z":1}}`
)

// samples holds the data of every type; the samples of a type together have
// every member.
var samples = map[Type][]string{
	MessageAdded: {`{"role":"assistant","provider":"p","model":"m","response_id":"r","stop_reason":"s","group":"g","input_id":"i",USAGE,"parts":PARTS,"extra":{"z":1}}`},
	ContextAdded: {`{"kind":"k","placement":"prefix","parts":PARTS,"extra":{"z":1}}`},
	CompactionTriggered: {`{"strategy":"s","trigger":"t","covers":{"from":1,"to":9},"entries":[{"seq":3},{"message":{"role":"developer","parts":PARTS}}],` +
		`"cleared":["1"],"replace":true,"summary":"s","read_files":["a"],"modified_files":["b"],"tokens_before":9,"tokens_after":3,"max_tokens":5,"extra":{"z":1}}`},
	ExternalInput: {`{"source":"s","input_id":"i","kind":"k","steer":true,"store":"t","messages":[{"role":"user","parts":PARTS}],"value":9007199254740993,"extra":{"z":1}}`},
	HandoffMade:   {`{"from_agent":"a","to_agent":"b","reason":"r","input":null,"extra":{"z":1}}`},

	SessionStarted: {`{"title":"t","agent":"a","cwd":"/","labels":{"a":"1","b":"2"},"source":{"format":"f","version":"v","path":"p","session_id":"s"},` +
		`"parent":{"session_id":"s","seq":3,"event_id":"ID","call_id":"1"},"state":true,"extra":{"z":1}}`},
	SessionUpdated: {`{"title":"t","agent":"a","cwd":"/","labels":{"a":null,"b":"2"},"source":{"format":"f"},"extra":{"z":1}}`},
	TurnStarted:    {`{"agent":"a","index":0,"snapshot_id":"s","input_id":"i","version":"v","extra":{"z":1}}`},
	TurnCompleted: {`{"turn_id":"ID","status":"failed","stop_reason":"r","steps":2,USAGE,"code":"c","error":"e","duration_ms":12,` +
		`"extra":{"z":1}}`},
	TurnHibernated: {`{"turn_id":"ID","cursor":{"id":"c","kind":"review","effect_id":"e","effect_kind":"tool","interrupt_id":"i","wait_ids":["v","w"],"boundary":"b","operation":"o","ordinal":"0.2","loop":2},` +
		`"snapshot_id":"s","reason":"r","extra":{"z":1}}`},
	TurnResumed: {`{"turn_id":"ID","cursor_id":"c","snapshot_id":"s","answer":{"\u0061":1.0},"extra":{"z":1}}`},
	StepStarted: {`{"step":0,"turn_id":"ID","agent":"a","provider":"p","model":"m","prompt_cache":{"prefix_hash":"h","tool_schema_hash":"h"},` +
		`"request_digest":"DIGEST","seen":3,"extra":{"z":1}}`},
	StepCompleted: {`{"step":1,"turn_id":"ID","agent":"a","provider":"p","model":"m","response_id":"r","stop_reason":"s",USAGE,"error":"e","extra":{"z":1}}`},
	ToolStarted:   {`{"call_id":"1","name":"n","arguments":{"b":1,"a":2e0},"idempotency_key":"k","extra":{"z":1}}`},
	ToolCompleted: {`{"call_id":"1","name":"n","idempotency_key":"k","content":PARTS,"is_error":true,"error":"e","duration_ms":3,"extra":{"z":1}}`},
	ApprovalRequested: {`{"interrupt_id":"i","effect_id":"e","call_id":"1","name":"n","turn_id":"ID","cursor_id":"c","ordinal":"0.2","nonce":"0123456789abcdef0123456789abcdef","arguments_digest":"DIGEST","boundary":"b","operation":"o",` +
		`"prompt":"p","expires_at":"2026-11-20T19:05:00.5Z","lapse":"deny","arguments":{"n":1},"detail":[1],"extra":{"z":1}}`},
	ApprovalResolved: {`{"interrupt_id":"i","effect_id":"e","arguments_digest":"DIGEST","decision":"denied","by":"b","reason":"r","arguments":{"n":1},"answer":"a","extra":{"z":1}}`},
	ApprovalCanceled: {`{"interrupt_id":"i","reason":"r","extra":{"z":1}}`},
	WaitStarted:      {`{"wait_id":"w","external_id":"x","turn_id":"ID","cursor_id":"c","ordinal":"1","reason":"r","until":"2026-11-20T19:05:00Z","extra":{"z":1}}`},
	WaitResolved:     {`{"wait_id":"w","external_id":"x","reason":"r","outcome":"expired","by":"b","value":0.10,"extra":{"z":1}}`},
	EscalationRetried: {
		`{"agent":"a","scope":"s","target":"t","attempt":2,"error":"e","extra":{"z":1}}`},
	OpLogged: {`{"op_id":"o","parent_id":"p","kind":"llm","level":"info","text":"t","value":{"a":[]},"body":{"blob":"DIGEST","bytes":3},"extra":{"z":1}}`},

	RunClaimed:     {`{"epoch":1,"runner":"r","lease":"l","store":"s","extra":{"z":1}}`},
	RunReleased:    {`{"epoch":1,"reason":"r","extra":{"z":1}}`},
	AbortRequested: {`{"turn_id":"ID","by":"b","reason":"r","extra":{"z":1}}`},
	EffectIntended: {`{"key":"k","turn_id":"ID","ordinal":"0.2","kind":"tool","name":"n","class":"unsafe_once","attempt":1,"interrupt_id":"i","nonce":"0123456789abcdef0123456789abcdef","arguments_digest":"DIGEST",` +
		`"arguments":{"n":9007199254740993},"extra":{"z":1}}`},
	EffectCompleted: {
		`{"key":"k","turn_id":"ID","ordinal":"0.2","attempt":1,"retry_at":"2026-11-20T19:05:00Z","event_ids":["ID"],"result":null,USAGE,"by":"b","reason":"r","extra":{"z":1}}`,
		`{"key":"k","error":{"code":"c","message":"m"}}`},

	ChildRequested.Type():  {sampleChild},
	ChildStarted.Type():    {sampleChild},
	ChildProgressed.Type(): {sampleChild},
	ChildBlocked.Type():    {sampleChild},
	ChildCompleted.Type():  {sampleChild},
	ChildFailed.Type():     {sampleChild},
	ChildCanceled.Type():   {sampleChild},
	ChildMerged.Type():     {sampleChild},

	ArtifactRecorded: {`{"artifact_id":"a","name":"n","kind":"k","media_type":"text/plain","description":"d","body":{"blob":"DIGEST","bytes":3},"parts":PARTS,` +
		`"uri":"u","child_id":"c","session_id":"s","removed":true,"extra":{"z":1}}`},
	CustomPatched: {`{"name":"n","state_version":2,"patch":[{"op":"add","path":"/a","value":1.0},{"op":"move","from":"/a","path":"/b"},{"op":"remove","path":""}],"extra":{"z":1}}`},
	ProjectionSnapshotted: {
		`{"projection":"p","version":2,"snapshot_id":"s","parent_snapshot_id":"q","state_digest":"DIGEST","body_digest":"DIGEST","index":0,"turn_index":0,` +
			`"trigger":"t","reason":"r","seq":4,"hash":"HASH","state":{"b":1,"a":1.0},"extra":{"z":1}}`,
		`{"projection":"p","index":1,"turn_index":2,"seq":3,"body":{"blob":"DIGEST","bytes":0}}`,
		`{"projection":"p","index":1,"turn_index":2,"seq":3}`},
	SessionForked: {
		`{"parent":"s","seq":4,"event_id":"ID","hash":"HASH","label":"l","reason":"r","child":{"child_id":"c","call_id":"1"},"extra":{"z":1}}`,
		`{"parent":"s","seq":0,"hash":"` + Hash{}.String() + `"}`},
	HeadMoved:         {`{"to":0,"label":"l","reason":"r","extra":{"z":1}}`},
	removed:           {`{"sessions":["S.1"],"by":"b","reason":"r","extra":{"z":1}}`},
	retired:           {`{"sessions":["S.1","S.2"],"by":"b","reason":"r","extra":{"z":1}}`},
	noteErased:        {`{"sessions":["S.1"],"by":"b","reason":"r","extra":{"z":1}}`},
	held:              {`{"sessions":["S.1"],"by":"b","reason":"r","extra":{"z":1}}`},
	released:          {`{"holds":["ID"],"by":"b","reason":"r","extra":{"z":1}}`},
	Redacted:          {`{"seqs":[3,4],"reason":"r","by":"b","kept":"DIGEST","extra":{"z":1}}`},
	AccountingFlushed: {`{"ledger":"l","through":7,"total":0.000000001,"entries":[{"b":1.0},2],"extra":{"z":1}}`},
	Lost:              {`{"reason":"r","source":{"session_id":"s","offset":0,"bytes":9},"extra":{"z":1}}`},
}

var fillSample = strings.NewReplacer("ID", sampleID, "DIGEST", sampleDigest, "HASH", sampleHash, "USAGE", sampleUsage, "PARTS", sampleParts)

func samplesOf(name Type) (data []jsontext.Value) {
	for _, sample := range samples[name] {
		data = append(data, jsontext.Value(fillSample.Replace(sample)))
	}
	return data
}

func TestPayloadRoundTrip(t *testing.T) {
	for _, name := range Types() {
		if len(samples[name]) == 0 {
			t.Errorf("%s: no sample", name)
		}
		for _, data := range samplesOf(name) {
			p, err := vocabulary[name].decode(name, data)
			if err != nil {
				t.Errorf("%s: parse %s: %v", name, data, err)
				continue
			}
			e := New(p)
			if err := Validate(p); err != nil {
				t.Errorf("%s: validate: %v", name, err)
			}
			if e.Type != name {
				t.Errorf("%s: event has type %s", name, e.Type)
			}
			if diff := cmp.Diff(string(data), string(e.Data)); diff != "" {
				t.Errorf("%s: data changed (-want +got):\n%s", name, diff)
			}
		}
	}
}

// decoders decode each payload of the vocabulary.
var decoders = []func(*Event) (Payload, bool, error){
	decoder[Message], decoder[ContextEntry], decoder[Compaction], decoder[External], decoder[Handoff], decoder[Session],
	decoder[TurnStart], decoder[TurnCompletion], decoder[TurnHibernation], decoder[TurnResumption], decoder[StepStart],
	decoder[StepCompletion], decoder[ToolStart], decoder[ToolCompletion], decoder[ApprovalRequest], decoder[ApprovalResolution],
	decoder[ApprovalCancelation], decoder[Wait], decoder[Escalation], decoder[Op], decoder[RunClaim], decoder[RunRelease],
	decoder[Abort], decoder[EffectIntent], decoder[EffectCompletion], decoder[Child], decoder[Artifact], decoder[CustomPatch],
	decoder[Snapshot], decoder[Fork], decoder[HeadMove], decoder[RedactionNote], decoder[AccountingFlush], decoder[Loss], decoder[StoreNote],
}

func decoder[T Payload](e *Event) (Payload, bool, error) {
	p, ok, err := Decode[T](e)
	return p, ok, err
}

func TestExactlyOnePayloadReadsAType(t *testing.T) {
	for _, name := range Types() {
		e := Event{Type: name, Data: samplesOf(name)[0]}
		want, err := vocabulary[name].decode(name, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for _, decode := range decoders {
			p, ok, err := decode(&e)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !ok {
				continue
			}
			read++
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("%s: Decode and Payload differ (-Payload +Decode):\n%s", name, diff)
			}
			if p.EventType() != name {
				t.Errorf("%s: payload is of %s", name, p.EventType())
			}
		}
		if read != 1 {
			t.Errorf("%s: %d payloads read it", name, read)
		}
	}
}

// A payload of several types makes an event of the type that it names.
func TestPayloadsOfSeveralTypes(t *testing.T) {
	for name, p := range map[Type]Payload{
		SessionStarted:         Session{},
		SessionUpdated:         Session{Updated: true},
		WaitStarted:            Wait{WaitID: "w"},
		WaitResolved:           Wait{WaitID: "w", Resolved: true},
		ChildRequested.Type():  Child{ChildID: "c", State: ChildRequested},
		ChildStarted.Type():    Child{ChildID: "c", State: ChildStarted},
		ChildProgressed.Type(): Child{ChildID: "c", State: ChildProgressed},
		ChildBlocked.Type():    Child{ChildID: "c", State: ChildBlocked},
		ChildCompleted.Type():  Child{ChildID: "c", State: ChildCompleted},
		ChildFailed.Type():     Child{ChildID: "c", State: ChildFailed},
		ChildCanceled.Type():   Child{ChildID: "c", State: ChildCanceled},
		ChildMerged.Type():     Child{ChildID: "c", State: ChildMerged},
	} {
		if e := New(p); e.Type != name || Validate(p) != nil {
			t.Errorf("%s: New made %q, %v", name, e.Type, Validate(p))
		}
	}
}

func TestVocabularyIsTheTableOfTheFormat(t *testing.T) {
	types, _, _ := formatTables(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(types)), Types()); diff != "" {
		t.Fatalf("types differ (-docs/FORMAT.md +vocabulary):\n%s", diff)
	}
	for _, name := range Types() {
		row, info := types[name], vocabulary[name]
		if info.name != name {
			t.Errorf("%s: vocabulary calls it %s", name, info.name)
		}
		if got := name.Scope().String(); got != row.scope {
			t.Errorf("%s: scope is %s, the table says %s", name, got, row.scope)
		}
		if want := row.control || row.scope == "tree" || name == Lost; info.control != want || name.Spillable() == want {
			t.Errorf("%s: control is %v, the table says %v", name, info.control, want)
		}
		if name.Erasable() == row.fixed {
			t.Errorf("%s: Erasable is %v, the table says fixed %v", name, name.Erasable(), row.fixed)
		}
		if diff := cmp.Diff(row.kept, info.kept, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: kept members differ (-docs/FORMAT.md +vocabulary):\n%s", name, diff)
		}
	}
}

func TestPayloadsHaveTheMembersOfTheFormat(t *testing.T) {
	types, _, _ := formatTables(t)
	ofStruct := map[reflect.Type][]string{}
	for _, name := range Types() {
		row := types[name]
		want := append(row.names(), "extra")
		if diff := cmp.Diff(sorted(want), memberNames(t, samplesOf(name))); diff != "" {
			t.Errorf("%s: members differ (-docs/FORMAT.md +payload):\n%s", name, diff)
		}
		for _, m := range row.members {
			if m.inner == nil || name == SessionUpdated {
				continue
			}
			if diff := cmp.Diff(sorted(m.inner), innerNames(t, samplesOf(name), m.name)); diff != "" {
				t.Errorf("%s: members of %s differ (-docs/FORMAT.md +payload):\n%s", name, m.name, diff)
			}
		}
		p, err := vocabulary[name].decode(name, samplesOf(name)[0])
		if err != nil {
			t.Fatal(err)
		}
		ofStruct[reflect.TypeOf(p)] = append(ofStruct[reflect.TypeOf(p)], want...)
	}
	for typ, want := range ofStruct {
		if diff := cmp.Diff(sorted(want), structMembers(typ)); diff != "" {
			t.Errorf("%v: members differ (-docs/FORMAT.md +struct):\n%s", typ, diff)
		}
	}
}

func TestSharedObjectsHaveTheMembersOfTheFormat(t *testing.T) {
	_, parts, shared := formatTables(t)
	for name, typ := range map[string]reflect.Type{"usage": reflect.TypeFor[Usage](), "message": reflect.TypeFor[Message]()} {
		if diff := cmp.Diff(sorted(formatRow{members: shared[name]}.names()), structMembers(typ)); diff != "" {
			t.Errorf("%s: members differ (-docs/FORMAT.md +struct):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"blob", "bytes"}, structMembers(reflect.TypeFor[BlobRef]())); diff != "" {
		t.Errorf("blob reference: members differ:\n%s", diff)
	}
	all := []string{"type", "id", "extra"}
	for name, row := range parts {
		if !name.Known() {
			t.Errorf("part type %s is not known", name)
		}
		all = append(all, row.names()...)
	}
	if diff := cmp.Diff(sorted(all), structMembers(reflect.TypeFor[Part]())); diff != "" {
		t.Errorf("part: members differ (-docs/FORMAT.md +struct):\n%s", diff)
	}
}

func TestUnknownTypes(t *testing.T) {
	for _, name := range []Type{"codex:turn_context", "message_added/1", "message", ""} {
		if name.Known() || name.Scope() != PathScope {
			t.Errorf("%q: known %v, scope %v", name, name.Known(), name.Scope())
		}
	}
	if later := Type("session_started/2"); !later.Known() || later.Scope() != SessionScope {
		t.Errorf("a later version of a known type: known %v, scope %v", later.Known(), later.Scope())
	}
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// memberNames are the names of the top-level members of all samples, sorted.
func memberNames(t *testing.T, data []jsontext.Value) (names []string) {
	t.Helper()
	for _, value := range data {
		var object map[string]jsontext.Value
		if err := json.Unmarshal(value, &object); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		names = slices.AppendSeq(names, maps.Keys(object))
	}
	return sorted(names)
}

// innerNames are the names of the members of one member, an object.
func innerNames(t *testing.T, data []jsontext.Value, name string) []string {
	t.Helper()
	var values []jsontext.Value
	for _, value := range data {
		var object map[string]jsontext.Value
		if err := json.Unmarshal(value, &object); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if inner, ok := object[name]; ok {
			values = append(values, inner)
		}
	}
	return memberNames(t, values)
}

// structMembers are the names that a struct's fields have in JSON, sorted.
func structMembers(typ reflect.Type) (names []string) {
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	return sorted(names)
}

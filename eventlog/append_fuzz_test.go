package eventlog_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

const maxFuzzed = 64 << 10 // larger inputs find nothing more, and take their time

// Append of any event: a rule refuses it and nothing is stored, or it is stored with
// equal fields, verifies, moves to another store with the same hash, and can be erased.
func FuzzAppend(f *testing.F) {
	types := event.Types()
	for i, name := range types {
		f.Add(string(name), []byte(`{"role":"tool","parts":[{"type":"tool_result","call_id":"c1"}],"to":1,"reason":"r","extra":{"a":1}}`), []byte(nil), []byte(nil), i%2 == 0)
	}
	f.Add("message_added", []byte(`{"role":"tool","parts":[{"type":"tool_result","call_id":"c9","content":[{"type":"hologram"}]}]}`), []byte(`{"broken":["x"]}`), []byte(nil), true)
	f.Add("message_added", []byte(`{"role":"assistant","parts":[{"type":"tool_call","call_id":"c1","name":"n"},{"type":"tool_call","call_id":"c1","name":"n"}]}`), []byte(`{"a":1.0}`), []byte(nil), true)
	f.Add("message_added", []byte(`{"role":"assistant"}`), []byte(`{"broken":7}`), []byte(nil), true)
	f.Add("head_moved", []byte(`{"to":2}`), []byte(` { "a" : [ 1 ] } `), []byte(`{"later":1}`), false)
	f.Add("redacted", []byte(`{"seqs":[1]}`), []byte(`{"fork_origin":{"session_id":"x"}}`), []byte(nil), false)
	f.Add("session_forked", []byte(`{"parent":"p","seq":0,"hash":"`+strings.Repeat("0", 64)+`"}`), []byte(`{"fork_origin":7}`), []byte(nil), false)
	f.Add("note/2", []byte(`{"a" : [1.0, 1E400, -0, "\u0061"]}`), []byte(`{}`), []byte(`{"data\u0020":null}`), false)
	f.Add("message_added/2", []byte(`{}`), []byte(nil), []byte(nil), false)
	f.Add("artifact_recorded", []byte(`{"artifact_id":"a","body":{"blob":"`+string(event.DigestOf([]byte("body")))+`","bytes":4}}`), []byte(nil), []byte(nil), false)
	f.Fuzz(func(t *testing.T, typ string, data, metadata, extras []byte, lenient bool) {
		if len(typ)+len(data)+len(metadata)+len(extras) > maxFuzzed {
			return
		}
		x := newFuzzedLog(t)
		e := event.Event{ID: event.NewID(), Type: event.Type(typ), Data: bytes.Clone(data), Metadata: bytes.Clone(metadata)}
		if len(extras) > 0 && e.SetExtras(extras) != nil {
			return
		}
		expect := eventlog.At(x.head)
		if lenient {
			expect = expect.Lenient()
		}
		head, err := x.log.Append(t.Context(), "s", expect, e)
		if err != nil {
			x.refused(err)
			return
		}
		x.stored(head, &e)
		if again, err := x.log.Append(t.Context(), "s", expect, e); err != nil || again != head {
			t.Fatalf("appended again: %v, %v, want %v", again, err, head)
		}
		x.moves(head)
		x.erases(head, e.Type)
	})
}

// fuzzedLog is a log with a session "s" that has a message and a pending call,
// and a blob.
type fuzzedLog struct {
	*testing.T
	log  *eventlog.Log
	head event.Head
}

func newFuzzedLog(t *testing.T) *fuzzedLog {
	x := &fuzzedLog{T: t, log: eventlog.Open(memory.New())}
	t.Cleanup(func() { x.log.Close() })
	hello := event.UserMessage("hello")
	call := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c1", "n", nil)}})
	_, err := x.log.PutBlob(t.Context(), strings.NewReader("body"))
	x.must(err)
	x.head, err = x.log.Append(t.Context(), "s", eventlog.New(), hello, call)
	x.must(err)
	return x
}

func (x *fuzzedLog) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// refused makes sure that a refusal names its rule and changed nothing.
func (x *fuzzedLog) refused(err error) {
	x.Helper()
	if !errors.Is(err, event.ErrInvalid) && !errors.Is(err, event.ErrVersion) && !errors.Is(err, eventlog.ErrNotFound) {
		x.Fatalf("refused without a rule: %v", err)
	}
	if head, err := x.log.Head(x.Context(), "s"); err != nil || head != x.head {
		x.Fatalf("a refused append moved the head from %v to %v (%v)", x.head, head, err)
	}
}

// stored checks that the event is read with equal fields, and verifies.
func (x *fuzzedLog) stored(head event.Head, e *event.Event) {
	x.Helper()
	got, err := x.log.Event(x.Context(), "s", head.Seq)
	x.must(err)
	if got.ID != e.ID || got.Type != e.Type || got.Head() != head || !bytes.Equal(got.Data, compacted(x.T, e.Data)) {
		x.Fatalf("appended %v with %s\nread %v with %s", e.Type, e.Data, got.Type, got.Data)
	}
	if len(e.Metadata) > 0 {
		for _, m := range membersOf(x.T, e.Metadata) {
			value, ok := got.MetadataValue(m.name)
			if !ok || m.name != "broken" && !bytes.Equal(value, m.value) {
				x.Fatalf("metadata %s reads as %s", e.Metadata, got.Metadata)
			}
		}
	}
	x.verifies(x.log, "s")
}

func (x *fuzzedLog) verifies(log *eventlog.Log, session string) {
	x.Helper()
	report, err := verify.Session(x.Context(), log, session)
	x.must(err)
	for _, d := range report.Defects {
		x.Fatalf("accepted, but %v", d)
	}
}

// moves makes sure that an export is taken elsewhere, with the same head.
func (x *fuzzedLog) moves(head event.Head) {
	x.Helper()
	var stream bytes.Buffer
	x.must(transfer.Export(x.Context(), x.log, &stream, "s"))
	other := eventlog.Open(memory.New())
	defer other.Close()
	adopted, err := transfer.Import(x.Context(), other, bytes.NewReader(stream.Bytes()))
	if err != nil || len(adopted) != 1 || adopted[0].Head != head {
		x.Fatalf("import of the export: %+v, %v\n%s", adopted, err, stream.Bytes())
	}
	x.verifies(other, "s")
}

// erases makes sure that the newest event can be redacted, and that the calls
// before it are known afterwards.
func (x *fuzzedLog) erases(head event.Head, t event.Type) {
	x.Helper()
	before, err := testkit.Collect(x.log.Read(x.Context(), "s", eventlog.All().OnPath()))
	x.must(err)
	if _, err := erase.Redact(x.Context(), x.log, "s", []int64{head.Seq}, erase.RedactOptions{Reason: ""}); errors.Is(err, event.ErrInvalidType) {
		return
	} else if err != nil {
		x.Fatalf("redact %s: %v", t, err)
	}
	e, err := x.log.Event(x.Context(), "s", head.Seq)
	x.must(err)
	if !e.Redacted() || e.Data != nil || e.Metadata != nil || e.Head() != head {
		x.Fatalf("redacted %s is %s", t, e.Line())
	}
	x.verifies(x.log, "s")
	after, err := testkit.Collect(x.log.Read(x.Context(), "s", eventlog.All().OnPath()))
	x.must(err)
	if diff := cmp.Diff(seqs(before), seqs(after[:len(after)-1])); diff != "" {
		x.Fatalf("redacting moved the path:\n%s", diff)
	}
	result := event.ToolOutput("c1", "n", []byte("ok"), false)
	if _, err := x.log.Append(x.Context(), "s", eventlog.Any(), result); err != nil && !errors.Is(err, event.OrphanResult) {
		x.Fatalf("append behind a redacted event: %v", err)
	}
}

func seqs(events []event.Event) (all []int64) {
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

// compacted is value without white space outside strings, by another way than
// the log's.
func compacted(t *testing.T, value []byte) []byte {
	t.Helper()
	v := jsontext.Value(bytes.Clone(value))
	if err := v.Compact(jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		t.Fatalf("accepted %q: %v", value, err)
	}
	return v
}

type namedValue struct {
	name  string
	value []byte
}

func membersOf(t *testing.T, object []byte) (members []namedValue) {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(compacted(t, object)))
	for _, err := dec.ReadToken(); dec.PeekKind() != '}'; {
		name, bad := dec.ReadToken()
		text := name.String()
		value, worse := dec.ReadValue()
		if err = errors.Join(err, bad, worse); err != nil {
			t.Fatal(err)
		}
		members = append(members, namedValue{text, slices.Clone(value)})
	}
	return members
}

package replaytest_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/replay/replaytest"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

const session = "refund"

// build makes events and appends them one by one, as an agent does.
type build struct {
	t   testing.TB
	log *eventlog.Log
	id  string // of the session
}

func newBuild(t testing.TB, id string) *build {
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { _ = log.Close() })
	return &build{t, log, id}
}

func (b *build) add(e event.Event) event.Event {
	b.t.Helper()
	if _, err := b.log.Append(context.Background(), b.id, eventlog.Any(), e); err != nil {
		b.t.Fatal(err)
	}
	return e
}

func (b *build) events() iter.Seq2[event.Event, error] {
	return b.log.Read(context.Background(), b.id, eventlog.All())
}

// turn is a run of an agent. A changed field makes another run.
type turn struct {
	question, call, arguments, answer string
	turnID                            bool // the turn's end names another turn
	metadata                          any
	duration                          int64
}

// run appends a turn. Event 1 is its start, 2 the question, 3 the call, 4 its result,
// 5 the answer and 6 its end.
func (b *build) run(n turn) *build {
	b.t.Helper()
	start := b.add(event.New(event.TurnStart{Agent: "support"}))
	b.add(event.UserMessage(n.question))
	b.add(event.New(event.Message{Role: event.Assistant,
		Parts: []event.Part{event.ToolCall(n.call, "orders", jsontext.Value(n.arguments))}}))
	b.add(event.New(event.Message{Role: event.Tool,
		Parts: []event.Part{event.ToolResult(n.call, "orders", event.Text("found"))}}))
	answer := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(n.answer)}})
	if n.metadata != nil {
		if err := answer.SetMetadata("mood", n.metadata); err != nil {
			b.t.Fatal(err)
		}
	}
	answer.Cost = 5
	b.add(answer)
	end := event.TurnCompletion{TurnID: start.ID, Status: event.TurnStatusCompleted, DurationMS: n.duration}
	if n.turnID {
		end.TurnID = event.NewID()
	}
	b.add(event.New(end))
	return b
}

var usual = turn{question: "Where is A1?", call: "call_1", arguments: `{"id":"A1","n":1.0}`, answer: "On its way.", metadata: "calm"}

func diverges(t *testing.T, recorded, got iter.Seq2[event.Event, error], opts ...replaytest.Options) *replaytest.Divergence {
	t.Helper()
	d, err := replaytest.Diverges(recorded, got, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The differences between any two runs are no divergence.
func TestAlike(t *testing.T) {
	again := usual
	again.call, again.duration = "call_other", 17
	again.arguments = `{"n":1.0, "id":"A1"}`
	recorded, got := newBuild(t, session).run(usual).run(usual), newBuild(t, "rerun").run(again).run(again)
	if d := diverges(t, recorded.events(), got.events()); d != nil {
		t.Error(d)
	}
	replaytest.Compare(t, recorded.events(), got.events())
}

// Each change is found at its place.
func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		name          string
		change        func(n *turn)
		seq           int64
		typ           event.Type
		member        string
		recorded, got string
	}{
		{"a text", func(n *turn) { n.answer = "Lost." }, 5, event.MessageAdded, "data.parts[0].text", `"On its way."`, `"Lost."`},
		{"an argument named like an id", func(n *turn) { n.arguments = `{"id":"A2","n":1.0}` }, 3, event.MessageAdded,
			"data.parts[0].arguments.id", `"A1"`, `"A2"`},
		{"a number's digits", func(n *turn) { n.arguments = `{"id":"A1","n":1}` }, 3, event.MessageAdded, "data.parts[0].arguments.n", "1.0", "1"},
		{"an argument too many", func(n *turn) { n.arguments = `{"id":"A1","m":2,"n":1.0}` }, 3, event.MessageAdded,
			"data.parts[0].arguments.m", "", "2"},
		{"an argument too few", func(n *turn) { n.arguments = `{"id":"A1"}` }, 3, event.MessageAdded, "data.parts[0].arguments.n", "1.0", ""},
		{"another kind of argument", func(n *turn) { n.arguments = `{"id":["A1"],"n":1.0}` }, 3, event.MessageAdded,
			"data.parts[0].arguments.id", `"A1"`, `["A1"]`},
		{"metadata", func(n *turn) { n.metadata = "cross" }, 5, event.MessageAdded, "metadata.mood", `"calm"`, `"cross"`},
		{"no metadata", func(n *turn) { n.metadata = nil }, 5, event.MessageAdded, "metadata.mood", `"calm"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := usual
			c.change(&changed)
			d := diverges(t, newBuild(t, session).run(usual).events(), newBuild(t, session).run(changed).events())
			if d == nil {
				t.Fatal("it was not found")
			}
			if d.Seq() != c.seq || d.Type() != c.typ || d.Member != c.member || d.RecordedValue != c.recorded || d.GotValue != c.got {
				t.Errorf("got %d %s %s: %s, %s", d.Seq(), d.Type(), d.Member, d.RecordedValue, d.GotValue)
			}
		})
	}
}

// Ids may differ if they map one to one.
func TestIdsMapOneToOne(t *testing.T) {
	changed := usual
	changed.turnID = true
	d := diverges(t, newBuild(t, session).run(usual).events(), newBuild(t, session).run(changed).events())
	if d == nil || d.Seq() != 6 || d.Member != "data.turn_id" {
		t.Errorf("a turn's end that names another turn: %v", d)
	}
	other := usual
	other.call = "call_2"
	recorded := newBuild(t, session).run(usual).run(other)
	d = diverges(t, recorded.events(), newBuild(t, session).run(usual).run(usual).events())
	if d == nil || d.Seq() != 9 || d.Member != "data.parts[0].call_id" {
		t.Errorf("a call id that is used again: %v", d)
	}
}

// A seq in a payload must be the seq of the corresponding event.
func TestSeqsMapToEvents(t *testing.T) {
	play := func(note bool, to int64) *build {
		b := newBuild(t, session)
		if note {
			b.add(event.New(event.Abort{Reason: "nobody knows"}))
		}
		b.add(event.UserMessage("one"))
		b.add(event.UserMessage("two"))
		b.add(event.New(event.HeadMove{To: to}))
		return b
	}
	opts := replaytest.Options{IgnoreTypes: []event.Type{event.AbortRequested}}
	if d := diverges(t, play(false, 1).events(), play(true, 2).events(), opts); d != nil {
		t.Error(d)
	}
	if d := diverges(t, play(false, 1).events(), play(true, 1).events(), opts); d == nil || d.Member != "data.to" {
		t.Errorf("a move to another event: %v", d)
	}
	if d := diverges(t, play(false, 1).events(), play(true, 2).events()); d == nil || d.Member != "type" {
		t.Errorf("an event more: %v", d)
	}
}

func TestOneSideEnds(t *testing.T) {
	short, long := newBuild(t, session).run(usual), newBuild(t, session).run(usual).run(usual)
	d := diverges(t, long.events(), short.events())
	if d == nil || d.Got != nil || d.Seq() != 7 || d.String() != "the run ends before event 7 of the recording, turn_started" {
		t.Errorf("got %v", d)
	}
	d = diverges(t, short.events(), long.events())
	if d == nil || d.Recorded != nil || d.Seq() != 7 || d.String() != "the run continues after the end of the recording with event 7, turn_started" {
		t.Errorf("got %v", d)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   replaytest.Options
		change func(n *turn)
	}{
		{"metadata", replaytest.Options{IgnoreMetadata: true}, func(n *turn) { n.metadata = "cross" }},
		{"a name", replaytest.Options{IgnoreMembers: []string{"mood", "n"}}, func(n *turn) { n.metadata, n.arguments = nil, `{"id":"A1","n":[2]}` }},
		{"a place", replaytest.Options{IgnoreMembers: []string{"data.parts[0].text"}}, func(n *turn) { n.answer = "Lost." }},
		{"a type", replaytest.Options{IgnoreTypes: []event.Type{event.TurnCompleted}}, func(n *turn) { n.turnID = true }},
	} {
		changed := usual
		c.change(&changed)
		recorded, got := newBuild(t, session).run(usual), newBuild(t, session).run(changed)
		if d := diverges(t, recorded.events(), got.events(), c.opts); d != nil {
			t.Errorf("%s: %v", c.name, d)
		}
		if d := diverges(t, recorded.events(), got.events()); d == nil {
			t.Errorf("%s: nothing differs without the option", c.name)
		}
	}
}

// A time in a payload may differ, and must be a time.
func TestTimes(t *testing.T) {
	play := func(until time.Time, text string) *build {
		b := newBuild(t, session)
		b.add(event.New(event.Wait{WaitID: "w", Until: until}))
		b.add(event.UserMessage(text))
		return b
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	if d := diverges(t, play(now, "x").events(), play(now.Add(time.Hour), "x").events()); d != nil {
		t.Error(d)
	}
	d := diverges(t, play(now, "2026-11-21T12:00:00Z").events(), play(now, "2026-11-21T13:00:00Z").events())
	if d == nil || d.Member != "data.parts[0].text" {
		t.Errorf("a moment in a text: %v", d)
	}
}

// Redacted events are compared by the members that redaction keeps.
func TestRedacted(t *testing.T) {
	ctx := context.Background()
	redact := func(n turn) *build {
		b := newBuild(t, session).run(n)
		if _, err := erase.Redact(ctx, b.log, b.id, []int64{2}, erase.RedactOptions{Reason: "asked"}); err != nil {
			t.Fatal(err)
		}
		return b
	}
	other := usual
	other.question = "Where is my parcel?"
	if d := diverges(t, redact(usual).events(), redact(other).events()); d != nil {
		t.Error(d)
	}
	ignore := replaytest.Options{IgnoreTypes: []event.Type{event.Redacted}}
	if d := diverges(t, redact(usual).events(), newBuild(t, session).run(other).events(), ignore); d != nil {
		t.Error(d)
	}
}

// Costs and types differ.
func TestCostAndType(t *testing.T) {
	e := event.Event{ID: event.NewID(), Seq: 1, SessionID: "a", Type: "test:x", Data: jsontext.Value(`{"id":"1"}`)}
	for member, change := range map[string]func(e *event.Event){
		"cost":    func(e *event.Event) { e.Cost = 1 },
		"type":    func(e *event.Event) { e.Type = "test:y" },
		"data":    func(e *event.Event) { e.Data = jsontext.Value(`[]`) },
		"data.id": func(e *event.Event) { e.Data = jsontext.Value(`{"id":"2"}`) },
	} {
		changed := e
		change(&changed)
		if d := diverges(t, replay.Of(e), replay.Of(changed)); d == nil || d.Member != member {
			t.Errorf("%s: got %v", member, d)
		}
	}
	e.Data = jsontext.Value(`{"`)
	if _, err := replaytest.Diverges(replay.Of(e), replay.Of(e)); err == nil {
		t.Error("a payload that is no JSON was compared")
	}
}

var errGone = errors.New("gone")

// An error of a side is no divergence.
func TestErrors(t *testing.T) {
	fails := func(yield func(event.Event, error) bool) { yield(event.Event{}, errGone) }
	good := newBuild(t, session).run(usual).events()
	for want, sides := range map[string][2]iter.Seq2[event.Event, error]{
		"read the recording: gone": {fails, good}, "read the run: gone": {good, fails},
	} {
		if _, err := replaytest.Diverges(sides[0], sides[1]); err == nil || !errors.Is(err, errGone) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A recording is an export.
func TestLoad(t *testing.T) {
	b := newBuild(t, session).run(usual)
	path := filepath.Join(t.TempDir(), "refund.jsonl")
	var text strings.Builder
	if err := transfer.Export(context.Background(), b.log, &text, b.id); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded := replaytest.Load(t, path)
	replaytest.Compare(t, recorded, newBuild(t, session).run(usual).events())
	replaytest.Compare(t, recorded, b.events()) // a recording may be read again
}

// fake is a test that notes how it fails.
type fake struct {
	testing.TB
	failed        bool
	errors, fatal string
}

type ended struct{}

func (f *fake) Helper()                  {}
func (f *fake) Context() context.Context { return context.Background() }
func (f *fake) Failed() bool             { return f.failed }
func (f *fake) Error(args ...any)        { f.errors += args[0].(*replaytest.Divergence).String() }
func (f *fake) Fatal(args ...any) {
	f.fatal += args[0].(error).Error()
	panic(ended{})
}
func (f *fake) Fatalf(format string, args ...any) {
	f.fatal += format
	panic(ended{})
}

// fail runs a test that ends early or not.
func fail(test func(f *fake)) (f *fake) {
	f = &fake{}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(ended); !ok {
				panic(r)
			}
		}
	}()
	test(f)
	return f
}

func TestCompareFails(t *testing.T) {
	changed := usual
	changed.answer = strings.Repeat("long ", 200)
	recorded, got := newBuild(t, session).run(usual).events(), newBuild(t, session).run(changed).events()
	f := fail(func(f *fake) { replaytest.Compare(f, recorded, got) })
	want := "the run differs from the recording at event 5, message_added, in data.parts[0].text:\n" +
		"\trecorded: \"On its way.\"\n\tgot:      \"" + strings.Repeat("long ", 99) + "long…"
	if f.errors != want || f.fatal != "" {
		t.Errorf("got %q and %q, want %q", f.errors, f.fatal, want)
	}
}

func TestCompareAndLoadEndTheTest(t *testing.T) {
	fails := func(yield func(event.Event, error) bool) { yield(event.Event{}, errGone) }
	dir := t.TempDir()
	for name, text := range map[string]string{"empty.jsonl": "", "bad.jsonl": "hello"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]func(f *fake){
		"a failing run":    func(f *fake) { replaytest.Compare(f, replay.Of(), fails) },
		"a missing file":   func(f *fake) { replaytest.Load(f, filepath.Join(dir, "missing.jsonl")) },
		"an empty file":    func(f *fake) { replaytest.Load(f, filepath.Join(dir, "empty.jsonl")) },
		"a file of no log": func(f *fake) { replaytest.Load(f, filepath.Join(dir, "bad.jsonl")) },
	} {
		if f := fail(test); f.fatal == "" || f.errors != "" {
			t.Errorf("%s: %q and %q", name, f.fatal, f.errors)
		}
	}
}

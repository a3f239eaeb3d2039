package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/store/memory"
)

func user(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

func reply(group string, parts ...event.Part) event.Message {
	return event.Message{Role: event.Assistant, Group: group, Parts: parts}
}

func result(id, text string) event.Message {
	return event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(id, "run", event.Text(text))}}
}

func call(id string) event.Part { return event.ToolCall(id, "run", nil) }

// say appends each payload to a session in its own append. The events may break rules of
// conversation.
func say(t testing.TB, log *eventlog.Log, session string, payloads ...event.Payload) {
	t.Helper()
	for _, p := range payloads {
		if _, err := log.Append(t.Context(), session, eventlog.Any().Lenient(), event.New(p)); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns one line per entry of a session.
func read(t testing.TB, log *eventlog.Log, session string, events ...eventlog.Range) (lines []string) {
	t.Helper()
	selected := eventlog.All().OnPath()
	if len(events) > 0 {
		selected = events[0]
	}
	for x, err := range transcript.Read(t.Context(), log, session, selected) {
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("#%d ", x.Event.Seq)
		if x.StartsTurn {
			line += fmt.Sprintf("turn %d: ", x.Turn)
		}
		if !x.IsMessage {
			if n, ok := x.Note(); ok {
				line += n.Line()
			}
			lines = append(lines, line)
			continue
		}
		line += string(x.Message.Role)
		for _, p := range x.Message.Parts {
			line += " " + p.Text + p.CallID
			if r, ok := x.Results[p.CallID]; ok {
				line += "=" + r.Part.Content[0].Text
			}
		}
		lines = append(lines, strings.Join(append([]string{line}, x.Marks()...), " "))
	}
	return lines
}

// Pieces of one message are one entry, even with results or events of other programs
// in between. Results are under their calls.
func TestPiecesAndResultsAreJoined(t *testing.T) {
	log := testkit.Open(t, memory.New())
	say(t, log, "s", user("Go."), reply("g", event.Text("two")), reply("g", call("a")))
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.Event{Type: "claude:progress", Data: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	say(t, log, "s", result("a", "1"), reply("g", call("b")), result("b", "2"), reply("h", event.Text("done")), result("c", "3"), user("More."))
	want := []string{"#1 turn 0: user Go.", "#2 assistant two a=1 b=2", "#4 ", "#8 assistant done", "#9 tool c broken: orphan_result", "#10 turn 1: user More."}
	if diff := cmp.Diff(want, read(t, log, "s")); diff != "" {
		t.Error(diff)
	}
}

// A call without a result does not block later entries. If more entries than the
// window come between a call and its result, all of them are shown.
func TestWindowIsBounded(t *testing.T) {
	log := testkit.Open(t, memory.New())
	say(t, log, "s", user("Go."), reply("", call("a")))
	var events []event.Event
	for range 500 {
		events = append(events, event.Event{Type: "other:note", Data: []byte(`{}`)})
	}
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), events...); err != nil {
		t.Fatal(err)
	}
	say(t, log, "s", result("a", "late"), user("More."))
	all := read(t, log, "s")
	if len(all) != 504 || all[1] != "#2 assistant a" || all[502] != "#503 tool a" {
		t.Errorf("%d entries, %q and %q", len(all), all[1], all[502])
	}
}

// A tool_completed event provides the result if no message has it.
func TestRecordedResults(t *testing.T) {
	log := testkit.Open(t, memory.New())
	completion := func(id, text, failure string) event.ToolCompletion {
		c := event.ToolCompletion{CallID: id, Name: "run", Error: failure}
		if text != "" {
			c.Content = []event.Part{event.Text(text)}
		}
		return c
	}
	say(t, log, "s", user("Go."), reply("", call("a"), call("b"), call("c")), completion("a", "recorded", ""), completion("b", "recorded", ""), completion("c", "", "no such tool"), result("b", "message"))
	want := []string{"#1 turn 0: user Go.", "#2 assistant a=recorded b=message c=no such tool", "#3 ", "#4 ", "#5 "}
	if diff := cmp.Diff(want, read(t, log, "s")); diff != "" {
		t.Error(diff)
	}
}

// Rewound entries are left out, or marked. Turns are numbered per path, as fork
// counts them.
func TestRewoundTurns(t *testing.T) {
	log := testkit.Open(t, memory.New())
	say(t, log, "s", user("one"), reply("", event.Text("1")), user("two"), reply("", event.Text("2")))
	if _, err := fork.Rewind(t.Context(), log, "s", fork.BeforeTurn(1), fork.Options{Reason: "typo"}); err != nil {
		t.Fatal(err)
	}
	say(t, log, "s", user("zwei"), reply("", event.Text("2!")))
	want := []string{"#1 turn 0: user one", "#2 assistant 1", "#3 turn 1: user two orphaned", "#4 assistant 2 orphaned",
		"#5 went back to #2 · typo", "#6 turn 1: user zwei", "#7 assistant 2!"}
	if diff := cmp.Diff(want, read(t, log, "s", eventlog.All())); diff != "" {
		t.Error(diff)
	}
	want = append(want[:2:2], want[4:]...)
	if diff := cmp.Diff(want, read(t, log, "s")); diff != "" {
		t.Error(diff)
	}
}

// A turn_started sets the index of its turn. The input can come before or after it.
func TestTurnIndexes(t *testing.T) {
	log := testkit.Open(t, memory.New())
	done := event.TurnCompletion{Status: event.TurnStatusCompleted}
	failed := event.TurnCompletion{Status: event.TurnStatusFailed, Error: "no model"}
	say(t, log, "s", user("one"), event.TurnStart{Index: 4}, reply("", event.Text("1")), user("aside"), done,
		event.TurnStart{Index: 5}, user("two"), failed)
	want := []string{"#1 turn 4: user one", "#2 ", "#3 assistant 1", "#4 user aside", "#5 ", "#6 ", "#7 turn 5: user two", "#8 turn failed"}
	if diff := cmp.Diff(want, read(t, log, "s")); diff != "" {
		t.Error(diff)
	}
}

// The note of a turn does not repeat the status as a reason.
func TestTurnEnds(t *testing.T) {
	log := testkit.Open(t, memory.New())
	end := func(status event.TurnStatus, reason string) event.TurnCompletion {
		return event.TurnCompletion{Status: status, StopReason: reason}
	}
	say(t, log, "s", event.TurnStart{}, end(event.TurnStatusInterrupted, "interrupted"),
		event.TurnStart{Index: 1}, end(event.TurnStatusAborted, "budget"), event.TurnStart{Index: 2}, end(event.TurnStatusCompleted, "end_turn"))
	want := []string{"#1 ", "#2 turn interrupted", "#3 ", "#4 turn aborted · budget", "#5 ", "#6 "}
	if diff := cmp.Diff(want, read(t, log, "s")); diff != "" {
		t.Error(diff)
	}
}

func TestNilLog(t *testing.T) {
	var read error
	for _, err := range transcript.Read(t.Context(), nil, "s", eventlog.All()) {
		read = err
	}
	_, loaded := transcript.Load(t.Context(), nil, "s", nil)
	for name, err := range map[string]error{"Read": read, "Load": loaded} {
		if err == nil || !strings.Contains(err.Error(), `session "s": the log is nil`) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// No character of a text changes the order or the place of the text after it. The marks of
// Hebrew and Arabic text stay.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc":             "a\tb\nc",
		"a\r\nb\rc":           "a\nb␍c",
		"\x1b[31mred":         "␛[31mred",
		"\x00\x7f\u0085\xff":  "␀␡\ufffd\ufffd",
		"file\u202etxt.exe":   `file\u202etxt.exe`,
		"\u202a\u2066x\u2069": `\u202a\u2066x\u2069`,
		"שלום\u200f!":         "שלום\u200f!",
	} {
		if got := transcript.Visible(text); got != want {
			t.Errorf("Visible(%q) = %q, want %q", text, got, want)
		}
	}
}

// The title of a transcript is the title of the session, or else the first user
// message.
func TestTitles(t *testing.T) {
	log := testkit.Open(t, memory.New())
	say(t, log, "asked", event.TurnStart{}, user("Where is it?\nNow?"), user("More."))
	say(t, log, "titled", user("Where is it?"), event.Session{Updated: true, Title: "A parcel"})
	say(t, log, "silent", reply("", event.Text("Hello.")))
	for session, want := range map[string]string{"asked": "Where is it?", "titled": "A parcel", "silent": "Session silent"} {
		about, err := transcript.Load(t.Context(), log, session, nil)
		if err != nil || about.Title != want {
			t.Errorf("the title of %s is %q (%v), want %q", session, about.Title, err, want)
		}
	}
}

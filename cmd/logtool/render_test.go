package main

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
)

// shows renders events, holding at most most of them back.
func shows(t *testing.T, most int, full, colour bool, payloads ...eventlog.Payload) string {
	t.Helper()
	var out strings.Builder
	p := &printer{w: bufio.NewWriter(&out), colour: colour}
	r := &renderer{printer: p, full: full}
	s := &shower{printer: p, renderer: r, transcript: joiner(r, most)}
	for i, payload := range payloads {
		e, err := eventlog.NewEvent(payload)
		if err != nil {
			t.Fatal(err)
		}
		e.Seq, e.Timestamp = int64(i+1), time.Date(2026, 1, 2, 3, 4, 5+i, 0, time.UTC)
		if err := s.event(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.stop(nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func says(role eventlog.Role, parts ...eventlog.Part) eventlog.Message {
	return eventlog.Message{Role: role, Parts: parts}
}

func calls(id, name, arguments string) eventlog.Part {
	return eventlog.ToolCall(id, name, jsontext.Value(arguments))
}

func answers(id, text string) eventlog.Message {
	return says(eventlog.Tool, eventlog.ToolResult(id, "", eventlog.Text(text)))
}

func numbered(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	return text.String()
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// Two calls of one message are answered in the other order, with a note in
// between: each result stands under its call, the note behind.
func TestResultsStandUnderTheirCalls(t *testing.T) {
	got := shows(t, 100, false, false,
		eventlog.TurnStart{Index: 3},
		says(eventlog.User, eventlog.Text("go")),
		says(eventlog.Assistant, eventlog.Text("Both."), calls("a", "Read", `{"path":"x"}`), calls("b", "Bash", `{"command":"ls","timeout":5}`)),
		answers("b", "out of b"),
		eventlog.HeadMove{To: 2, Label: "note"},
		answers("a", "out of a"),
		says(eventlog.Assistant, eventlog.Text("Done.")),
	)
	compare(t, got, `
── turn 3 ── #1 2026-01-02 03:04:05

#2 user · 2026-01-02 03:04:06
  go

#3 assistant · 2026-01-02 03:04:07
  Both.
  → Read (path: x)
    ← #6
      out of a
  → Bash (command: ls, timeout: 5)
    ← #4
      out of b

#5 head_moved · to: 2, label: note · 2026-01-02 03:04:09

#7 assistant · 2026-01-02 03:04:11
  Done.
`)
}

// A call that is never answered holds the rest back only so far, and its late
// answer is shown where it stands.
func TestAnUnansweredCallDoesNotHoldEverything(t *testing.T) {
	got := shows(t, 1, false, false,
		says(eventlog.Assistant, calls("a", "Read", `{}`)),
		says(eventlog.User, eventlog.Text("and now?")),
		answers("a", "late"),
	)
	compare(t, got, `
#1 assistant · 2026-01-02 03:04:05
  → Read ()

#2 user · 2026-01-02 03:04:06
  and now?

#3 tool · 2026-01-02 03:04:07
  ← of a
    late
`)
}

func TestAMessageWithAResultAndATextKeepsTheText(t *testing.T) {
	got := shows(t, 9, false, false,
		says(eventlog.Assistant, calls("a", "Read", `{}`)),
		says(eventlog.User, eventlog.ToolResult("a", "", eventlog.Text("found")), eventlog.Text("go on")),
	)
	compare(t, got, `
#1 assistant · 2026-01-02 03:04:05
  → Read ()
    ← #2
      found

#2 user · 2026-01-02 03:04:06
  go on
`)
}

func TestLongOutputIsFoldedWithACount(t *testing.T) {
	events := []eventlog.Payload{
		says(eventlog.Assistant, calls("a", "Write", `{"path":"x","text":"`+strings.ReplaceAll(numbered(9), "\n", `\n`)+`"}`)),
		answers("a", numbered(30)+strings.Repeat("é", 1200)),
	}
	compare(t, shows(t, 9, false, false, events...), `
#1 assistant · 2026-01-02 03:04:05
  → Write
    path: x
    text:
      line 1
      line 2
      line 3
      line 4
      line 5
      line 6
      … 3 more lines
    ← #2
      line 1
      line 2
      line 3
      line 4
      line 5
      line 6
      line 7
      line 8
      line 9
      line 10
      … 21 more lines
`)
	full := shows(t, 9, true, false, events...)
	if !strings.Contains(full, "line 30\n") || !strings.Contains(full, strings.Repeat("é", 1200)) || strings.Contains(full, "…") {
		t.Errorf("--full folds:\n%s", full)
	}
	long := shows(t, 9, false, false, events[0], answers("a", strings.Repeat("é", 1200)))
	if want := strings.Repeat("é", 1000) + " … 200 more characters\n"; !strings.Contains(long, want) {
		t.Errorf("a long line is not folded:\n%s", long)
	}
}

func TestPartsOfEveryKindAreShown(t *testing.T) {
	digest := eventlog.DigestOf([]byte("x"))
	failed := eventlog.ToolResult("a", "Read", eventlog.Text("no such file"))
	failed.IsError = true
	got := shows(t, 0, false, false,
		says(eventlog.Assistant,
			eventlog.Reasoning("because\nof this", "sig"), eventlog.Reasoning("", "sig"),
			eventlog.Image("image/png", eventlog.BlobRef{Blob: digest, Bytes: 2048}),
			eventlog.Part{Type: eventlog.DocumentPart, Name: "a.pdf", MediaType: "application/pdf", URL: "https://example.com/a.pdf"},
			eventlog.Opaque("container", jsontext.Value(`{"id":"c1"}`)),
			eventlog.Part{Type: eventlog.ServerToolCallPart, CallID: "s", Name: "web_search", Arguments: jsontext.Value(`"plain"`)},
		),
		says(eventlog.Tool, failed),
		says(eventlog.Tool, eventlog.InterruptedResult("b", "Bash")),
	)
	compare(t, got, `
#1 assistant · 2026-01-02 03:04:05
  (reasoning)
  because
  of this
  (reasoning withheld)
  [image image/png 2.0 KiB `+string(digest)+`]
  [document a.pdf application/pdf https://example.com/a.pdf]
  [opaque container] {"id":"c1"}
  → web_search (plain)

#2 tool · 2026-01-02 03:04:06
  ← error of Read a
    no such file

#3 tool · 2026-01-02 03:04:07
  ← interrupted of Bash b
`)
}

// What a model or a tool wrote cannot send escape sequences to the terminal.
func TestNoEscapeSequenceOfATranscriptReachesTheTerminal(t *testing.T) {
	evil := "\x1b[2J\u009b"
	quoted := `"` + `\u001b[2J` + `"`
	got := shows(t, 9, false, false,
		eventlog.Session{Title: evil, Agent: evil},
		says(eventlog.User, eventlog.Text(evil)),
		says(eventlog.Assistant, calls(evil, evil, `{`+quoted+`:`+quoted+`}`), eventlog.Opaque(evil, jsontext.Value(quoted)),
			eventlog.Part{Type: eventlog.ImagePart, Name: evil, MediaType: evil, URL: evil}),
		says(eventlog.Tool, eventlog.ToolResult("other"+evil, evil, eventlog.Text(evil))),
	)
	if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && control(r) }); i >= 0 {
		t.Errorf("control character %q in\n%s", got[i], got)
	}
}

func TestColour(t *testing.T) {
	user := says(eventlog.User, eventlog.Text("hi"))
	if got := shows(t, 0, false, true, user); !strings.Contains(got, "\x1b[32muser\x1b[0m") {
		t.Errorf("no colour: %q", got)
	}
	if got := shows(t, 0, false, false, user); strings.Contains(got, "\x1b") {
		t.Errorf("colour: %q", got)
	}
}

// What neither a user nor a model said is folded sooner than what they said.
func TestInstructionsAreFoldedSooner(t *testing.T) {
	for _, test := range []struct {
		role   eventlog.Role
		hidden string
	}{
		{eventlog.System, "30 more lines\n"},
		{eventlog.Developer, "30 more lines\n"},
		{eventlog.User, ""},
		{eventlog.Assistant, ""},
	} {
		got := shows(t, 100, false, false, says(test.role, eventlog.Text(numbered(40))))
		if _, hidden, _ := strings.Cut(got, "\n  … "); hidden != test.hidden {
			t.Errorf("%s: hidden is %q, want %q", test.role, hidden, test.hidden)
		}
		if full := shows(t, 100, true, false, says(test.role, eventlog.Text(numbered(40)))); !strings.HasSuffix(full, "  line 40\n") {
			t.Errorf("%s: --full shows\n%s", test.role, full)
		}
	}
}

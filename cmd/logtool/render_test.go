package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/terminal"
)

// shows renders events, holding at most most of them back.
func shows(t *testing.T, most int, full, colour bool, payloads ...event.Payload) string {
	t.Helper()
	var out strings.Builder
	p := &printer{Printer: term.NewPrinter(&out, term.Options{Colour: colour})}
	r := &renderer{printer: p, full: full}
	s := &eventPrinter{printer: p, renderer: r, transcript: joiner(r, most)}
	for i, payload := range payloads {
		e := event.New(payload)
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

func says(role event.Role, parts ...event.Part) event.Message {
	return event.Message{Role: role, Parts: parts}
}

func calls(id, name, arguments string) event.Part {
	return event.ToolCall(id, name, jsontext.Value(arguments))
}

func toolSays(id, text string) event.Message {
	return says(event.Tool, event.ToolResult(id, "", event.Text(text)))
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

// The results of two calls come in reverse order, with a note between them. Each
// result is shown under its call, and the note after both.
func TestResultsAreUnderTheirCalls(t *testing.T) {
	got := shows(t, 100, false, false,
		event.TurnStart{Index: 3},
		says(event.User, event.Text("go")),
		says(event.Assistant, event.Text("Both."), calls("a", "Read", `{"path":"x"}`), calls("b", "Bash", `{"command":"ls","timeout":5}`)),
		toolSays("b", "out of b"),
		event.HeadMove{To: 2, Label: "note"},
		toolSays("a", "out of a"),
		says(event.Assistant, event.Text("Done.")),
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

#5 head_moved · to #2, note · 2026-01-02 03:04:09

#7 assistant · 2026-01-02 03:04:11
  Done.
`)
}

// A call without a result delays only a limited number of entries, and its late
// answer is shown at its place.
func TestAnUnansweredCallDoesNotHoldEverything(t *testing.T) {
	got := shows(t, 1, false, false,
		says(event.Assistant, calls("a", "Read", `{}`)),
		says(event.User, event.Text("and now?")),
		toolSays("a", "late"),
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
		says(event.Assistant, calls("a", "Read", `{}`)),
		says(event.User, event.ToolResult("a", "", event.Text("found")), event.Text("go on")),
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
	events := []event.Payload{
		says(event.Assistant, calls("a", "Write", `{"path":"x","text":"`+strings.ReplaceAll(numbered(9), "\n", `\n`)+`"}`)),
		toolSays("a", numbered(30)+strings.Repeat("é", 1200)),
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
	long := shows(t, 9, false, false, events[0], toolSays("a", strings.Repeat("é", 1200)))
	if want := strings.Repeat("é", 1000) + " … 200 more characters\n"; !strings.Contains(long, want) {
		t.Errorf("a long line is not folded:\n%s", long)
	}
}

func TestPartsOfEveryKindAreShown(t *testing.T) {
	digest := event.DigestOf([]byte("x"))
	failed := event.ToolResult("a", "Read", event.Text("no such file"))
	failed.IsError = true
	got := shows(t, 0, false, false,
		says(event.Assistant,
			event.Reasoning("because\nof this", "sig"), event.Reasoning("", "sig"),
			event.Image("image/png", event.BlobRef{Blob: digest, Bytes: 2048}),
			event.Part{Type: event.DocumentPart, Name: "a.pdf", MediaType: "application/pdf", URL: "https://example.com/a.pdf"},
			event.Opaque("container", jsontext.Value(`{"id":"c1"}`)),
			event.Part{Type: event.ServerToolCallPart, CallID: "s", Name: "web_search", Arguments: jsontext.Value(`"plain"`)},
		),
		says(event.Tool, failed),
		says(event.Tool, event.Part{Type: event.ToolResultPart, CallID: "b", Name: "Bash", IsError: true, Interrupted: true}),
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

// The text of a model or a tool cannot send escape sequences to the terminal.
func TestNoEscapeSequenceOfATranscriptReachesTheTerminal(t *testing.T) {
	evil := "\x1b[2J\u009b"
	quoted := `"` + `\u001b[2J` + `"`
	got := shows(t, 9, false, false,
		event.Session{Title: evil, Agent: evil},
		says(event.User, event.Text(evil)),
		says(event.Assistant, calls(evil, evil, `{`+quoted+`:`+quoted+`}`), event.Opaque(evil, jsontext.Value(quoted)),
			event.Part{Type: event.ImagePart, Name: evil, MediaType: evil, URL: evil}),
		says(event.Tool, event.ToolResult("other"+evil, evil, event.Text(evil))),
	)
	if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && terminal.Control(r) }); i >= 0 {
		t.Errorf("control character %q in\n%s", got[i], got)
	}
}

func TestColour(t *testing.T) {
	user := says(event.User, event.Text("hi"))
	if got := shows(t, 0, false, true, user); !strings.Contains(got, "\x1b[32muser\x1b[0m") {
		t.Errorf("no colour: %q", got)
	}
	if got := shows(t, 0, false, false, user); strings.Contains(got, "\x1b") {
		t.Errorf("colour: %q", got)
	}
}

// Messages that are not from a user or a model are folded after fewer lines.
func TestInstructionsAreFoldedSooner(t *testing.T) {
	for _, test := range []struct {
		role   event.Role
		hidden string
	}{
		{event.System, "30 more lines\n"},
		{event.Developer, "30 more lines\n"},
		{event.User, ""},
		{event.Assistant, ""},
	} {
		got := shows(t, 100, false, false, says(test.role, event.Text(numbered(40))))
		if _, hidden, _ := strings.Cut(got, "\n  … "); hidden != test.hidden {
			t.Errorf("%s: hidden is %q, want %q", test.role, hidden, test.hidden)
		}
		if full := shows(t, 100, true, false, says(test.role, event.Text(numbered(40)))); !strings.HasSuffix(full, "  line 40\n") {
			t.Errorf("%s: --full shows\n%s", test.role, full)
		}
	}
}

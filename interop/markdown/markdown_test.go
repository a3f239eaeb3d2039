package markdown_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/fence"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/markdown"
)

var update = flag.Bool("update", false, "write the golden text anew")

func write(t testing.TB, log *eventlog.Log) string {
	t.Helper()
	var text bytes.Buffer
	if err := markdown.Write(t.Context(), &text, log, "talk", eventlog.All(), nil); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func message(role event.Role, parts ...event.Part) event.Message {
	return event.Message{Role: role, Parts: parts}
}

func TestGoldenText(t *testing.T) {
	log := importtest.NewLog(t)
	failed := event.ToolResult("c2", "look", event.Text("no such\n```\nfile"))
	failed.IsError = true
	importtest.Say(t, log, "talk", event.Session{Title: "Pixels & *boxes*", Agent: "painter"},
		message(event.User, event.Text("What is this?\n# Now\nTitle\n===\n<b>`<i>`</b> ![x](http://example.org/x.png)"),
			event.Part{Type: event.ImagePart, MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")},
			event.Part{Type: event.ImagePart, URL: "https://example.org/a.png"}),
		message(event.Assistant, event.Reasoning("Two\nlooks </details>", ""), event.Text("So:\n~~~go\nx := \"```\"\nand more"),
			event.ToolCall("c1", "look", []byte(`{"at":"a`+"`"+`b"}`)), event.ToolCall("c2", "look", []byte(`{"path":"a.txt","script":"one\ntwo"}`)), event.ToolCall("c3", "look", nil)),
		message(event.Tool, event.ToolResult("c1", "look", event.Text(strings.Repeat("<line>\n", 13)))),
		message(event.Tool, failed),
		event.Compaction{Covers: event.Stretch{From: 2, To: 5}, Summary: "They looked."},
		message(event.Assistant, event.Part{Type: event.ReasoningPart, Encrypted: "eHl6"}, event.Text("One pixel.")),
	)
	text := write(t, log)
	golden := filepath.Join("testdata", "talk.md")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("text (+):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	log := importtest.NewLog(t)
	if err := markdown.Write(t.Context(), &bytes.Buffer{}, log, "talk", eventlog.All().OnPath(), nil); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("a missing session: %v", err)
	}
	importtest.Say(t, log, "talk", message(event.User, event.Text("hi")))
	if err := markdown.Write(t.Context(), fullDisk{}, log, "talk", eventlog.All().OnPath(), nil); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

func TestNilArguments(t *testing.T) {
	if err := markdown.Write(t.Context(), nil, importtest.NewLog(t), "talk", eventlog.All().OnPath(), nil); err == nil || !strings.Contains(err.Error(), "writer is nil") {
		t.Errorf("nil writer: %v", err)
	}
	if err := markdown.Write(t.Context(), &bytes.Buffer{}, nil, "talk", eventlog.All().OnPath(), nil); err == nil || !strings.Contains(err.Error(), "log is nil") {
		t.Errorf("nil log: %v", err)
	}
}

var errFull = errors.New("full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

var (
	ownLine     = regexp.MustCompile(`^(?:<details>|</details>|<summary>[^<>]*</summary>|## Turn \d+|---)$`)
	highHeading = regexp.MustCompile(`^[ >]*#{1,3}([ \t]|$)`)
	tag         = regexp.MustCompile(`<[a-zA-Z/!?]`)
)

// plain returns a line of Markdown without its code spans and escapes.
func plain(line string) string {
	var rest strings.Builder
	for len(line) > 0 {
		switch run := len(line) - len(strings.TrimLeft(line, "`")); {
		case run > 0:
			rest.WriteByte(' ')
			fence := line[:run]
			line = line[run:]
			for at, n := 0, 0; at < len(line); at += n {
				at += len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
				n = max(1, strings.IndexByte(line[at:]+"`", '`'))
				if at+n <= len(line) && strings.HasPrefix(line[at+n:], fence) && !strings.HasPrefix(line[at+n+run:], "`") && !strings.Contains(line[:at+n], "|") {
					line = line[at+n+run:]
					break
				}
			}
		case line[0] == '\\' && len(line) > 1:
			rest.WriteByte(' ')
			line = line[2:]
		default:
			rest.WriteByte(line[0])
			line = line[1:]
		}
	}
	return rest.String()
}

// check returns the first content that leaves its place: a tag that the page did not
// write, an external image, an open code block or details element, or an extra
// heading of the page's levels.
func check(text string, headings int) string {
	open := 0
	for _, s := range fence.Split(text) {
		if s.Code {
			continue
		}
		for line := range strings.SplitSeq(s.Text, "\n") {
			switch plain := plain(line); {
			case line == "<details>":
				open++
			case line == "</details>":
				open--
			case highHeading.MatchString(line):
				headings--
				if tag.MatchString(plain) {
					return "a tag: " + line
				}
			case ownLine.MatchString(line):
			case tag.MatchString(plain):
				return "a tag: " + line
			case strings.Contains(plain, "![") && !strings.Contains(plain, "](data:image/"):
				return "an image: " + line
			}
			if open < 0 || open > 1 {
				return "details end or begin: " + line
			}
		}
	}
	switch {
	case open != 0:
		return "details are left open"
	case headings != 0:
		return "another number of headings"
	}
	return ""
}

// Text of a session stays inside its place.
func FuzzWrite(f *testing.F) {
	for _, s := range []string{"", "</details>\n# x", "```\n</details>", "~~~\n````\n", "`<b>`", "`a\n- <b>`", "|`a | <b>`|", "\\`<b>`", "x\n===\n\n# y\n## z", "> # x", "![a](http://b)", "``<b> ` ``", "\x1b[31m\r\n\x80", "- ```\n  <b>"} {
		f.Add(s, strings.Repeat(s+"\n", 20))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "\ufffd"), strings.ToValidUTF8(b, "\ufffd")
		log := importtest.NewLog(t)
		importtest.Say(t, log, "talk", event.Session{Title: a + ".", Agent: b}, message(event.User, event.Text(a)),
			message(event.Assistant, event.Reasoning(b, ""), event.Text(b), event.ToolCall("c", "n"+a, nil), event.Opaque("k"+a, []byte(`{}`))),
			message(event.Tool, event.ToolResult("c", "n", event.Text(b), event.Text(a))),
			event.Compaction{Summary: b, Strategy: a}, event.Handoff{ToAgent: "n" + a, Reason: b})
		text := write(t, log)
		if problem := check(text, 6); problem != "" {
			t.Fatalf("%s in\n%s", problem, text)
		}
	})
}

package gemini_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/gemini"
	"github.com/convlog/convlog/projection"
)

func conversationWith(messages ...event.Message) interop.Conversation {
	c := interop.Conversation{ID: "5f0c1a52-0000-4000-8000-000000000001", CWD: "/home/ada/My Work"}
	for i, m := range messages {
		c.History = append(c.History, projection.Entry{Seq: int64(i + 2), Message: m})
	}
	return c
}

func ask(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

// Gemini CLI leaves messages of the user out that look like a command, or have no text.
func TestWrittenMessagesAreNoCommands(t *testing.T) {
	image := event.Part{Type: event.ImagePart, MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
	for _, part := range []event.Part{event.Text(" /tmp is full"), event.Text("?"), event.Text("<hook_context>"), image} {
		w, err := gemini.Format{}.Write(conversationWith(event.Message{Role: event.User, Parts: []event.Part{part}}))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(w.Body), `"content":[{"text":"The user's message:\n"},`) {
			t.Errorf("%+v: %s", part, w.Body)
		}
	}
}

// The calls of an answer are in one record with their results, however the history orders them.
func TestWrittenCallsOfAnAnswerAreTogether(t *testing.T) {
	say := func(parts ...event.Part) event.Message {
		return event.Message{Role: event.Assistant, Group: "g", Parts: parts}
	}
	result := func(id string) event.Message {
		r := event.ToolResult(id, "")
		r.Content = []event.Part{event.Text("result " + id)}
		return event.Message{Role: event.Tool, Parts: []event.Part{r}}
	}
	call := func(id string) event.Part { return event.ToolCall(id, "read_file", []byte(`{}`)) }
	w, err := gemini.Format{}.Write(conversationWith(
		ask("Read both."), say(event.Text("I read.")), say(call("a")), result("a"), say(call("b")), result("b"), say(event.Text("Done.")),
	))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(w.Body)), "\n")
	if len(lines) != 4 || strings.Count(lines[2], `"functionCall"`) > 0 || strings.Count(lines[2], `"functionResponse"`) != 2 {
		t.Errorf("%d lines: %s", len(lines), w.Body)
	}
	if want := []int64{2, 7, 8}; len(w.Seqs) != 3 || w.Seqs[0] != want[0] || w.Seqs[1] != want[1] || w.Seqs[2] != want[2] {
		t.Errorf("seqs %v, not %v", w.Seqs, want)
	}
}

// The folder of a working directory is in the registry, or has a mark, or is the one that the
// program makes next.
func TestWrittenFileIsInTheFolderOfTheDirectory(t *testing.T) {
	tmp := filepath.Join(t.TempDir(), "tmp")
	put := func(name, text string) {
		path := filepath.Join(tmp, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := conversationWith(ask("hello"))
	check := func(want string) {
		t.Helper()
		w, err := gemini.Format{}.Write(c)
		if err != nil {
			t.Fatal(err)
		}
		if folder, _, _ := strings.Cut(w.Path, "/"); folder != want {
			t.Errorf("folder %q, not %q", folder, want)
		}
	}
	check("my-work")
	c.Folder = tmp
	check("my-work")
	put("my-work/.project_root", "/elsewhere/my work\n")
	check("my-work-1")
	put("my-work-1/.project_root", "/home/ada/My Work\n")
	check("my-work-1")
	put("../projects.json", `{"projects":{"/home/ada/My Work":"named"}}`)
	check("named")
	put("../projects.json", `{"projects":`)
	if _, err := (gemini.Format{}).Write(c); err == nil || !strings.Contains(err.Error(), "projects.json") {
		t.Errorf("got error %v", err)
	}
}

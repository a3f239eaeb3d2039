package formats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/upkeep/erase"
)

// redactStarts redacts the session_started events of a log and returns their number.
func redactStarts(t *testing.T, log *eventlog.Log) (redacted int) {
	t.Helper()
	for _, id := range importtest.Sessions(t, log) {
		first := importtest.Events(t, log, id)[0]
		if first.Type != event.SessionStarted || first.SessionID != id {
			continue // a fork starts with events of its parent
		}
		if _, err := erase.Redact(t.Context(), log, id, []int64{1}, erase.RedactOptions{Reason: "asked for"}); err != nil {
			t.Fatal(err)
		}
		redacted++
	}
	return redacted
}

// A session_started can be redacted. Importing the same files again then adds
// nothing, and succeeds.
func TestRedactedStartsAreRecognized(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			log, paths := importtest.NewLog(t), folders(t, format)
			importtest.Files(t, log, format, paths...)
			if redactStarts(t, log) == 0 {
				t.Fatal("no session was started")
			}
			table, err := interop.Import(t.Context(), log, []interop.Format{format}, paths)
			if total := table.Total(); err != nil || total.Events != 0 {
				t.Errorf("import again: %+v, %v", total, err)
			}
			importtest.Verify(t, log)
		})
	}
}

// Importing the files again does not restore redacted events.
func TestRedactedEventsStayRedacted(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			log, paths := importtest.NewLog(t), folders(t, format)
			importtest.Files(t, log, format, paths...)
			for _, id := range importtest.Sessions(t, log) {
				for _, e := range importtest.Events(t, log, id) {
					if e.SessionID != id || e.Type.Scope() == event.TreeScope || e.Type == event.Redacted {
						continue
					}
					if _, err := erase.Redact(t.Context(), log, id, []int64{e.Seq}, erase.RedactOptions{Reason: "asked for"}); err != nil {
						t.Fatal(err)
					}
				}
			}
			table, err := interop.Import(t.Context(), log, []interop.Format{format}, paths)
			if total := table.Total(); err != nil || total.Events != 0 {
				t.Errorf("import again: %+v, %v", total, err)
			}
			importtest.Verify(t, log)
		})
	}
}

// A session with a redacted start still grows with its file.
func TestSessionsWithRedactedStartGrow(t *testing.T) {
	root := filepath.Join("..", "..", "testdata", "transcripts")
	for format, file := range map[string]string{
		"claude": "claude/growing-2.jsonl", "codex": "codex/whole.jsonl", "pi": "pi/version-1.jsonl",
		"gemini": "gemini/chats/session-2026-04-02T08-00-5b0c1a7f.jsonl",
	} {
		t.Run(format, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			f := named(t, format)
			log, text := importtest.NewLog(t), strings.TrimSuffix(string(b), "\n")
			short := text[:strings.LastIndexByte(text, '\n')+1]
			importtest.Text(t, log, f, "f.jsonl", short)
			redactStarts(t, log)
			if got := importtest.Text(t, log, f, "f.jsonl", text); got.Imported+got.Raw != 1 {
				t.Errorf("import of one line more: %+v", got)
			}
			importtest.Again(t, log, f, "f.jsonl", text)
		})
	}
}

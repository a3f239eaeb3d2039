package erase_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// A torn tail of a session that is not rewritten has the text in another case: Match
// reports the file.
func TestMatchReportsFilesInAnyCase(t *testing.T) {
	dir := t.TempDir()
	log := eventlog.Open(jsonl.New(dir))
	defer log.Close()
	for session, text := range map[string]string{"a": "hello", "b": "Hunter2"} {
		if _, err := log.Append(t.Context(), session, eventlog.New(), event.UserMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.OpenFile(filepath.Join(dir, "a.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"said":"HUNTER2`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := search.Literal("hunter2")
	if err != nil {
		t.Fatal(err)
	}
	done, err := erase.Match(t.Context(), log, p, nil)
	if err != nil || len(done.Erased) != 1 || len(done.Files) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

package jsonl_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// listedDir counts the listings of the root folder.
type listedDir struct {
	jsonl.FS
	listings int
}

func (d *listedDir) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "." {
		d.listings++
	}
	return d.FS.ReadDir(name)
}

// The removal of many old sessions lists the folder once for their forks and once for
// their saved files, and removes the torn tails that other processes save or rename meanwhile.
func TestRemoveEachListsTheFolderOnce(t *testing.T) {
	dir := t.TempDir()
	files := &listedDir{FS: jsonl.Dir(dir)}
	l, other := eventlog.Open(jsonl.New(dir, jsonl.Options{FS: files})), eventlog.Open(jsonl.New(dir))
	t.Cleanup(func() { _, _ = l.Close(), other.Close() })
	path := func(session string) string { return filepath.Join(dir, session+".jsonl") }
	var sessions []string
	for i := range 10 {
		session := fmt.Sprint("s", i)
		sessions = append(sessions, session)
		if _, err := l.Append(t.Context(), session, eventlog.New(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
		if i == 5 {
			tear(t, path(session))
		}
		if err := os.Chtimes(path(session), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	tails, _ := eventlog.As[eventlog.TailKeeper](other.Store())
	tear(t, path("s8"))
	if _, _, err := tails.CutTail(t.Context(), "s8"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path("s8"), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	files.listings = 0
	if err := erase.RemoveEach(t.Context(), l, sessions[:4], func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if files.listings != 2 {
		t.Errorf("%d listings, want 2", files.listings)
	}
	err := erase.RemoveEach(t.Context(), l, sessions[4:], func(removed string) error {
		var err error
		switch removed {
		case "s6":
			tear(t, path("s9")) // the process is killed before it cuts the tail off
			tear(t, path("s7"))
			_, err = other.Append(t.Context(), "s7", eventlog.Any(), event.UserMessage("again"))
		case "s7":
			var head event.Head
			if head, err = other.Head(t.Context(), "s8"); err == nil {
				err = tails.ForgetCut(t.Context(), "s8", head) // renames the saved tail
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "s*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// tear adds a torn tail to a session's file.
func tear(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString("{torn")
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// An append fails if the database, its folder or its write-ahead log was removed, replaced
// or moved while the store was open: nobody would find the event. Earlier events stay.
func TestMovedFiles(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed":            os.Remove,
		"moved":              func(path string) error { return os.Rename(path, path+".old") },
		"replaced by a copy": func(path string) error { return replaceByCopy(path, path) },
		"folder moved": func(path string) error {
			return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old")
		},
		"log removed": func(path string) error { return os.Remove(path + "-wal") },
		"log and its index removed": func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm"))
		},
		"all removed": func(path string) error {
			return errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store", "s.db")
			s := New(path)
			head := add(t, s, "a", event.Head{}, 3, "x")
			must(t, s.write(t.Context(), emptyCommit{}, true))
			must(t, change(path))
			batch := eventChain("a", head, 1, "y")
			for range 2 {
				want(t, eventlog.ErrMoved, s.Append(t.Context(), "a", head, batch, true))
			}
			must(t, s.Close())
			if _, err := os.Stat(path); err != nil {
				return
			}
			events, err := collect(open(t, path).Read(t.Context(), "a", eventlog.Span{}))
			if err != nil || len(events) != 3 {
				t.Errorf("%d events, %v", len(events), err)
			}
		})
	}
}

func replaceByCopy(path, to string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".new", b, 0o600), os.Rename(path+".new", to))
}

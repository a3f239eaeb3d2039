package jsonl

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Every operation fails if the folder was removed, replaced or moved while the store was
// open. Nobody would find new events there.
func TestMovedFolder(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700))
		},
		"parent moved": func(dir string) error { return os.Rename(filepath.Dir(dir), filepath.Dir(dir)+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "store")
			s := New(dir)
			events := sealed(t, "a", 1, 1)
			must(t, s.Append(t.Context(), "a", event.Head{}, events[:1], false))
			_, err := s.Lease(t.Context(), "x")
			must(t, err)
			must(t, change(dir))
			wantErr(t, s.Append(t.Context(), "a", events[0].Head(), events[1:], false), eventlog.ErrMoved)
			wantErr(t, s.Append(t.Context(), "b", event.Head{}, sealed(t, "b", 1), false), eventlog.ErrMoved)
			_, err = s.Lease(t.Context(), "y")
			wantErr(t, err, eventlog.ErrMoved)
			for _, err := range s.Read(t.Context(), "a", eventlog.Span{}) {
				wantErr(t, err, eventlog.ErrMoved)
			}
			for _, err := range s.Sessions(t.Context()) {
				wantErr(t, err, eventlog.ErrMoved)
			}
			must(t, s.Close())
		})
	}
}

// A program may change its working directory while a store with a relative path is open.
func TestWorkingDirectoryChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	s := New("store")
	events := sealed(t, "a", 1, 1)
	must(t, s.Append(t.Context(), "a", event.Head{}, events[:1], false))
	t.Chdir(t.TempDir())
	must(t, s.Append(t.Context(), "a", events[0].Head(), events[1:], false))
	must(t, s.Close())
}

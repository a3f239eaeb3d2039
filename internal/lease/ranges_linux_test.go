package lease

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// A lock file that was removed or replaced is an error: other processes lock the new
// file.
func TestMovedLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	open := func() *Table { return Files(func() (string, error) { return path, nil }, false) }
	old := open()
	held := take(t, old, "x")
	for range 2 { // removed, then replaced
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		wantErr(t, old, "y", eventlog.ErrMoved)
		if _, err := old.Leased(t.Context(), "y"); !errors.Is(err, eventlog.ErrMoved) {
			t.Errorf("got error %v, want ErrMoved", err)
		}
		take(t, open(), "y")
		wantErr(t, old, "y", eventlog.ErrMoved)
	}
	if err := errors.Join(held.Release(), old.Close()); err != nil {
		t.Error(err)
	}
}

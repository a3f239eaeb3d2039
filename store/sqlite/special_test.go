package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/internal/regular/special"
)

// A special file in the place of the database, or of a file beside it, is an error with
// its path. No call waits for the other end of a pipe, and Check reports a lock file.
func TestSpecialFiles(t *testing.T) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-lock", "-lease"} {
		for _, kind := range special.Kinds() {
			t.Run("s.db"+suffix+"/"+kind.Name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "s.db")
				kind.Make(t, path+suffix)
				for _, readOnly := range []bool{false, true} {
					if readOnly && suffix != "" {
						continue // there is no database to read
					}
					l := eventlog.Open(New(path, Options{ReadOnly: readOnly}))
					err := l.Hold(t.Context(), func(context.Context) error { return nil })
					if suffix == "-lease" {
						_, err = l.Store().(*Store).Lease(t.Context(), "x")
					}
					var special *regular.Error
					if !errors.As(err, &special) || special.Path != path+suffix {
						t.Errorf("read-only %v: got error %v, want a regular.Error at %s", readOnly, err, path+suffix)
					}
					if suffix == "-lock" || suffix == "-lease" {
						wantReported(t, l, path+suffix)
					}
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// wantReported checks that Check reports the path, and checks the database all the same.
func wantReported(t *testing.T, l *eventlog.Log, path string) {
	t.Helper()
	found := 0
	for d, err := range l.Store().(*Store).Check(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Path == path && d.Rule == "file" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("Check reports %s %d times", path, found)
	}
}

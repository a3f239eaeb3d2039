package jsonl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/eventlog/logtest"
	"github.com/convlog/convlog/store/storetest"
)

// The suites of stores and logs. Syncs are skipped, for speed.
func TestStore(t *testing.T) { storetest.Run(t, openHarness) }

func TestLog(t *testing.T) {
	logtest.Run(t, func(t testing.TB) storetest.Harness {
		h := openHarness(t)
		h.Sample = 1
		return h
	})
}

func openHarness(t testing.TB) storetest.Harness {
	dir := filepath.Join(t.TempDir(), "store")
	open := func(readOnly bool) func() (eventlog.Store, error) {
		return func() (eventlog.Store, error) {
			return New(dir, Options{ReadOnly: readOnly, FS: newFaults(dir)}), nil
		}
	}
	return storetest.Harness{Open: open(false), OpenReadOnly: open(true), Path: dir, Damage: damager(dir)}
}

// damager returns a function that edits the lines of a session's file.
func damager(dir string) func(session string, edit func(lines []string) []string) error {
	return func(session string, edit func(lines []string) []string) error {
		path := filepath.Join(dir, fileOf(session))
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := slices.Collect(strings.Lines(string(b)))
		return os.WriteFile(path, []byte(strings.Join(edit(lines), "")), 0o600)
	}
}

// The error of a file that cannot be opened has the full path.
func TestOpenErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	must(t, os.Mkdir(path, 0o700))
	events := sealed(t, "a", 1)
	err := open(t, dir).Append(t.Context(), "a", event.Head{}, events, false)
	if err == nil || !strings.Contains(err.Error(), path+" is a folder") {
		t.Errorf("append: %v, want %s named", err, path)
	}
}

package logtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/store/storetest"
	"github.com/convlog/convlog/upkeep/erase"
)

// A store with blobs in another store keeps all promises. The smaller forms check a part of
// them on files.
func TestWithBlobs(t *testing.T) {
	for name, open := range map[string]func(t testing.TB) storetest.Harness{"jsonl and sqlite": jsonlAndSqlite, "memory and memory": memoryAndMemory} {
		t.Run(name, func(t *testing.T) {
			t.Run("store", func(t *testing.T) { storetest.Run(t, open) })
			t.Run("log", func(t *testing.T) { Run(t, open) })
		})
	}
}

// With lines in sqlite and blobs in jsonl, erasures leave no bytes, and a search finds text
// in blobs.
func TestWithBlobsOfFiles(t *testing.T) {
	var some []group
	for _, g := range groups() {
		if slices.Contains([]string{"redact", "remove", "search", "garbage"}, g.Name) {
			some = append(some, g)
		}
	}
	runGroups(t, sqliteAndJSONL, some)
}

// A redaction removes the leftovers of interrupted writes from both stores: they may contain
// the redacted data.
func TestRedactionSweepsBodies(t *testing.T) {
	dir := t.TempDir()
	store, err := eventlog.WithBlobs(memory.New(), jsonl.New(dir))
	if err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(store, eventlog.Options{SpillOver: 10})
	defer log.Close()
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("a secret body")); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(dir, "blobs", "tmp-1")
	if err := os.WriteFile(leftover, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Redact(t.Context(), log, "s", []int64{1}, erase.RedactOptions{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(leftover); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover of an interrupted write stays: %v", err)
	}
}

func jsonlAndSqlite(t testing.TB) storetest.Harness {
	dir := t.TempDir()
	lines, blobs := filepath.Join(dir, "s"), filepath.Join(dir, "s-blobs.db")
	return storetest.Harness{
		Path:   lines,
		Sample: 3,
		Open:   func() (eventlog.Store, error) { return eventlog.WithBlobs(jsonl.New(lines), sqlite.New(blobs)) },
		OpenReadOnly: func() (eventlog.Store, error) {
			return eventlog.WithBlobs(jsonl.New(lines, jsonl.Options{ReadOnly: true}), sqlite.New(blobs, sqlite.Options{ReadOnly: true}))
		},
	}
}

func sqliteAndJSONL(t testing.TB) storetest.Harness {
	dir := t.TempDir()
	lines, blobs := filepath.Join(dir, "s.db"), filepath.Join(dir, "s.db-blobs")
	return storetest.Harness{
		Path:   lines,
		Sample: 1,
		Open:   func() (eventlog.Store, error) { return eventlog.WithBlobs(sqlite.New(lines), jsonl.New(blobs)) },
	}
}

func memoryAndMemory(testing.TB) storetest.Harness {
	lines, blobs := memory.New(), memory.New()
	return storetest.Harness{
		Sample:       1,
		Open:         func() (eventlog.Store, error) { return eventlog.WithBlobs(lines.Handle(), blobs.Handle()) },
		OpenReadOnly: func() (eventlog.Store, error) { return eventlog.WithBlobs(lines.ReadOnly(), blobs.ReadOnly()) },
		Damage:       lines.Damage,
	}
}

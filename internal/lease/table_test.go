package lease

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// kinds are the mechanisms, each with a function that opens tables which exclude each
// other.
func kinds(t *testing.T) map[string]func() *Table {
	path := filepath.Join(t.TempDir(), "lease")
	file := func() (string, error) { return path, nil }
	var memory Memory
	return map[string]func() *Table{
		"files":           func() *Table { return newTable(newFiles(file)) },
		"memory":          memory.Table,
		"of this machine": func() *Table { return Files(func() (string, error) { return path + "-os", nil }, false) },
	}
}

func TestTables(t *testing.T) {
	for kind, open := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := open(), open()
			x := take(t, a, "x")
			take(t, b, "y")
			for _, table := range []*Table{a, b} {
				wantErr(t, table, "x", eventlog.ErrLeased)
				wantErr(t, table, "y", eventlog.ErrLeased)
				wantLeased(t, table, "x", true)
				wantLeased(t, table, "z", false)
			}
			if err := errors.Join(x.Release(), x.Release()); err != nil {
				t.Fatal(err)
			}
			take(t, b, "x")
			wantErr(t, a, "x", eventlog.ErrLeased)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			take(t, a, "x")
			take(t, a, "y")
			wantErr(t, b, "z", eventlog.ErrClosed)
			if err := errors.Join(a.Close(), a.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A lock file per lease is removed when the lease ends. A file that stays after a kill
// is used again.
func TestFilesAreRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	table := newTable(newFiles(func() (string, error) { return path, nil }))
	at, err := slotOf(t.Context(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	stale := fmt.Sprintf("%s-%016x", path, int64(at))
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantLeased(t, table, "killed", false)
	take(t, table, "killed")
	take(t, table, "other")
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 0 {
		t.Errorf("files stay: %v, %v", left, err)
	}
}

func take(t *testing.T, table *Table, name string) eventlog.Lease {
	t.Helper()
	l, err := table.Lease(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantErr(t *testing.T, table *Table, name string, want error) {
	t.Helper()
	if _, err := table.Lease(t.Context(), name); !errors.Is(err, want) {
		t.Fatalf("lease %q: got error %v, want %v", name, err, want)
	}
}

func wantLeased(t *testing.T, table *Table, name string, want bool) {
	t.Helper()
	got, err := table.Leased(t.Context(), name)
	if err != nil || got != want {
		t.Fatalf("leased %q: got %v, %v, want %v", name, got, err, want)
	}
}

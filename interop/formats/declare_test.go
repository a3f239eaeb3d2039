package formats_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// Two files that write to one session own a common id, in every format. Each file is
// in the test twice, so that every session with an id of its own has two files.
func TestFilesOfOneSessionOwnACommonID(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS("../../testdata/transcripts")); err != nil {
			t.Fatal(err)
		}
	}
	table, err := interop.Import(t.Context(), importtest.NewLog(t), formats.All(), []string{dir})
	if err != nil && len(table.Rows) == 0 {
		t.Fatal(err)
	}
	owns, shared := map[string][]string{}, map[string]int{}
	for i := range table.Rows {
		owns[table.Rows[i].Path] = declared(t, &table.Rows[i]).Owns
	}
	for i := range table.Rows {
		for j := range table.Rows[:i] {
			a, b := &table.Rows[i], &table.Rows[j]
			if !common(a.Sessions, b.Sessions) {
				continue
			}
			shared[a.Format]++
			if !common(owns[a.Path], owns[b.Path]) {
				t.Errorf("%s and %s write to one session, and own %q and %q", a.Path, b.Path, owns[a.Path], owns[b.Path])
			}
		}
	}
	for _, name := range []string{"claude", "codex", "pi", "gemini", "opencode", "cline", "openhands", "tau-bench", "inspect", "oasst", "entire", "stream", "messages"} {
		if shared[name] == 0 {
			t.Errorf("no two files of %s write to one session", name)
		}
	}
}

func common(a, b []string) bool {
	return slices.ContainsFunc(a, func(id string) bool { return slices.Contains(b, id) })
}

// declared are the ids of the file of a row.
func declared(t *testing.T, row *interop.Row) interop.IDs {
	t.Helper()
	format := named(t, row.Format)
	d, ok := format.(interop.Declarer)
	if !ok {
		return interop.IDs{}
	}
	src, err := interop.File(row.Path)
	if err != nil {
		t.Fatal(err)
	}
	return d.Declare(src)
}

// A file that cannot be read declares nothing, and its import says why.
func TestDeclareOfAMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	src := interop.Source{Name: missing, Open: func() (io.ReadCloser, error) { return os.Open(missing) }}
	for _, format := range formats.All() {
		if d, ok := format.(interop.Declarer); ok && format.Name() != "oasst" && len(d.Declare(src).Owns) > 0 {
			t.Errorf("%s declares %+v", format.Name(), d.Declare(src))
		}
		if _, err := format.Import(t.Context(), importtest.NewLog(t), src); err == nil {
			t.Errorf("%s imports a missing file", format.Name())
		}
	}
}

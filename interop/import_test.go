package interop_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/memory"
)

// fake is a format of files that begin with its name. It imports nothing.
type fake struct {
	name     string
	fail     error
	imported *journal
}

// journal has the imported records.
type journal struct {
	mu    sync.Mutex
	files []string
}

func (j *journal) note(file string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.files = append(j.files, file)
}

func (f fake) Name() string                      { return f.name }
func (f fake) Detect(_ string, head []byte) bool { return strings.HasPrefix(string(head), f.name) }
func (f fake) Declare(src interop.Source) interop.IDs {
	if strings.Contains(src.Name, "later") {
		return interop.IDs{Needs: []string{"first"}}
	}
	return interop.IDs{Owns: []string{"first"}}
}

func (f fake) Import(_ context.Context, _ *eventlog.Log, src interop.Source) (interop.Result, error) {
	f.imported.note(filepath.Base(src.Name))
	r := interop.Result{Records: 2, Imported: 1, Events: 3, Sessions: []string{"s"}}
	r.Rejected = []interop.Rejection{{Line: 2, Offset: 9, Reason: "torn"}}
	return r, f.fail
}

func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t *testing.T, formats []interop.Format, paths ...string) (interop.Table, error) {
	t.Helper()
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { log.Close() })
	return interop.Import(t.Context(), log, formats, paths)
}

func TestImportWalksFolders(t *testing.T) {
	dir := files(t, map[string]string{"b": "one", "a/z": "two", "a/later": "one", "notes.txt": "-", "a/empty": ""})
	var order journal
	formats := []interop.Format{fake{name: "one", imported: &order}, fake{name: "two", imported: &order}}
	table, err := run(t, formats, dir, filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(order.files); n != 3 || order.files[2] != "later" {
		t.Errorf("imported %v, want what is later at the end", order.files)
	}
	var rows []string
	for _, row := range table.Rows {
		rows = append(rows, filepath.Base(row.Path))
	}
	if diff := cmp.Diff([]string{"z", "b", "later"}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "a/empty"), filepath.Join(dir, "notes.txt")}, table.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	total := table.Total()
	if total.Records != 6 || total.Events != 9 || len(total.Rejected) != 3 || len(total.Sessions) != 1 {
		t.Errorf("total is %+v", total)
	}
	if table.Rows[0].Format != "two" {
		t.Errorf("the first row is of format %q", table.Rows[0].Format)
	}
}

func TestImportRefusesANamedFileThatIsNoTranscript(t *testing.T) {
	dir := files(t, map[string]string{"a": "one", "notes.txt": "-"})
	var order journal
	_, err := run(t, []interop.Format{fake{name: "one", imported: &order}}, filepath.Join(dir, "a"), filepath.Join(dir, "notes.txt"))
	var format *interop.FormatError
	if !errors.As(err, &format) || filepath.Base(format.Path) != "notes.txt" {
		t.Errorf("error is %v", err)
	}
	if len(order.files) > 0 {
		t.Errorf("%v was imported all the same", order.files)
	}
	if _, err := run(t, nil, filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

func TestImportGoesOnAfterAFileThatFails(t *testing.T) {
	dir := files(t, map[string]string{"a": "bad", "b": "one"})
	var order journal
	failed := errors.New("no luck")
	table, err := run(t, []interop.Format{fake{"bad", failed, &order}, fake{"one", nil, &order}}, dir)
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), filepath.Join(dir, "a")) {
		t.Errorf("error is %v", err)
	}
	if len(order.files) != 2 || table.Rows[0].Err == nil || table.Rows[1].Err != nil {
		t.Errorf("imported %v, rows %+v", order.files, table.Rows)
	}
}

// A nil context, log or format, a source that cannot be opened, and Forced without a
// format are errors.
func TestMisuseIsAnError(t *testing.T) {
	var none context.Context
	var nothing *interop.Found
	log := eventlog.Open(memory.New())
	defer log.Close()
	path := filepath.Join(files(t, map[string]string{"a": "one"}), "a")
	formats := []interop.Format{fake{name: "one", imported: new(journal)}}
	found, err := interop.Find(t.Context(), formats, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		call func() error
		want string
	}{
		"find without a context": {func() error { _, err := interop.Find(none, formats, nil); return err }, "the context is nil"},
		"import without a context": {
			func() error { _, err := interop.Import(none, log, formats, []string{path}); return err }, "the context is nil",
		},
		"import what was found without a context": {
			func() error { _, err := found.Import(none, log); return err }, "the context is nil",
		},
		"import without a log": {
			func() error { _, err := interop.Import(t.Context(), nil, formats, []string{path}); return err }, "the log is nil",
		},
		"import what was found without a log": {func() error { _, err := found.Import(t.Context(), nil); return err }, "the log is nil"},
		"import nothing":                      {func() error { _, err := nothing.Import(t.Context(), log); return err }, "call Find first"},
		"a nil format": {
			func() error { _, err := interop.Find(t.Context(), []interop.Format{nil}, []string{path}); return err }, "format 1 of 1 is nil",
		},
		"a source without Open": {
			func() error {
				_, err := interop.Find(t.Context(), formats, nil, interop.Options{Sources: []interop.Source{{Name: "x"}}})
				return err
			}, `source "x" has no Open function`,
		},
		"forced without a format": {
			func() error {
				_, err := interop.Find(t.Context(), nil, []string{path}, interop.Options{Forced: true})
				return err
			},
			"not a transcript of a known format",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := test.call(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
	if _, err := found.Import(t.Context(), nil); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("a nil log gives %v", err)
	}
}

// A call without options has none, and of several the first counts.
func TestOptionsAreOptional(t *testing.T) {
	path := filepath.Join(files(t, map[string]string{"a": "one"}), "a")
	log := eventlog.Open(memory.New())
	defer log.Close()
	formats := []interop.Format{fake{name: "one", imported: new(journal)}}
	if table, err := interop.Import(t.Context(), log, formats, []string{path}); err != nil || len(table.Rows) != 1 {
		t.Errorf("%d rows, error %v", len(table.Rows), err)
	}
	var first, second int
	_, err := interop.Import(t.Context(), log, formats, []string{path},
		interop.Options{Progress: func(interop.Row) { first++ }}, interop.Options{Progress: func(interop.Row) { second++ }})
	if err != nil || first != 1 || second != 0 {
		t.Errorf("progress of %d and %d files, error %v", first, second, err)
	}
}

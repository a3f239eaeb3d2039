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

// journal notes what was imported.
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
func (f fake) Rank(name string, _ []byte) int    { return strings.Count(name, "later") }
func (f fake) Import(_ context.Context, _ *eventlog.Log, src interop.Source) (interop.Result, error) {
	f.imported.note(filepath.Base(src.Name))
	r := interop.Result{Records: 2, Imported: 1, Events: 3, Sessions: []string{"s"}}
	r.Refuse(&interop.RecordError{Line: 2, Offset: 9, Cause: errors.New("torn")})
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
	return interop.Import(t.Context(), log, formats, paths, interop.Options{})
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
	if total.Records != 6 || total.Events != 9 || len(total.Refused) != 3 || len(total.Sessions) != 1 {
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
	if !errors.Is(err, interop.ErrUnknownFormat) || !errors.As(err, &format) || filepath.Base(format.Path) != "notes.txt" {
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

func TestTablePrints(t *testing.T) {
	table := interop.Table{
		Rows: []interop.Row{
			{Path: "a.jsonl", Result: interop.Result{Records: 3, Imported: 2, Events: 4, Sessions: []string{"s"}, Refused: []interop.Refusal{{Line: 3, Offset: 70, Reason: "cut off"}}}},
			{Path: "b.jsonl", Result: interop.Result{Records: 1, Present: 1, Sessions: []string{"s"}}, Err: errors.New("no luck")},
			{Path: "d.jsonl", Result: interop.Result{Records: 1234567}, Err: errors.New("d.jsonl:7: no luck either")},
		},
		Skipped: []string{"c.txt"},
	}
	var b strings.Builder
	if err := table.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.jsonl", "1,234,571 ", "3 files", "rejected: a.jsonl:3 (byte 70): cut off", "stopped: b.jsonl: no luck\n", "stopped: d.jsonl:7: no luck either\n", "skipped: 1 other file: c.txt\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// Package importtest helps to test importers: it imports files and text, draws the
// log after an import, and checks the laws of all imports.
package importtest

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/memory"
)

// TB is a test, or one example of a property.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// NewLog makes a log that is closed with the test.
func NewLog(t TB) *eventlog.Log {
	t.Helper()
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { log.Close() })
	return log
}

// Source is a source with the name and the content.
func Source(name, content string) interop.Source {
	return interop.Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

// ReadFile returns the content of a test file.
func ReadFile(t TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Files imports files and folders. The test fails if the import does.
func Files(t TB, log *eventlog.Log, format interop.Format, paths ...string) interop.Result {
	t.Helper()
	table := Table(t, log, format, paths...)
	return table.Total()
}

// Table imports files and folders, and returns the result of each file. The test
// fails if the import does.
func Table(t TB, log *eventlog.Log, format interop.Format, paths ...string) interop.Table {
	t.Helper()
	table, err := interop.Import(t.Context(), log, []interop.Format{format}, paths)
	if err != nil {
		t.Fatal(err)
	}
	for i := range table.Rows {
		checkSum(t, &table.Rows[i].Result)
	}
	return table
}

// Load imports a file with the name and the content. The test fails if the format
// does not detect the file, or the import fails.
func Load(t TB, log *eventlog.Log, format interop.Format, name, content string) interop.Result {
	t.Helper()
	if head, err := Source(name, content).Head(); err != nil || !format.Detect(name, head) {
		t.Fatalf("%s is not of the format %s", name, format.Name())
	}
	return Text(t, log, format, name, content)
}

// Text imports a file with the name and the content. The test fails if the import
// does.
func Text(t TB, log *eventlog.Log, format interop.Format, name, content string) interop.Result {
	t.Helper()
	got, err := format.Import(t.Context(), log, Source(name, content))
	if err != nil {
		t.Fatalf("import %s: %+v, %v", name, got, err)
	}
	checkSum(t, &got)
	return got
}

// checkSum checks that every record is counted once.
func checkSum(t TB, r *interop.Result) {
	t.Helper()
	if sum := r.Imported + r.Raw + r.Present + r.Skipped + len(r.Rejected); sum != r.Records {
		t.Fatalf("%d records in %+v", sum, *r)
	}
}

// Package documenttest holds what the tests of formats of documents share: what a
// log looks like after an import, and the laws that every import keeps.
package documenttest

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/storetest"
)

// NewLog makes a log that is closed with the test.
func NewLog(t testing.TB) *eventlog.Log {
	t.Helper()
	log := eventlog.Open(storetest.NewMemory())
	t.Cleanup(func() { log.Close() })
	return log
}

// Source is what might stand in a file of that name.
func Source(name, content string) interop.Source {
	return interop.Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

// ReadFile reads a file of the test.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Load imports a file of that name and content, which must be of the format and
// succeed.
func Load(t testing.TB, log *eventlog.Log, format interop.Format, name, content string) interop.Result {
	t.Helper()
	if !format.Detect(name, []byte(content[:min(len(content), interop.HeadBytes)])) {
		t.Fatalf("%s is not of the format %s", name, format.Name())
	}
	got, err := format.Import(t.Context(), log, Source(name, content))
	if err != nil {
		t.Fatalf("import %s: %+v, %v", name, got, err)
	}
	checkSum(t, got)
	return got
}

// checkSum makes sure that every record is counted once.
func checkSum(t testing.TB, r interop.Result) {
	t.Helper()
	if sum := r.Imported + r.Raw + r.Present + r.Held + len(r.Refused); sum != r.Records {
		t.Fatalf("%d records in %+v", sum, r)
	}
}

// Sessions are the ids of the sessions of a log.
func Sessions(t testing.TB, log *eventlog.Log) (ids []string) {
	t.Helper()
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	return ids
}

// Events are all events of a session.
func Events(t testing.TB, log *eventlog.Log, session string) (all []eventlog.Event) {
	t.Helper()
	for e, err := range log.Read(t.Context(), session, eventlog.All) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// Start is what a session says of itself as it starts.
func Start(t testing.TB, log *eventlog.Log, session string) eventlog.Session {
	t.Helper()
	all := Events(t, log, session)
	about, ok, err := all[0].Session()
	if err != nil || !ok {
		t.Fatalf("%s starts with %s, %v", session, all[0].Type, err)
	}
	return about
}

// Messages are those of the active path.
func Messages(t testing.TB, log *eventlog.Log, session string) (all []eventlog.Message) {
	t.Helper()
	for e, err := range log.ActivePath(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok, err := e.Message(); ok || err != nil {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
	}
	return all
}

// Path is what is drawn of the active path, a line for each event.
func Path(t testing.TB, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for e, err := range log.ActivePath(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, Draw(t, &e))
	}
	return lines
}

// Draw is a short line for an event.
func Draw(t testing.TB, e *eventlog.Event) string {
	t.Helper()
	if h, ok, err := e.HeadMove(); ok && err == nil {
		return fmt.Sprintf("head_moved to %d", h.To)
	}
	if s, ok, err := e.StepCompletion(); ok && err == nil {
		return fmt.Sprintf("step_completed %d+%d %s", s.Usage.InputTokens, s.Usage.OutputTokens, e.Cost)
	}
	m, ok, err := e.Message()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return string(e.Type)
	}
	line := string(m.Role)
	for _, p := range m.Parts {
		line += " " + drawPart(&p)
	}
	return line
}

func drawPart(p *eventlog.Part) string {
	switch p.Type {
	case eventlog.TextPart:
		text, _, _ := strings.Cut(strings.TrimSpace(p.Text), " ")
		return text + "…"
	case eventlog.ToolCallPart:
		return fmt.Sprintf("calls %s %s", p.Name, p.Arguments)
	case eventlog.ToolResultPart:
		failed := ""
		if p.IsError {
			failed = "failed "
		}
		return failed + "result of " + p.Name + ": " + eventlog.Message{Parts: p.Content}.Text()
	}
	return string(p.Type)
}

// Same complains where two values differ.
func Same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Dump is all that a log says.
func Dump(t testing.TB, log *eventlog.Log) (all []string) {
	t.Helper()
	for _, id := range Sessions(t, log) {
		for _, e := range Events(t, log, id) {
			all = append(all, fmt.Sprint(e.SessionID, e.Seq, e.ID, e.Type, e.Timestamp, e.Cost, string(e.Data)))
		}
	}
	return all
}

// Again imports a file once more, which must write nothing, and verifies the
// log.
func Again(t testing.TB, log *eventlog.Log, format interop.Format, name, content string) {
	t.Helper()
	got, err := format.Import(t.Context(), log, Source(name, content))
	if err != nil || got.Events != 0 {
		t.Fatalf("the second import: %+v, %v", got, err)
	}
	checkSum(t, got)
	for _, id := range Sessions(t, log) {
		if report, err := log.Verify(t.Context(), id); err != nil || len(report.Defects) > 0 {
			t.Fatalf("verify %q: %v, %v", id, report.Defects, err)
		}
	}
}

// Grows is the law that versions of a file, each longer than the one before, give
// the same log as the last alone.
func Grows(t testing.TB, format interop.Format, name string, versions ...string) {
	t.Helper()
	last := versions[len(versions)-1]
	grown, whole := NewLog(t), NewLog(t)
	for _, v := range versions {
		Load(t, grown, format, name, v)
		Again(t, grown, format, name, v)
	}
	Load(t, whole, format, name, last)
	Same(t, "whole and grown", Dump(t, whole), Dump(t, grown))
}

const maxFuzzed = 16 << 10 // larger inputs find nothing more, and take their time

// Fuzz is the law that, whatever a file holds, every record is counted once, a
// second import writes nothing, and what was written is sound. Seeds are paths.
func Fuzz(f *testing.F, format interop.Format, name string, seeds ...string) {
	for _, path := range seeds {
		f.Add(ReadFile(f, path))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxFuzzed {
			return
		}
		log := eventlog.Open(storetest.NewMemory())
		defer log.Close()
		format.Detect(name, []byte(text))
		got, err := format.Import(t.Context(), log, Source(name, text))
		if err != nil {
			t.Fatal(err)
		}
		checkSum(t, got)
		Again(t, log, format, name, text)
	})
}

package codex_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/store/storetest"
)

// id is the session of the n-th fixture; they were made one after the other.
func id(n string) string { return "0190000" + n + "-0000-7000-8000-000000000000" }

func newLog(t *testing.T) *eventlog.Log {
	t.Helper()
	log := eventlog.Open(storetest.NewMemory())
	t.Cleanup(func() { log.Close() })
	return log
}

func fixture(name string) string {
	return filepath.Join("..", "..", "testdata", "transcripts", "codex", name+".jsonl")
}

// load imports fixtures in one go, which must succeed.
func load(t *testing.T, log *eventlog.Log, names ...string) interop.Table {
	t.Helper()
	var paths []string
	for _, name := range names {
		paths = append(paths, fixture(name))
	}
	table, err := interop.Import(t.Context(), log, []interop.Format{codex.Format{}}, paths, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// loadText imports lines as if they stood in a file of that name.
func loadText(t *testing.T, log *eventlog.Log, text string) (interop.Result, error) {
	t.Helper()
	return codex.Format{}.Import(t.Context(), log, interop.Source{Name: "f", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}})
}

func readFixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(fixture(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func sessions(t *testing.T, log *eventlog.Log) (ids []string) {
	t.Helper()
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	return ids
}

// path are the events of the active path but those that are kept raw.
func path(t *testing.T, log *eventlog.Log, session string) (all []eventlog.Event) {
	t.Helper()
	for e, err := range log.ActivePath(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(e.Type), "codex:") {
			all = append(all, e)
		}
	}
	return all
}

// drawn is a short line for each event of the active path that is not kept raw.
func drawn(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for _, e := range path(t, log, session) {
		lines = append(lines, draw(t, &e))
	}
	return lines
}

func draw(t *testing.T, e *eventlog.Event) string {
	t.Helper()
	if h, ok, _ := e.HeadMove(); ok {
		return fmt.Sprintf("head_moved to %d", h.To)
	}
	if s, ok, _ := e.StepCompletion(); ok {
		return fmt.Sprintf("step %d: %d+%d in, %d out", s.Step, s.Usage.InputTokens, s.Usage.CacheReadTokens, s.Usage.OutputTokens)
	}
	if s, ok, _ := e.Session(); ok {
		return strings.TrimSpace(string(e.Type) + " " + s.Title)
	}
	if c, ok, _ := e.TurnCompletion(); ok {
		return strings.TrimSpace("turn " + string(c.Status) + " " + c.StopReason + c.Error)
	}
	if c, ok, _ := e.Child(); ok {
		return string(e.Type) + " " + c.ChildID
	}
	m, ok, err := e.Message()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return string(e.Type)
	}
	return drawMessage(&m)
}

func drawMessage(m *eventlog.Message) string {
	line := string(m.Role)
	for _, p := range m.Parts {
		switch p.Type {
		case eventlog.TextPart:
			line += " " + strings.TrimSpace(interop.Title(p.Text))
		case eventlog.ToolCallPart, eventlog.ServerToolCallPart:
			line += " calls " + p.Name
		case eventlog.ToolResultPart:
			line += " result of " + p.Name
		default:
			line += " " + string(p.Type)
		}
	}
	return line
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		readFixture(t, "whole"):                                          true,
		readFixture(t, "bare"):                                           true,
		readFixture(t, "whole")[:300]:                                    true,
		`{"type":"session_meta","paylo`:                                  false,
		`{"type":"user","sessionId":"s"}`:                                false,
		`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z"}`: false,
		"\n\nno JSON":                                                    false,
		"":                                                               false,
	} {
		if got := (codex.Format{}).Detect("x.jsonl", []byte(text)); got != want {
			t.Errorf("Detect(%.40q…) = %v", text, got)
		}
	}
}

func TestRank(t *testing.T) {
	for name, want := range map[string]int{"parent": 0, "whole": 0, "bare": 0, "agent-fresh": 1, "agent-forked": 1, "fork": 1} {
		if got := (codex.Format{}).Rank(name, []byte(readFixture(t, name))); got != want {
			t.Errorf("rank of %s is %d, want %d", name, got, want)
		}
	}
}

func TestWhole(t *testing.T) {
	log := newLog(t)
	table := load(t, log, "whole")
	same(t, "active path", []string{}, drawn(t, log, id("1")))
	fmt.Println(table.Total())
}

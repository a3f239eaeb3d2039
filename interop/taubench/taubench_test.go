package taubench_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/taubench"
)

var (
	ferry  = filepath.Join("../../testdata/transcripts/tau-bench", "ferry.json")
	format = taubench.Format{}
)

func TestDetect(t *testing.T) {
	importtest.Detects(t, format, "f.json", map[string]bool{
		`[{"task_id":0,"reward":0.5,"info":{"task":{"instr`: true,
		`[{"task_id":"a","trial":0,"reward":1,"traj":[`:     true,
		`{"task_id":0,"reward":0.5,"info":{},"traj":[]}`:    false,
		`[{"task_id":0,"messages":[]}]`:                     false,
		`[{"role":"user","content":"task_id reward traj"}]`: false,
		`[[{"role":"user","content":"Hello"}]]`:             false,
		`[]`:                                                false,
		"":                                                  false,
	})
}

func TestAttempts(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, ferry)
	got := importtest.Load(t, log, format, "runs/ferry.json", content)
	importtest.Again(t, log, format, "runs/ferry.json", content)
	ids := importtest.Sessions(t, log)
	if got.Records != 7 || got.Imported != 7 || len(ids) != 2 || !strings.HasPrefix(ids[0], "ferry-task-3-trial-0-") {
		t.Errorf("sessions %q, import: %+v", ids, got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "system Book…", "user I…", `assistant calls get_user {"user":"ada_1"}`,
		"tool failed result of get_user: Error: user not found", "assistant I…", "user Goodbye.…", "step_completed 0+0 0.0035475",
	}, importtest.Path(t, log, ids[0]))
	importtest.Same(t, "an attempt without messages", []string{"session_started"}, importtest.Path(t, log, ids[1]))
	start := importtest.Start(t, log, ids[0])
	if start.Title != "I am ada_1, to Holyhead please." || start.Source.SessionID != "3/0" || !strings.Contains(string(start.Extra), `"reward":1.0`) {
		t.Errorf("the session starts with %+v", start)
	}
}

// Attempts are appended while the benchmark runs.
func TestGrowingList(t *testing.T) {
	attempt := func(task string) string {
		return `{"task_id":` + task + `,"reward":1,"info":{"user_cost":0.25},"traj":[{"role":"user","content":"Task ` + task + `"},{"role":"assistant","content":"Done"}],"trial":0}`
	}
	importtest.Grows(t, format, "f.json", "["+attempt("1")+"]", "["+attempt("1")+","+attempt("2")+"]")
}

func TestInvalidOrTruncatedList(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, ferry)
	for _, text := range []string{content[:len(content)-20], `[{"task_id":0,"reward":1,"traj":7}]`} {
		if got := importtest.Load(t, log, format, "f.json", text); len(got.Rejected) != 1 || got.Events != 0 {
			t.Errorf("import: %+v", got)
		}
	}
	for _, text := range []string{`[{"task_id":0,"reward":1,"traj":[]},{"traj":[]}]`, `[{"task_id":0,"reward":1,"traj":[]},7]`} {
		if got := importtest.Load(t, importtest.NewLog(t), format, "f.json", text); len(got.Rejected) != 1 || got.Events != 1 {
			t.Errorf("import: %+v", got)
		}
	}
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "f.json", ferry) }

package sweagent_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
)

var attempts = filepath.Join("../../testdata/transcripts/swe-agent", "attempts.traj")

// running returns the fixture during the run, after n attempts.
func running(t *testing.T, n int) string {
	t.Helper()
	var whole struct {
		Attempts []json.RawMessage `json:"attempts"`
	}
	if err := json.Unmarshal([]byte(importtest.ReadFile(t, attempts)), &whole); err != nil {
		t.Fatal(err)
	}
	whole.Attempts = whole.Attempts[:n]
	b, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each attempt is a branch, and the path ends with the best one.
func TestAttempts(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, attempts)
	got := importtest.Load(t, log, format, "buoy.traj", content)
	importtest.Again(t, log, format, "buoy.traj", content)
	if len(got.Sessions) != 1 || len(got.Rejected) != 0 || got.Present != 2 {
		t.Fatalf("import: %+v", got)
	}
	var lines []string
	for _, e := range importtest.Events(t, log, got.Sessions[0]) {
		lines = append(lines, importtest.Draw(t, &e))
	}
	importtest.Same(t, "log", []string{
		"session_started", "system You…", "user The…", `assistant reasoning I… calls open {"path":"tide.py"}`, "tool result of open: 2: blink", "swe-agent:step",
		"swe-agent:attempt", "head_moved to 3", `assistant reasoning I… calls open {"path":"tide.py"}`, "tool result of open: 1: hour = 1",
		"swe-agent:step", "swe-agent:info", "step_completed 30+5 0.375",
	}, lines)
	if strings.Contains(string(importtest.Start(t, log, got.Sessions[0]).Extra), "attempts") {
		t.Error("the attempts are in the extra, too")
	}
}

// During the run the path ends with the last attempt. After the choice it ends with
// the best one.
func TestGrowingAttempts(t *testing.T) {
	log := importtest.NewLog(t)
	for i, c := range []struct{ content, last string }{
		{running(t, 1), "tool result of open: 1: hour = 1"},
		{running(t, 2), "tool result of open: 2: blink"},
		{importtest.ReadFile(t, attempts), "tool result of open: 1: hour = 1"},
	} {
		got := importtest.Load(t, log, format, "buoy.traj", c.content)
		importtest.Again(t, log, format, "buoy.traj", c.content)
		path := importtest.Path(t, log, got.Sessions[0])
		var last string
		for _, line := range path {
			if strings.HasPrefix(line, "tool ") {
				last = line
			}
		}
		if last != c.last {
			t.Errorf("version %d: the path is %q", i, path)
		}
	}
}

func TestDetectAttempts(t *testing.T) {
	content := importtest.ReadFile(t, attempts)
	importtest.Detects(t, format, "f.traj", map[string]bool{
		content[:700]: true, running(t, 1): true, `{"attempts":[{"history":[]}]}`: false, `{"attempts":[]}`: false, `{"attempts":7,"history":7}`: false,
	})
	log := importtest.NewLog(t)
	got := importtest.Text(t, log, format, "f.traj", `{"attempts":[7,{"history":[{"role":"user","content":"Hi","agent":"main"}]},{"info":{}}]}`)
	if got.Records != 3 || got.Raw != 2 {
		t.Errorf("import: %+v", got)
	}
}

func FuzzImportAttempts(f *testing.F) { importtest.Fuzz(f, format, "f.traj", attempts) }

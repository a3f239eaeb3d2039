package minisweagent_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/minisweagent"
)

const transcripts = "../../testdata/transcripts/mini-swe-agent"

var (
	blocks = filepath.Join(transcripts, "blocks.traj.json")
	calls  = filepath.Join(transcripts, "calls.traj.json")
	format = minisweagent.Format{}
)

func TestDetect(t *testing.T) {
	list := `[{"role":"system","content":"You run`
	for _, test := range []struct {
		name, head string
		want       bool
	}{
		{"f.json", `{"info":{"mini_version":"1.0"},"messages":[{"role":"sys`, true},
		{"f.json", `{"trajectory_format":"mini-swe-agent-1.1","messages":[]}`, true},
		{"f.json", `{"messages":[{"role":"user","content":"Hello"}]}`, false},
		{"f.json", `{"info":{"id":"ses_1"},"messages":[]}`, false},
		{"f.traj.json", list, true},
		{"f.json", list, false},
		{"f.traj.json", `[{"id":0,"source":"agent","action":"run"}]`, false},
		{"f.traj.json", "", false},
	} {
		if got := format.Detect(test.name, []byte(test.head)); got != test.want {
			t.Errorf("detect %s %s: %v", test.name, test.head, got)
		}
	}
}

func TestBlocks(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, blocks)
	got := importtest.Load(t, log, format, "runs/last.traj.json", content)
	importtest.Again(t, log, format, "runs/last.traj.json", content)
	id := importtest.Sessions(t, log)[0]
	if got.Records != 9 || got.Raw != 1 || !strings.HasPrefix(id, "tide__tide-7-") {
		t.Errorf("session %q, import: %+v", id, got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "system You…", "user Please…",
		`assistant THOUGHT:… calls bash {"command":"ls -a"}`, "tool result of bash: <returncode>0</returncode>\n<output>\ntide.py\n</output>",
		"assistant I…", "user Please…", `assistant That… calls bash {"command":"echo DONE"}`, "tool result of bash: done",
		"mini-swe-agent:info", "step_completed 0+0 0.75",
	}, importtest.Path(t, log, id))
	start, m := importtest.Start(t, log, id), importtest.Messages(t, log, id)[2]
	if start.Title != "Please solve this issue: High water is late" || start.Source.Version != "mini-swe-agent-1" || start.Source.SessionID != "tide__tide-7" {
		t.Errorf("the session starts with %+v", start)
	}
	if m.Usage.InputTokens != 60 || m.Usage.CacheReadTokens != 40 || m.Usage.OutputTokens != 7 || m.Model != "tidal-2" {
		t.Errorf("the answer is %+v", m)
	}
	if at := importtest.Events(t, log, id)[3].Timestamp; at.UnixMilli() != 1767225600500 {
		t.Errorf("the time of the answer is %v", at)
	}
}

func TestCalls(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, calls)
	importtest.Load(t, log, format, "tide.traj.json", content)
	importtest.Again(t, log, format, "tide.traj.json", content)
	id := importtest.Sessions(t, log)[0]
	importtest.Same(t, "active path", []string{
		"session_started", "system You…", "user Please…", `assistant I… calls bash {"command":"ls"}`, "tool result of bash: tide.py",
		"assistant reasoning", `assistant calls bash {"command":"submit"}`, "mini-swe-agent:response", "tool result of bash: done",
		"mini-swe-agent:exit", "mini-swe-agent:info",
	}, importtest.Path(t, log, id))
	all := importtest.Messages(t, log, id)
	if all[4].Group != "resp_1" || all[5].Group != "resp_1" || all[4].Usage.InputTokens != 20 || !all[5].Usage.IsZero() || all[4].Model != "tidal-3" {
		t.Errorf("the response is %+v and %+v", all[4], all[5])
	}
}

// The first versions of the agent wrote a list of messages, which grows at its end.
func TestGrowingList(t *testing.T) {
	list := []string{
		`{"role":"user","content":"Hi"}`, "{\"role\":\"assistant\",\"content\":\"```bash\\nls\\n```\"}", `{"role":"user","content":"a b"}`,
		"{\"role\":\"assistant\",\"content\":\"```bash\\nls\\n``` and ```bash\\npwd\\n```\"}", `{"role":"user","content":"One, please."}`,
	}
	var versions []string
	for n := range list {
		versions = append(versions, "["+strings.Join(list[:n+1], ",")+"]")
	}
	importtest.Grows(t, format, "f.traj.json", versions...)
}

// Runs with the default file name overwrite each other.
func TestRunsInTheSameFile(t *testing.T) {
	log := importtest.NewLog(t)
	run := func(task, rest string) string {
		return `{"info":{"mini_version":"1.0","model_stats":{"instance_cost":0}},"messages":[{"role":"system","content":"Mend."},{"role":"user","content":"` + task + `"}` + rest + `]}`
	}
	answer := `,{"role":"assistant","content":"Done."}`
	name := "/home/ada/.config/mini-swe-agent/last_mini_run.traj.json"
	for _, text := range []string{run("One", ""), run("One", answer), run("Two", answer)} {
		importtest.Load(t, log, format, name, text)
		importtest.Again(t, log, format, name, text)
	}
	ids := importtest.Sessions(t, log)
	if len(ids) != 2 || !strings.HasPrefix(ids[0], "last_mini_run.traj-") {
		t.Fatalf("sessions %q", ids)
	}
	for _, id := range ids {
		if messages := importtest.Messages(t, log, id); len(messages) != 3 {
			t.Errorf("%s has %d messages", id, len(messages))
		}
	}
}

func TestTruncatedDocument(t *testing.T) {
	log := importtest.NewLog(t)
	got := importtest.Load(t, log, format, "f.traj.json", importtest.ReadFile(t, calls)[:900])
	if len(got.Rejected) != 1 || got.Rejected[0].Line != 1 || got.Events != 0 {
		t.Errorf("import: %+v", got)
	}
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "f.traj.json", blocks, calls) }

// A command with a nonzero exit code is a failed call.
func TestFailedCommands(t *testing.T) {
	for code, failed := range map[string]bool{"0": false, "1": true, "-1": true} {
		log := importtest.NewLog(t)
		importtest.Load(t, log, format, "f.traj.json", "[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"```bash\\nls\\n```\"},"+
			`{"role":"user","content":"<returncode>`+code+`</returncode>\n<output>\n<returncode>7</returncode>\n</output>"}]`)
		all := importtest.Messages(t, log, importtest.Sessions(t, log)[0])
		if got := all[2].Parts[0].IsError; got != failed {
			t.Errorf("exit code %s: failed %v", code, got)
		}
	}
}

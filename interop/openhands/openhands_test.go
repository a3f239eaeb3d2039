package openhands_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/openhands"
)

const transcripts = "../../testdata/transcripts/openhands"

var (
	output = filepath.Join(transcripts, "output.jsonl")
	pairs  = filepath.Join(transcripts, "pairs.json")
	format = openhands.Format{}
)

func TestDetect(t *testing.T) {
	importtest.Detects(t, format, "f.jsonl", map[string]bool{
		`{"instance_id":"i","test_result":{"git_patch":"cut`:                                        true,
		`{"instance_id":"i","history":[{"id":0,"timestamp":"t","source":"agent","message":"m","act`: true,
		`{"trajectory":[{"id":0,"timestamp":"t","source":"agent","action":"run"}]}`:                 true,
		`[{"id":0,"timestamp":"t","source":"agent","action":"run"}]`:                                true,
		`[[{"id":0,"timestamp":"t","source":"user","action":"message"},{"observation":"null"}]]`:    true,
		`{"history":[{"role":"system","content":"c","agent":"main"}]}`:                              false,
		`{"trajectory":[{"action":"ls","observation":"o"}]}`:                                        false,
		`{"instance_id":"i","messages":[{"role":"user","content":"Hello"}]}`:                        false,
		`[{"role":"user","content":"Hello"}]`:                                                       false,
		"history":                                                                                   false,
		"":                                                                                          false,
	})
}

func TestAnEvaluation(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, output)
	got := importtest.Load(t, log, format, "eval/output.jsonl", content)
	importtest.Again(t, log, format, "eval/output.jsonl", content)
	ids := importtest.Sessions(t, log)
	if got.Records != 14 || got.Raw != 3 || len(ids) != 2 || !strings.HasPrefix(ids[0], "tide__tide-8-") {
		t.Fatalf("sessions %q, import: %+v", ids, got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "system You…", "user High… image", "openhands:recall", "openhands:recall",
		`assistant I… calls execute_bash {"command":"ls"}`, `assistant calls str_replace_editor {"command":"view","path":"/tide.py"}`,
		"tool failed result of execute_bash: ls: cannot open", "tool result of str_replace_editor: hour = 1",
		`assistant calls think {"thought":"Where is the hour?"}`, "tool result of think: Your thought has been logged.", "openhands:error",
		`assistant Done.… calls finish {"message":"Mended"}`, "step_completed 50+2 0.25",
	}, importtest.Path(t, log, ids[0]))
	start, all := importtest.Start(t, log, ids[0]), importtest.Messages(t, log, ids[0])
	if start.Title != "High water is an hour late" || start.Agent != "CodeActAgent" || start.Source.SessionID != "tide__tide-8" {
		t.Errorf("the session starts with %+v", start)
	}
	importtest.Same(t, "usage of the first response", event.Usage{InputTokens: 60, OutputTokens: 9, CacheReadTokens: 40}, all[2].Usage)
	if all[2].Group != "r1" || all[3].Group != "r1" || !all[3].Usage.IsZero() || all[2].Model != "tidal-4" {
		t.Errorf("the first response is %+v and %+v", all[2], all[3])
	}
	first := importtest.Events(t, log, ids[0])[5]
	if first.Cost != event.Dollar/4 || first.Timestamp.Format("15:04:05.000") != "10:00:04.250" {
		t.Errorf("the first response cost %v at %v", first.Cost, first.Timestamp)
	}
}

func TestPairsOfOldVersions(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, pairs)
	importtest.Load(t, log, format, "pairs.json", content)
	importtest.Again(t, log, format, "pairs.json", content)
	importtest.Same(t, "active path", []string{
		"session_started", "user Old…", "openhands:null", `assistant Look… calls run {"command":"ls"}`, "tool result of run: tide.py",
		"assistant That…", "openhands:null",
	}, importtest.Path(t, log, importtest.Sessions(t, log)[0]))
}

func TestGrowingTrajectory(t *testing.T) {
	content := importtest.ReadFile(t, pairs)
	var versions []string
	for at, r := range content {
		if r == ']' && strings.HasPrefix(content[at:], "],") || strings.HasPrefix(content[at:], " ]\n") {
			versions = append(versions, content[:at]+"]]")
		}
	}
	importtest.Grows(t, format, "pairs.json", append(versions, content)...)
}

// A changed event is added raw.
func TestChangedEvent(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, pairs)
	importtest.Load(t, log, format, "pairs.json", content)
	changed := strings.Replace(content, "That is it.", "That was it.", 1)
	got := importtest.Load(t, log, format, "pairs.json", changed)
	importtest.Again(t, log, format, "pairs.json", changed)
	if got.Events != 1 || got.Raw != 1 {
		t.Errorf("import: %+v", got)
	}
	path := importtest.Path(t, log, importtest.Sessions(t, log)[0])
	importtest.Same(t, "end of the active path", []string{"openhands:null", "openhands:message"}, path[len(path)-2:])
}

// The lines before a truncated line are imported.
func TestTruncatedLine(t *testing.T) {
	log := importtest.NewLog(t)
	content := importtest.ReadFile(t, output)
	got := importtest.Load(t, log, format, "output.jsonl", content[:len(content)-50])
	if len(got.Rejected) != 1 || got.Rejected[0].Line != 2 || len(got.Sessions) != 1 {
		t.Errorf("import: %+v", got)
	}
	importtest.Load(t, log, format, "output.jsonl", content)
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "f.json", output, pairs) }

// A command with a nonzero exit code is a failed call.
func TestFailedCommands(t *testing.T) {
	old := importtest.ReadFile(t, pairs)
	for extras, failed := range map[string]bool{
		`{"exit_code":0}`: false, `{"exit_code":2}`: true, `{"exit_code":-1}`: false, `{"metadata":{"exit_code":127}}`: true, `{"metadata":{"exit_code":0}}`: false,
	} {
		log := importtest.NewLog(t)
		importtest.Load(t, log, format, "pairs.json", strings.Replace(old, "\"extras\": {\n    \"exit_code\": 0\n   }", `"extras": `+extras, 1))
		all := importtest.Messages(t, log, importtest.Sessions(t, log)[0])
		if got := all[2].Parts[0].IsError; got != failed {
			t.Errorf("%s: failed %v", extras, got)
		}
	}
	for members, failed := range map[string]bool{`"exit_code":0`: false, `"exit_code":3`: true, `"metadata":{"exit_code":1}`: true, `"is_error":true`: true} {
		log := importtest.NewLog(t)
		importtest.Load(t, log, format, "f.jsonl", `{"id":"a","timestamp":"2026-04-01T09:00:00","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":"Go"}}
{"id":"b","timestamp":"2026-04-01T09:00:01","source":"agent","kind":"ActionEvent","thought":[],"tool_name":"x","tool_call_id":"c","tool_call":{"id":"c","name":"x","arguments":"{}"},"llm_response_id":"r"}
{"id":"d","timestamp":"2026-04-01T09:00:02","source":"environment","kind":"ObservationEvent","tool_name":"x","tool_call_id":"c","observation":{"output":"done",`+members+`}}
`)
		all := importtest.Messages(t, log, importtest.Sessions(t, log)[0])
		if got := all[2].Parts[0].IsError; got != failed {
			t.Errorf("%s: failed %v", members, got)
		}
	}
}

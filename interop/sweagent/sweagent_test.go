package sweagent_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/sweagent"
)

const transcripts = "../../testdata/transcripts/swe-agent"

var (
	plain  = filepath.Join(transcripts, "plain.traj")
	calls  = filepath.Join(transcripts, "calls.traj")
	format = sweagent.Format{}
)

// load imports a document twice. It returns the log, its only session, and the first
// result.
func load(t *testing.T, name, content string) (*eventlog.Log, string, interop.Result) {
	t.Helper()
	log := importtest.NewLog(t)
	got := importtest.Load(t, log, format, name, content)
	importtest.Again(t, log, format, name, content)
	ids := importtest.Sessions(t, log)
	if len(ids) != 1 {
		t.Fatalf("sessions %q", ids)
	}
	return log, ids[0], got
}

func TestDetect(t *testing.T) {
	importtest.Detects(t, format, "f.traj", map[string]bool{
		`{"environment":"e","trajectory":[{"action":"ls","observation":"cut o`: true,
		`{"history":[{"role":"system","content":"c","agent":"main"}]}`:         true,
		`{"history":[{"message_type":"action","role":"assistant"`:              true,
		`{"history":[{"role":"system","content":"c"}]}`:                        false,
		`{"history":[{"id":0,"source":"agent","action":"run"}]}`:               false,
		`{"trajectory":[{"source":"agent","action":"run","observation":"o"}]}`: false,
		`[{"trajectory":[{"action":"ls","observation":"o"}]}]`:                 false,
		`{"messages":[{"role":"user","content":"Hello"}]}`:                     false,
		"trajectory": false,
		"":           false,
	})
}

func TestPlainText(t *testing.T) {
	log, id, got := load(t, "runs/tide-1.traj", importtest.ReadFile(t, plain))
	if got.Records != 9 || got.Imported != 6 || got.Raw != 3 || !strings.HasPrefix(id, "tide-1-") {
		t.Errorf("session %q, import: %+v", id, got)
	}
	importtest.Same(t, "active path", []string{
		"session_started", "system You…", "user Solve…",
		`assistant Let… calls bash {"command":"ls\n"}`, "tool result of bash: tide.py\n(Open file: n/a)\nbash-$", "swe-agent:step",
		`assistant That… calls bash {"command":"submit"}`, "tool result of bash: diff --git a/tide.py b/tide.py\n", "swe-agent:step",
		"swe-agent:info", "step_completed 1200+34 0.25",
	}, importtest.Path(t, log, id))
	start := importtest.Start(t, log, id)
	if start.Title != "High water is an hour late" || start.Agent != "SWE-agent" || string(start.Extra) != `{"environment":"swe_main"}` {
		t.Errorf("the session starts with %+v", start)
	}
	importtest.Same(t, "step", `{"state":"{\"open_file\": \"n/a\"}"}`, string(importtest.Events(t, log, id)[5].Data))
	m := importtest.Messages(t, log, id)[2]
	importtest.Same(t, "extra", `{"thought":"Let me look around.\n","action":"ls\n","agent":"primary","content":"Let me look around.\n`+"```\\nls\\n```"+`"}`, string(m.Extra))
}

func TestCalls(t *testing.T) {
	log, id, _ := load(t, "tide.traj", importtest.ReadFile(t, calls))
	importtest.Same(t, "active path", []string{
		"session_started", "system You…", "user High…", `assistant reasoning I… calls open {"path":"tide.py"}`,
		"tool result of open: 1: hour = 1", "swe-agent:step", "swe-agent:info",
	}, importtest.Path(t, log, id))
	start, all := importtest.Start(t, log, id), importtest.Messages(t, log, id)
	if start.Title != "High water is late" || all[2].Model != "tidal-1" || all[2].Parts[0].Signature != "c2ln" {
		t.Errorf("the session starts with %+v, and the answer is %+v", start, all[2])
	}
}

// A step that is not in the history comes before the next step.
func TestStepOutsideTheHistory(t *testing.T) {
	content := strings.Replace(importtest.ReadFile(t, plain), `{
      "action": "submit"`, `{"action": "oops", "observation": "What?", "thought": ""}, {
      "action": "submit"`, 1)
	log, id, _ := load(t, "tide.traj", content)
	path := importtest.Path(t, log, id)
	importtest.Same(t, "end of the active path", []string{
		`assistant That… calls bash {"command":"submit"}`, "tool result of bash: diff --git a/tide.py b/tide.py\n", "swe-agent:step", "swe-agent:step",
	}, path[len(path)-6:len(path)-2])
}

func TestStepsWithoutHistory(t *testing.T) {
	log, id, _ := load(t, "tide.traj", `{"trajectory":[{"action":"ls","observation":"","response":"Look.","thought":"Look."},{"action":"","observation":"none","response":"Hm"}]}`)
	importtest.Same(t, "active path", []string{
		"session_started", `assistant Look.… calls bash {"command":"ls"}`, "tool result of bash: ", "swe-agent:step", "assistant Hm…", "swe-agent:step",
	}, importtest.Path(t, log, id))
}

func TestInvalidMessagesAreStoredRaw(t *testing.T) {
	log, id, _ := load(t, "tide.traj", `{"history":[{"role":"user","content":"Hi","agent":"a"},7,{"role":"judge"}]}`)
	importtest.Same(t, "active path", []string{"session_started", "user Hi…", "swe-agent:message", "swe-agent:message"}, importtest.Path(t, log, id))
}

// A longer run has a longer history, more steps, and more tokens.
func TestGrowingRun(t *testing.T) {
	short := `{"trajectory":[{"action":"ls","observation":"o","thought":"t"}],"history":[{"role":"user","content":"Hi","agent":"a"},{"role":"assistant","content":"t ls","thought":"t","action":"ls","agent":"a"},{"role":"user","content":"o","agent":"a"}]`
	long := strings.Replace(strings.Replace(short, `}],"hi`, `},{"action":"pwd","observation":"p","thought":"u"}],"hi`, 1), `"o","agent":"a"}]`,
		`"o","agent":"a"},{"role":"assistant","content":"u pwd","thought":"u","action":"pwd","agent":"a"},{"role":"user","content":"p","agent":"a"}]`, 1)
	importtest.Grows(t, format, "f.traj", short+"}", long+"}")

	log := importtest.NewLog(t)
	for _, info := range []string{`0.5,"tokens_sent":10`, `0.75,"tokens_sent":30`} {
		content := short + `,"info":{"model_stats":{"instance_cost":` + info + `}}}`
		importtest.Load(t, log, format, "f.traj", content)
		importtest.Again(t, log, format, "f.traj", content)
		short = long
	}
	path := importtest.Path(t, log, importtest.Sessions(t, log)[0])
	importtest.Same(t, "active path", []string{
		"swe-agent:info", "step_completed 10+0 0.5", `assistant u… calls bash {"command":"pwd"}`, "tool result of bash: p",
		"swe-agent:info", "step_completed 20+0 0.25",
	}, path[4:])
}

func TestTruncatedDocument(t *testing.T) {
	whole := importtest.ReadFile(t, plain)
	log := importtest.NewLog(t)
	got := importtest.Load(t, log, format, "f.traj", whole[:len(whole)-40])
	if len(got.Rejected) != 1 || got.Events != 0 || !strings.Contains(got.Rejected[0].Reason, "cut off after") {
		t.Errorf("import: %+v", got)
	}
	importtest.Load(t, log, format, "f.traj", whole)
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, format, "f.traj", plain, calls) }

// The last call has its observation in the step only, and a run that ends at a limit has its
// last answer there.
func TestTheLastStep(t *testing.T) {
	const history = `{"role":"user","content":"Mend the lamp.","agent":"main"},{"role":"assistant","content":"I submit.","thought":"I submit.",
		"action":"submit","agent":"main","tool_calls":[{"id":"call_9","type":"function","function":{"name":"submit","arguments":"{}"}}]}`
	const steps = `{"action":"submit","observation":"the patch","response":"I submit.","thought":"I submit."}`
	for last, want := range map[string][]string{
		``: {"session_started", "user Mend…", "assistant I… calls submit {}", "tool result of submit: the patch", "swe-agent:info"},
		`,{"action":"ls","observation":"lamp","response":"I look again.","thought":"I look again."}`: {
			"session_started", "user Mend…", "assistant I… calls submit {}", "tool result of submit: the patch",
			`assistant I… calls bash {"command":"ls"}`, "tool result of bash: lamp", "swe-agent:step", "swe-agent:info",
		},
	} {
		text := `{"trajectory":[` + steps + last + `],"history":[` + history + `],"info":{"exit_status":"submitted"}}`
		log := importtest.NewLog(t)
		got := importtest.Load(t, log, format, "lamp.traj", text)
		importtest.Again(t, log, format, "lamp.traj", text)
		importtest.Same(t, "path", want, importtest.Path(t, log, got.Sessions[0]))
	}
}

// An edit that SWE-agent refuses is a failed call, in each form of the document. The folder of
// the session is the first one that the agent sees.
func TestRefusedEditsAreFailures(t *testing.T) {
	const state = `\n(Open file: /w/a.py)\n(Current directory: /w)\nbash-$`
	refusal := `Your proposed edit has introduced new syntax error(s).` + state
	plainEdit := func(observation string) string {
		return `{"history":[{"role":"user","content":"A demo.\n(Current directory: /demo)\n","agent":"main","is_demo":true},{"role":"user","content":"Go.` + state + `","agent":"main"},` +
			`{"role":"assistant","content":"I edit.","thought":"I edit.","action":"edit 1:1\nx\nend_of_edit","agent":"main"},{"role":"user","content":"` + observation + `","agent":"main"}],"trajectory":[]}`
	}
	toolEdit := func(tool, arguments, observation string) string {
		return `{"history":[{"role":"user","content":"Go.` + state + `","agent":"main"},` +
			`{"role":"assistant","content":"I edit.","thought":"I edit.","action":"edit","agent":"main","tool_calls":[{"id":"c","type":"function","function":{"name":"` + tool + `","arguments":"` + arguments + `"}}]},` +
			`{"role":"tool","content":"` + observation + `","agent":"main","tool_call_ids":["c"]}],"trajectory":[]}`
	}
	for name, c := range map[string]struct {
		document string
		failed   bool
	}{
		"text":            {plainEdit(refusal), true},
		"text, applied":   {plainEdit(`[File: /w/a.py (1 lines total)]\n1:x` + state), false},
		"call":            {toolEdit("edit", "{}", refusal), true},
		"not found":       {toolEdit("edit", "{}", `Your edit was not applied (file not modified): Text 'x' not found`+state), true},
		"applied":         {toolEdit("edit", "{}", "Text replaced."+state), false},
		"editor":          {toolEdit("str_replace_editor", "{}", "OBSERVATION:\\nNo replacement was performed, old_str did not appear"), true},
		"editor, applied": {toolEdit("str_replace_editor", "{}", "OBSERVATION:\\nThe file /w/a.py has been edited."), false},
		"a printed text":  {toolEdit("bash", `{\"command\":\"cat log\"}`, refusal), false},
		"steps only":      {`{"trajectory":[{"action":"ls","observation":"a.py` + state + `","response":"I look."},{"action":"edit 1:1\nx\nend_of_edit","observation":"` + refusal + `","response":"I edit."}]}`, true},
	} {
		log, id, _ := load(t, "a.traj", c.document)
		failed := false
		for e, err := range log.Read(t.Context(), id, eventlog.All()) {
			if err != nil {
				t.Fatal(err)
			}
			if m, ok, _ := event.Decode[event.Message](&e); ok {
				for _, r := range m.ToolResults() {
					failed = failed || r.IsError
				}
			}
			if s, ok, _ := event.Decode[event.Session](&e); ok && s.CWD != "/w" {
				t.Errorf("%s: folder %q", name, s.CWD)
			}
		}
		if failed != c.failed {
			t.Errorf("%s: failed %v", name, failed)
		}
	}
}

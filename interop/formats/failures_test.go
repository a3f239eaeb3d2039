package formats_test

import (
	"testing"
	"time"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/opencode"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
)

// codexResult is a session of Codex with one call. output is its result, as JSON.
func codexResult(output string) string {
	return `{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"s","cwd":"/"}}
{"timestamp":"2026-03-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":"Test."}}
{"timestamp":"2026-03-01T10:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}}
{"timestamp":"2026-03-01T10:00:03.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":` + output + `}}
`
}

// opencodeResult is a session of OpenCode with one call. exit is its exit code, as JSON.
func opencodeResult(exit string) string {
	return `{"info":{"id":"ses_1","projectID":"p","directory":"/","title":"t","version":"1","time":{"created":1,"updated":2}},"messages":[
{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1}},"parts":[{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"Test."}]},
{"info":{"id":"msg_2","sessionID":"ses_1","role":"assistant","time":{"created":2,"completed":3},"modelID":"m","providerID":"p"},"parts":[{"id":"prt_2","sessionID":"ses_1","messageID":"msg_2","type":"tool","callID":"c","tool":"bash",
"state":{"status":"completed","input":{},"output":"Exit code: 1","metadata":{"exit":` + exit + `},"time":{"start":2,"end":3}}}]}]}
`
}

// A nonzero exit code is a failed call. Text that a command prints is none.
func TestExitCodesAreFailures(t *testing.T) {
	for name, test := range map[string]struct {
		format interop.Format
		text   string
		failed int64
	}{
		"codex exec":            {codex.Format{}, codexResult(`"Chunk ID: 1\nWall time: 0.2 seconds\nProcess exited with code 1\nOutput:\nFAIL"`), 1},
		"codex exec, early":     {codex.Format{}, codexResult(`"Command: /bin/zsh -lc false\nChunk ID: 1\nWall time: 0.2 seconds\nProcess exited with code 1\nOutput:\n"`), 1},
		"codex, a command line": {codex.Format{}, codexResult(`"Command: x\nProcess exited with code 1\nOutput:\n"`), 0},
		"codex exec, 0":         {codex.Format{}, codexResult(`"Chunk ID: 1\nWall time: 0.2 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 1"`), 0},
		"codex shell":           {codex.Format{}, codexResult(`"Exit code: 127\nWall time: 0.2 seconds\nOutput:\nnot found"`), 1},
		"codex metadata":        {codex.Format{}, codexResult(`"{\"output\":\"\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"`), 1},
		"codex metadata, 0":     {codex.Format{}, codexResult(`"{\"output\":\"exit_code\",\"metadata\":{\"exit_code\":0}}"`), 0},
		"codex runs":            {codex.Format{}, codexResult(`"Chunk ID: 1\nProcess running with session ID 5\nOutput:\n"`), 0},
		"codex, printed":        {codex.Format{}, codexResult(`"the log says:\nProcess exited with code 1\nOutput:\n"`), 0},
		"codex, printed object": {codex.Format{}, codexResult(`"{\"metadata\":{\"exit_code\":1}}"`), 0},
		"codex, no number":      {codex.Format{}, codexResult(`"Exit code: none\nOutput:\n"`), 0},
		"opencode":              {opencode.Format{}, opencodeResult("3"), 1},
		"opencode, 0":           {opencode.Format{}, opencodeResult("0"), 0},
		"opencode, killed":      {opencode.Format{}, opencodeResult("null"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Load(t, log, test.format, "f.json", test.text)
			id := importtest.Sessions(t, log)[0]
			s, err := stats.Load(t.Context(), log, id)
			if err != nil {
				t.Fatal(err)
			}
			failed := int64(0)
			for _, tool := range s.ByTool {
				failed += tool.Failed
			}
			run, err := runlog.Load(t.Context(), log, id)
			if err != nil || failed != test.failed || run.Totals.Failed != int(test.failed) || s.Total.Calls != 1 {
				t.Errorf("stats have %d failures of %d calls, runlog has %d (%v), want %d", failed, s.Total.Calls, run.Totals.Failed, err, test.failed)
			}
		})
	}
}

// A turn lasts until its last operation. What the program writes the next morning, before
// the next prompt, belongs to no turn's time.
func TestTheNightBelongsToNoTurn(t *testing.T) {
	line := func(uuid, parent, at, more string) string {
		return `{"parentUuid":` + parent + `,"sessionId":"s","version":"2.1.100","isSidechain":false,"uuid":"` + uuid + `","timestamp":"` + at + `",` + more + "}\n"
	}
	answer := func(id, text string) string {
		return `"type":"assistant","message":{"id":"` + id + `","role":"assistant","model":"m","content":[{"type":"text","text":"` + text + `"}],"usage":{"input_tokens":1,"output_tokens":1}}`
	}
	text := line("u1", "null", "2026-03-01T10:00:00Z", `"type":"user","message":{"role":"user","content":"Hello"}`) +
		line("a1", `"u1"`, "2026-03-01T10:00:05Z", answer("m1", "Hi.")) +
		line("d1", `"a1"`, "2026-03-01T10:00:06Z", `"type":"system","subtype":"turn_duration","durationMs":5100`) +
		`{"type":"file-history-snapshot","messageId":"u2","snapshot":{"messageId":"u2","trackedFileBackups":{},"timestamp":"2026-03-02T10:00:00Z"},"isSnapshotUpdate":false}` + "\n" +
		line("x1", `"d1"`, "2026-03-02T09:59:59Z", `"type":"user","isMeta":true,"message":{"role":"user","content":"<system-reminder>resumed</system-reminder>"}`) +
		line("u2", `"x1"`, "2026-03-02T10:00:00Z", `"type":"user","message":{"role":"user","content":"Next day"}`) +
		line("a2", `"u2"`, "2026-03-02T10:00:05Z", answer("m2", "Yes."))
	log := importtest.NewLog(t)
	importtest.Load(t, log, claude.Format{}, "s.jsonl", text)
	run, err := runlog.Load(t.Context(), log, "s")
	if err != nil || len(run.Turns) != 2 {
		t.Fatalf("%d turns (%v)", len(run.Turns), err)
	}
	for i, turn := range run.Turns {
		if took := turn.Ended.Sub(turn.Started); took != 5*time.Second {
			t.Errorf("turn %d took %v", i, took)
		}
	}
}

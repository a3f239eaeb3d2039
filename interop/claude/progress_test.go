package claude_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// task is a session that calls a sub-agent. Its progress records have the first lines of the
// sub-agent.
func task() transcript {
	at := morning.Add(10 * time.Minute)
	lines := append(exchanges(1),
		`{"type":"user","sessionId":"SESSION","cwd":"/srv","uuid":"p1","parentUuid":"a1","timestamp":"2026-03-01T10:09:00Z","message":{"role":"user","content":"Look."}}`,
		`{"type":"assistant","sessionId":"SESSION","cwd":"/srv","uuid":"p2","parentUuid":"p1","timestamp":"2026-03-01T10:09:01Z","message":{"id":"m8","role":"assistant","model":"claude-sonnet-4-5",`+
			`"content":[{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"Question 5"}}],"usage":{"input_tokens":8000,"output_tokens":1}}}`)
	for i, line := range agentLines() {
		line = strings.Replace(line, `"isSidechain":true,"agentId":"x1",`, "", 1)
		line = strings.Replace(line, `"sessionId":"SESSION","cwd":"/srv",`, "", 1)
		lines = append(lines, fmt.Sprintf(`{"type":"progress","sessionId":"SESSION","cwd":"/srv","uuid":"g%d","parentUuid":"p2","parentToolUseID":"t1","timestamp":%q,`+
			`"data":{"type":"agent_progress","agentId":"x1","prompt":"Question 5","message":%s}}`, i, at.Format(time.RFC3339), line))
	}
	return lines
}

// agentLines are the lines of the sub-agent: a request and an answer.
func agentLines() transcript {
	lines := exchangeAfter(5, "null")
	for i := range lines {
		lines[i] = strings.Replace(lines[i], `"cwd"`, `"isSidechain":true,"agentId":"x1","cwd"`, 1)
		lines[i] = strings.Replace(lines[i], `"sessionId":"SESSION","isSidechain":true,"agentId":"x1","cwd":"/srv",`, `"isSidechain":true,"agentId":"x1","sessionId":"SESSION","cwd":"/srv",`, 1)
	}
	return lines
}

const agentFile = "orig/subagents/agent-x1.jsonl"

// Answers that only progress records have are answers of the sub-agent's session.
func TestProgressOfASubAgentCounts(t *testing.T) {
	h := newHome(t)
	h.write("orig", task())
	got := h.load()
	if got.Records != 6 || got.Imported != 4 || got.Raw != 2 {
		t.Errorf("%+v", got)
	}
	h.spent(14000, 3)
	h.texts("orig.agent-x1", "Question 5", "Answer 5")
	if start := importtest.Start(t, h.log, "orig.agent-x1"); start.Parent.SessionID != "orig" || start.Parent.CallID != "t1" {
		t.Errorf("the parent is %+v", start.Parent)
	}
	var times []string // of the lines of the sub-agent, not of the records around them
	for _, e := range importtest.Events(t, h.log, "orig.agent-x1") {
		times = append(times, e.Timestamp.Sub(morning).String())
	}
	importtest.Same(t, "times", []string{"5m0s", "5m0s", "5m1s"}, times)

	h.write("copy", append(task(), exchangeAfter(3, `"p2"`)...)) // a copy has the progress, too
	h.load()
	h.parent("copy", "orig")
	h.spent(17000, 4)

	h.writeFile(agentFile, "orig", append(agentLines(), agentLines()[0][:20]+strings.NewReplacer("u5", "u6", "Question 5", "Again").Replace(agentLines()[0][20:])))
	h.load() // the file of the sub-agent comes later
	h.texts("orig.agent-x1", "Question 5", "Answer 5", "Again")
	h.spent(17000, 4)
}

// A sub-agent with a file has its lines from there only.
func TestProgressOfASubAgentWithAFile(t *testing.T) {
	h := newHome(t)
	h.write("orig", task())
	h.writeFile(agentFile, "orig", agentLines())
	h.load()
	h.spent(14000, 3)
	for _, e := range importtest.Events(t, h.log, "orig.agent-x1") {
		if value, _ := e.MetadataValue("origin"); !strings.Contains(string(value), "agent-x1.jsonl") {
			t.Errorf("event %d is from %s", e.Seq, value)
		}
	}
}

// What was erased in the session of the sub-agent does not come back with a progress record.
func TestErasedLinesOfASubAgentStayErased(t *testing.T) {
	h := newHome(t)
	h.write("orig", task())
	h.load()
	importtest.Redact(t, h.log, func(e *event.Event) bool { return strings.Contains(string(e.Data), "Answer 5") })
	h.load()
	for _, e := range importtest.Contents(t, h.log) {
		if strings.Contains(e.Data, "Answer 5") {
			t.Errorf("%s has the erased text again: %s", e.Session, e.Data)
		}
	}
}

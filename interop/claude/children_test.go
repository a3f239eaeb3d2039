package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// childEvents returns the child events of a session.
func childEvents(t *testing.T, log *eventlog.Log, session string) (all []event.Child) {
	t.Helper()
	for _, e := range importtest.Events(t, log, session) {
		c, ok, err := event.Decode[event.Child](&e)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			all = append(all, c)
		}
	}
	return all
}

func callLine(uuid, parent, id, prompt string) string {
	return fmt.Sprintf(`{"type":"assistant","sessionId":"s","cwd":"/","uuid":%q,"parentUuid":%q,"message":{"role":"assistant","id":"m%s","content":[`+
		`{"type":"tool_use","id":%q,"name":"Agent","input":{"description":"Count eggs","prompt":%q,"subagent_type":"counter"}}]}}`+"\n", uuid, parent, id, id, prompt)
}

func resultLine(uuid, parent, id, more, structured string) string {
	return fmt.Sprintf(`{"type":"user","sessionId":"s","cwd":"/","uuid":%q,"parentUuid":%q,"message":{"role":"user","content":[`+
		`{"type":"tool_result","tool_use_id":%q,"content":"Four.\nOr five."%s}]},"toolUseResult":%s}`+"\n", uuid, parent, id, more, structured)
}

// queuedLine is an attachment with a message that arrived while the model worked.
func queuedLine(uuid, parent, mode, prompt string) string {
	return fmt.Sprintf(`{"type":"attachment","sessionId":"s","cwd":"/","uuid":%q,"parentUuid":%q,"attachment":{"type":"queued_command","prompt":%q,"commandMode":%q}}`+"\n",
		uuid, parent, prompt, mode)
}

// retrievedLine is the result of a call that asks how the sub-agent x is.
func retrievedLine(uuid, parent, status string) string {
	note := "<retrieval_status>success</retrieval_status>\n\n<task_id>x</task_id>\n\n<status>" + status + "</status>\n\n<output>\nFour.\n</output>"
	return strings.Replace(resultLine(uuid, parent, "o"+uuid, "", `{"retrieval_status":"success"}`), `"Four.\nOr five."`, fmt.Sprintf("%q", note), 1)
}

func TestChildEvents(t *testing.T) {
	start := userPrompt("s", "u1", "", "Go") + callLine("a1", "u1", "c", "Count.")
	requested := event.Child{State: event.ChildRequested, ChildID: "c", CallID: "c", Agent: "counter", Mode: event.ChildFresh, Task: "Count eggs"}
	started := event.Child{State: event.ChildStarted, ChildID: "c", CallID: "c", ChildSessionID: "s.agent-x"}
	progress := `{"type":"progress","sessionId":"s","cwd":"/","uuid":"p1","parentUuid":"a1","parentToolUseID":"c","data":{"type":"agent_progress","agentId":"x"}}` + "\n"
	ended := func(state event.ChildState, c event.Child) event.Child {
		c.State, c.ChildID, c.CallID = state, "c", "c"
		return c
	}
	for _, test := range []struct {
		name, rest string
		want       []event.Child
	}{
		{"called", "", []event.Child{requested}},
		{
			"done", resultLine("r1", "a1", "c", "", `{"status":"completed","agentId":"x"}`),
			[]event.Child{requested, started, ended(event.ChildCompleted, event.Child{ChildSessionID: "s.agent-x", Status: "completed"})},
		},
		{"running", progress + strings.Replace(progress, "p1", "p2", 1), []event.Child{requested, started}},
		{
			"done after progress", progress + resultLine("r1", "a1", "c", "", `{"agentId":"x"}`),
			[]event.Child{requested, started, ended(event.ChildCompleted, event.Child{ChildSessionID: "s.agent-x"})},
		},
		{
			"without a session", resultLine("r1", "a1", "c", "", `{"totalTokens":9}`),
			[]event.Child{requested, ended(event.ChildCompleted, event.Child{})},
		},
		{
			"failed", resultLine("r1", "a1", "c", `,"is_error":true`, `"Error: no agent"`),
			[]event.Child{requested, ended(event.ChildFailed, event.Child{Error: "Four."})},
		},
		{
			"rejected", resultLine("r1", "a1", "c", `,"is_error":true`, `"User rejected tool use"`),
			[]event.Child{requested, ended(event.ChildCanceled, event.Child{Reason: "Four."})},
		},
		{
			"in the background", resultLine("r1", "a1", "c", "", `{"isAsync":true,"status":"async_launched","agentId":"x"}`) +
				userPrompt("s", "u2", "r1", "<task-notification>\n<task-id>y</task-id>\n<status>completed</status>\n</task-notification>"),
			[]event.Child{requested, started},
		},
		{
			"in the background, done", resultLine("r1", "a1", "c", "", `{"isAsync":true,"status":"async_launched","agentId":"x"}`) +
				userPrompt("s", "u2", "r1", "<task-notification>\n<task-id>x</task-id>\n<status>completed</status>\n</task-notification>") +
				userPrompt("s", "u3", "u2", "<task-notification><task-id>x</task-id></task-notification>"),
			[]event.Child{requested, started, ended(event.ChildCompleted, event.Child{ChildSessionID: "s.agent-x", Status: "completed"})},
		},
		{
			"in the background, stopped", resultLine("r1", "a1", "c", "", `{"isAsync":true,"agentId":"x"}`) +
				userPrompt("s", "u2", "r1", "<task-notification>\n<task-id>x</task-id>\n<status>killed</status><summary>Agent was stopped</summary></task-notification>"),
			[]event.Child{requested, started, ended(event.ChildCanceled, event.Child{ChildSessionID: "s.agent-x", Status: "killed", Reason: "Agent was stopped"})},
		},
		{
			"in the background, done while the caller works", resultLine("r1", "a1", "c", "", `{"isAsync":true,"status":"async_launched","agentId":"x"}`) +
				queuedLine("q1", "r1", "task-notification", "<task-notification>\n<task-id>x</task-id>\n<status>completed</status>\n</task-notification>"),
			[]event.Child{requested, started, ended(event.ChildCompleted, event.Child{ChildSessionID: "s.agent-x", Status: "completed"})},
		},
		{
			"in the background, retrieved", resultLine("r1", "a1", "c", "", `{"isAsync":true,"status":"async_launched","agentId":"x"}`) +
				retrievedLine("r2", "r1", "running") + retrievedLine("r3", "r2", "completed"),
			[]event.Child{requested, started, ended(event.ChildCompleted, event.Child{ChildSessionID: "s.agent-x", Status: "completed"})},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			whole, grown := importtest.NewLog(t), importtest.NewLog(t)
			text := start + test.rest
			if _, err := loadText(t, whole, "f", text); err != nil {
				t.Fatal(err)
			}
			importtest.Same(t, "children", test.want, childEvents(t, whole, "s"))
			for _, cut := range importtest.Cuts(text) {
				if _, err := loadText(t, grown, "f", text[:cut]); err != nil {
					t.Fatal(err)
				}
			}
			importtest.Same(t, "line by line", importtest.Contents(t, whole), importtest.Contents(t, grown))
		})
	}
}

// The file of a sub-agent is imported while its parent runs. A progress record of the
// parent gives the call, not the prompt.
func TestRunningSubAgentKnowsItsCall(t *testing.T) {
	log := importtest.NewLog(t)
	parent := userPrompt("s", "u1", "", "Go") + callLine("a1", "u1", "c", "Count.") + callLine("a2", "a1", "d", "Count.") +
		`{"type":"progress","sessionId":"s","cwd":"/","uuid":"p1","parentUuid":"a2","parentToolUseID":"d","data":{"type":"agent_progress","agentId":"x"}}` + "\n"
	side := strings.Replace(userPrompt("s", "x1", "", "Count."), `"isSidechain":false`, `"isSidechain":true,"agentId":"x"`, 1)
	for name, text := range map[string]string{"parent": parent, "again": parent} {
		if _, err := loadText(t, log, name, text); err != nil {
			t.Fatal(err)
		}
	}
	before := importtest.Contents(t, log)
	if _, err := loadText(t, log, "side", side); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "the parent, when the sub-agent's file was imported", before, importtest.Contents(t, log)[:len(before)])
	start, _, err := event.Decode[event.Session](&importtest.Events(t, log, "s.agent-x")[0])
	if err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "parent", event.SessionParent{SessionID: "s", Seq: 5, CallID: "d"}, start.Parent)
}

// Child events are in the append of the line that they come from. Otherwise a crash or a
// fork between them would lose them.
func TestChildEventsShareTheAppendOfTheirLine(t *testing.T) {
	log := importtest.NewLog(t)
	text := userPrompt("s", "u1", "", "Go") + callLine("a1", "u1", "c", "Count.") + resultLine("r1", "a1", "c", "", `{"status":"completed","agentId":"x"}`)
	if _, err := loadText(t, log, "f", text); err != nil {
		t.Fatal(err)
	}
	var more []int
	for _, e := range importtest.Events(t, log, "s") {
		more = append(more, e.More())
	}
	importtest.Same(t, "events that follow in the same append", []int{1, 0, 1, 0, 2, 1, 0}, more)
}

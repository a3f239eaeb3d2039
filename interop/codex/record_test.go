package codex_test

import (
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/runlog/stats"
)

func TestDamaged(t *testing.T) {
	log := importtest.NewLog(t)
	got := load(t, log, "damaged").Rows[0].Result
	importtest.Same(t, "active path", []string{"session_started Ring the bell.", "turn_started", "user Ring the bell.", "assistant Ding."}, outline(t, log, id("9")))
	importtest.Same(t, "refusals", []string{"line 3, byte 756", "line 8, byte 1255"}, rejections(got))
	if got.Records != 8 || got.Imported+got.Raw+len(got.Rejected) != 8 {
		t.Errorf("result is %+v", got)
	}
}

func rejections(r interop.Result) (all []string) {
	for _, f := range r.Rejected {
		all = append(all, fmt.Sprintf("line %d, byte %d", f.Line, f.Offset))
	}
	return all
}

func TestInvalidSessionID(t *testing.T) {
	log := importtest.NewLog(t)
	got, err := loadText(t, log, `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":""}}`+"\n")
	if err != nil || len(got.Rejected) != 1 || got.Skipped != 0 || got.Events != 0 {
		t.Errorf("import: %+v, %v", got, err)
	}
}

// record is a line with the members of its payload.
func record(kind, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:01Z","type":%q,"payload":{%s}}`, kind, payload) + "\n"
}

const opening = `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/srv"}}` + "\n"

// TestRecords imports single records after the start of a session and a prompt.
func TestRecords(t *testing.T) {
	spawn := record("response_item", `"type":"function_call","name":"spawn_agent","arguments":"{}","call_id":"c"`)
	started := record("response_item", `"type":"function_call_output","call_id":"c","output":"{\"agent_id\":\"a\"}"`)
	for name, test := range map[string]struct {
		lines string
		want  []string
	}{
		"an unknown item":      {record("response_item", `"type":"ghost_snapshot"`), []string{"codex:response_item:ghost_snapshot {\"timestamp\""}},
		"an unknown role":      {record("response_item", `"type":"message","role":"critic","content":"x"`), []string{`codex:response_item:message {"timestamp"`}},
		"a call without an id": {record("response_item", `"type":"function_call","name":"x"`), []string{`codex:response_item:function_call {"timestamp"`}},
		"a payload other than an object": {
			`{"timestamp":"2026-01-01T00:00:01Z","type":"turn_context","payload":7}` + "\n", []string{`codex:turn_context {"timestamp"`}},
		"a record without a type": {`{"x":1}` + "\n", []string{`codex:untyped {"x":1}`}},
		"members around the payload": {
			`{"timestamp":"soon","ordinal":7,"type":"response_item","payload":{"type":"message","role":"user","content":"Hi","id":"m"}}` + "\n",
			[]string{`message_added {"role":"user","parts":[{"type":"text","text":"Hi"}],"extra":{"id":"m","record":{"timestamp":"soon","ordinal":7}}}`}},
		"a search for tools": {
			record("response_item", `"type":"tool_search_call","call_id":"t","execution":"client","arguments":{"query":"x"}`) +
				record("response_item", `"type":"tool_search_output","call_id":"t","tools":[1]`),
			[]string{
				`message_added {"role":"assistant","group":"`,
				`message_added {"role":"tool","parts":[{"type":"tool_result","call_id":"t","name":"tool_search","content":[{"type":"opaque","kind":"tools","value":[1]}]}],"extra":{"type":"tool_search_output"}}`,
			}},
		"a message from another agent": {
			record("response_item", `"type":"agent_message","author":"/root","content":[{"type":"encrypted_content","encrypted_content":"eA=="}]`),
			[]string{`message_added {"role":"user","parts":[{"type":"opaque","kind":"encrypted_content"`}},
		"settings": {
			record("event_msg", `"type":"thread_settings_applied","thread_settings":{"model":"m","cwd":"/tmp"}`) +
				record("event_msg", `"type":"thread_settings_applied","thread_settings":{"model":"m","cwd":"/tmp"}`),
			[]string{`session_updated {"cwd":"/tmp","labels":{"model":"m"},`, `codex:event_msg:thread_settings_applied {`}},
		"a name of another session": {
			record("event_msg", `"type":"thread_name_updated","thread_id":"t","thread_name":"x"`), []string{`codex:event_msg:thread_name_updated {`}},
		"the end of an unknown turn": {record("event_msg", `"type":"turn_aborted","reason":"replaced"`), []string{
			`turn_completed {"status":"aborted","stop_reason":"replaced",`}},
		"nothing to roll back": {record("event_msg", `"type":"thread_rolled_back","num_turns":0`), []string{`codex:event_msg:thread_rolled_back {`}},
		"an invalid token count": {
			record("event_msg", `"type":"token_count","info":{"total_token_usage":{"input_tokens":1},"last_token_usage":{"input_tokens":-1}}`),
			[]string{`codex:event_msg:token_count {`}},
		"a compaction of nothing": {record("compacted", `"message":""`), []string{`codex:compacted {`}},
		"a sub-agent that fails to start": {
			spawn + record("response_item", `"type":"function_call_output","call_id":"c","output":"collab spawn failed: no"`),
			[]string{`message_added {`, `child_requested {"child_id":"c","call_id":"c","mode":"fresh"}`, `message_added {`, `child_failed {"child_id":"c","call_id":"c","error":"collab spawn failed: no"}`}},
		"a notification that a sub-agent failed": {
			spawn + started + record("response_item", `"type":"message","role":"user","content":"<subagent_notification>\n{\"agent_id\":\"a\",\"status\":{\"errored\":\"no </quota>\"}}\n</subagent_notification>"`),
			[]string{`message_added {`, `child_requested {`, `message_added {`, `child_started {"child_id":"c","child_session_id":"a","call_id":"c"}`,
				`message_added {`, `child_failed {"child_id":"c","child_session_id":"a","call_id":"c","status":"errored","error":"no </quota>"}`}},
		"a refused sub-agent": {
			spawn + record("response_item", `"type":"function_call_output","call_id":"c","output":"unknown agent_type: x"`),
			[]string{`message_added {`, `child_requested {`, `message_added {`, `child_failed {"child_id":"c","call_id":"c","error":"unknown agent_type: x"}`}},
		"a sub-agent in the file of a fork": {
			spawn + record("response_item", `"type":"function_call_output","call_id":"c","output":"You are the newly spawned agent."`),
			[]string{`message_added {`, `child_requested {`, `message_added {`}},
		"the final answer of a sub-agent": {
			spawn + record("response_item", `"type":"function_call_output","call_id":"c","output":"{\"task_name\":\"/root/count\"}"`) +
				record("response_item", `"type":"agent_message","author":"/root/count","recipient":"/root","content":[{"type":"input_text","text":"Message Type: MESSAGE\nPayload:\n3"}]`) +
				record("response_item", `"type":"agent_message","author":"/root/count","recipient":"/root","content":[{"type":"input_text","text":"Message Type: FINAL_ANSWER\nPayload:\n4"}]`),
			[]string{`message_added {`, `child_requested {`, `message_added {`, `message_added {`, `message_added {`,
				`child_completed {"child_id":"c","call_id":"c","status":"completed"}`}},
		"the final answer of a sub-agent with activity": {
			record("event_msg", `"type":"sub_agent_activity","agent_thread_id":"a","agent_path":"/root/count","event_id":"e","kind":"started"`) +
				record("response_item", `"type":"agent_message","author":"/root/count","content":[{"type":"input_text","text":"Message Type: FINAL_ANSWER"}]`),
			[]string{`child_started {`, `message_added {`, `child_completed {"child_id":"e","child_session_id":"a","status":"completed"}`}},
		"a running sub-agent": {
			record("event_msg", `"type":"sub_agent_activity","agent_thread_id":"a","event_id":"e","kind":"started"`) +
				record("event_msg", `"type":"sub_agent_activity","agent_thread_id":"a","event_id":"f","kind":"interacted"`) +
				record("event_msg", `"type":"collab_waiting_end","statuses":{"a":"shutdown","b":"shutdown"}`),
			[]string{`child_started {"child_id":"e","child_session_id":"a","extra":`, `codex:event_msg:sub_agent_activity {`,
				`codex:event_msg:collab_waiting_end {`, `child_canceled {"child_id":"e","child_session_id":"a","status":"shutdown"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			got, err := loadText(t, log, opening+record("response_item", `"type":"message","role":"user","content":"Hello"`)+test.lines)
			if err != nil || len(got.Rejected) > 0 || got.Skipped > 0 {
				t.Fatalf("import: %+v, %v", got, err)
			}
			var lines []string
			for e, err := range log.Read(t.Context(), "s", eventlog.From(3)) {
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, string(e.Type)+" "+string(e.Data))
			}
			for i := range min(len(lines), len(test.want)) {
				lines[i] = lines[i][:min(len(lines[i]), len(test.want[i]))]
			}
			importtest.Same(t, "events", test.want, lines)
			importtest.Verify(t, log)
		})
	}
}

func TestTitles(t *testing.T) {
	prompt := func(text string) string {
		return record("response_item", fmt.Sprintf(`"type":"message","role":"user","content":%q`, text))
	}
	for name, test := range map[string]struct{ lines, want string }{
		"of the first prompt":     {prompt("<environment_context>x</environment_context>") + prompt("Hello\nthere") + prompt("More"), "Hello"},
		"of an editor":            {prompt("# Context from my IDE setup:\n\n## My request for Codex:\nMend it.\n"), "Mend it."},
		"from an earlier record":  {record("event_msg", `"type":"thread_name_updated","thread_id":"s","thread_name":"Mending"`) + prompt("Mend it."), "Mending"},
		"where the model begins":  {record("response_item", `"type":"message","role":"assistant","content":"Hi"`) + prompt("Hello"), "Hello"},
		"from an unknown element": {prompt("<div>What is this?</div>"), "<div>What is this?</div>"},
	} {
		log := importtest.NewLog(t)
		if _, err := loadText(t, log, opening+test.lines); err != nil {
			t.Fatal(err)
		}
		if got := sessionInfo(t, log, "s").Title; got != test.want {
			t.Errorf("%s: title is %q", name, got)
		}
	}
}

func TestNoSessionWithoutAPrompt(t *testing.T) {
	log := importtest.NewLog(t)
	got, err := loadText(t, log, opening+record("turn_context", `"model":"m"`))
	if err != nil || got.Skipped != 2 || got.Events != 0 || len(importtest.Sessions(t, log)) > 0 {
		t.Errorf("import: %+v, %v", got, err)
	}
	got, err = loadText(t, log, record("turn_context", `"model":"m"`)+record("response_item", `"type":"message","role":"user","content":"Hi"`)+opening)
	if err != nil || got.Skipped != 0 || got.Events != 4 {
		t.Errorf("import of records before the header: %+v, %v", got, err)
	}
}

// The ids are not time-ordered. Copies are the records with the time of the header: an equal
// record after them is no copy.
func TestCopiesByTime(t *testing.T) {
	log := importtest.NewLog(t)
	at := func(second, kind, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:%sZ","type":%q,"payload":{%s}}`, second, kind, payload) + "\n"
	}
	count := func(n int) string {
		return fmt.Sprintf(`"type":"token_count","info":{"total_token_usage":{"input_tokens":%d},"last_token_usage":{"input_tokens":%d}}`, n, n)
	}
	text := at("00", "session_meta", `"id":"fork","forked_from_id":"gone"`) + at("00.1", "session_meta", `"id":"gone"`) +
		at("00.1", "turn_context", `"model":"m"`) + at("00.1", "response_item", `"type":"message","role":"user","content":"Hi"`) + at("00.1", "event_msg", count(5)) +
		at("09", "turn_context", `"model":"m"`) + at("09", "response_item", `"type":"message","role":"user","content":"Ho"`) + at("10", "event_msg", count(7))
	if _, err := loadText(t, log, text); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "spent", event.Usage{InputTokens: 12}, usage(t, log, "fork"))
	text = at("00", "session_meta", `"id":"gone"`) + at("01", "turn_context", `"model":"m"`) + at("01", "response_item", `"type":"message","role":"user","content":"Hi"`) +
		at("02", "event_msg", count(5)) + at("20", "response_item", `"type":"message","role":"user","content":"Ho"`) + at("21", "event_msg", count(9))
	if _, err := loadText(t, log, text); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "spent by the parent", event.Usage{InputTokens: 9}, usage(t, log, "gone"))
	s, err := stats.Load(t.Context(), log, "gone")
	if err != nil || s.Total.Messages != 1 {
		t.Errorf("the parent counts %d messages, %v", s.Total.Messages, err)
	}
}

// Messages between agents are context. The task of a sub-agent is its title.
func TestMessagesOfAgentsAreContext(t *testing.T) {
	log := importtest.NewLog(t)
	task := record("response_item", `"type":"agent_message","author":"/root","recipient":"/root/count","content":[{"type":"input_text","text":"Message Type: NEW_TASK\nPayload:\nCount the bowls."}]`)
	if _, err := loadText(t, log, opening+task+record("response_item", `"type":"message","role":"assistant","content":"4"`)); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "title", "Count the bowls.", importtest.Start(t, log, "s").Title)
	for _, e := range importtest.Events(t, log, "s") {
		if m, ok, err := event.Decode[event.Message](&e); err != nil || ok && e.IsContext() != (m.Role == event.User) {
			t.Errorf("event %d: context %v (%v)", e.Seq, e.IsContext(), err)
		}
	}
}

// The structured record of a command says whether it failed.
func TestFailedCommands(t *testing.T) {
	command := func(id, status string, code int) string {
		return record("event_msg", fmt.Sprintf(`"type":"item_completed","item":{"type":"CommandExecution","id":%q,"status":%q,"exit_code":%d}`, id, status, code))
	}
	call := func(id string) string {
		return record("response_item", fmt.Sprintf(`"type":"function_call","name":"exec_command","arguments":"{}","call_id":%q`, id))
	}
	output := func(id string) string {
		return record("response_item", fmt.Sprintf(`"type":"function_call_output","call_id":%q,"output":"Text"`, id))
	}
	script := func(id string) string {
		return record("response_item", fmt.Sprintf(`"type":"custom_tool_call","name":"exec","input":"run","call_id":%q`, id))
	}
	done := func(id string) string {
		return record("response_item", fmt.Sprintf(`"type":"custom_tool_call_output","call_id":%q,"output":"Text"`, id))
	}
	text := opening + record("event_msg", `"type":"user_message","message":"Run."`) + record("response_item", `"type":"message","role":"user","content":[{"type":"input_text","text":"Run."}]`) +
		call("a") + command("a", "completed", 0) + output("a") + call("b") + call("c") + command("c", "failed", 1) + output("b") + output("c") +
		script("d") + command("exec-1", "failed", 2) + command("exec-2", "completed", 0) + done("d") + script("e") + command("exec-3", "completed", 0) + done("e")
	log := importtest.NewLog(t)
	if _, err := loadText(t, log, text); err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, m := range importtest.Messages(t, log, "s") {
		for _, p := range m.ToolResults() {
			if p.IsError {
				failed = append(failed, p.CallID)
			}
		}
	}
	importtest.Same(t, "failed calls", []string{"c", "d"}, failed)
}

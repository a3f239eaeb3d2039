package codex_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/codex"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/projection"
)

// id is the session of the n-th fixture; they were made one after the other.
func id(n string) string { return "0190000" + n + "-0000-7000-8000-000000000000" }

func fixture(name string) string {
	return filepath.Join("..", "..", "testdata", "transcripts", "codex", name+".jsonl")
}

func fixtures(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, fixture(name))
	}
	return paths
}

// load imports fixtures in one go, which must succeed.
func load(t *testing.T, log *eventlog.Log, names ...string) interop.Table {
	t.Helper()
	return importtest.Table(t, log, codex.Format{}, fixtures(names...)...)
}

// loadText imports lines as if they stood in a file.
func loadText(t *testing.T, log *eventlog.Log, text string) (interop.Result, error) {
	t.Helper()
	return codex.Format{}.Import(t.Context(), log, importtest.Source("f", text))
}

func readFixture(t testing.TB, name string) string {
	t.Helper()
	return importtest.ReadFile(t, fixture(name))
}

// path are the events of the active path but those that are kept raw.
func path(t *testing.T, log *eventlog.Log, session string) (all []eventlog.Event) {
	t.Helper()
	for _, e := range importtest.ActivePath(t, log, session) {
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

func TestDetect(t *testing.T) {
	importtest.Detects(t, codex.Format{}, "x.jsonl", map[string]bool{
		readFixture(t, "whole"):                                          true,
		readFixture(t, "bare"):                                           true,
		readFixture(t, "whole")[:300]:                                    true,
		`{"type":"session_meta","paylo`:                                  false,
		`{"type":"user","sessionId":"s"}`:                                false,
		`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z"}`: false,
		"\n\nno JSON":                                                    false,
		"":                                                               false,
	})
}

func TestRank(t *testing.T) {
	for name, want := range map[string]int{"parent": 0, "whole": 0, "bare": 0, "agent-fresh": 1, "agent-forked": 1, "fork": 1} {
		if got := (codex.Format{}).Rank(name, []byte(readFixture(t, name))); got != want {
			t.Errorf("rank of %s is %d, want %d", name, got, want)
		}
	}
}

func TestWhole(t *testing.T) {
	log := importtest.NewLog(t)
	total := load(t, log, "whole").Rows[0].Result
	if total.Records != 49 || total.Imported != 33 || total.Raw != 16 || total.Events != 49 || total.Held != 0 || total.Present != 0 {
		t.Errorf("result is %+v", total)
	}
	importtest.Same(t, "active path", []string{
		"session_started Tabulate the tides of Brest.",
		"turn_started",
		"developer <permissions instructions>Ask first.</permissions instructions>",
		"user # AGENTS.md instructions for /home/ada/tide <environment_context>",
		"session_updated",
		"user Tabulate the tides of Brest.",
		"assistant reasoning",
		"assistant I look at the table, and at the gauge.",
		"assistant calls exec_command",
		"assistant calls exec_command",
		"step 0: 1000+0 in, 80 out",
		"tool result of exec_command",
		"tool result of exec_command",
		"assistant calls apply_patch",
		"tool result of apply_patch",
		"step 1: 300+900 in, 60 out",
		"assistant calls web_search",
		"assistant High water is at 3.2 m.",
		"step 2: 300+1200 in, 40 out",
		"turn completed",
		"session_updated Tides of Brest",
		"turn_started",
		"session_updated",
		"user And this gauge? image",
		"assistant calls local_shell",
		"step 0: 500+1500 in, 20 out",
		"tool result of local_shell",
		"user <turn_aborted>",
		"turn interrupted interrupted",
		"session_updated",
		"turn_started",
		"user Go on.",
		"turn failed stream closed",
	}, drawn(t, log, id("1")))
}

// messages are those of the active path.
func messages(t *testing.T, log *eventlog.Log, session string) (all []eventlog.Message) {
	t.Helper()
	for _, e := range path(t, log, session) {
		if m, ok, err := e.Message(); ok && err == nil {
			all = append(all, m)
		}
	}
	return all
}

func TestMessages(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "whole")
	all := messages(t, log, id("1"))
	groups := map[string][]string{}
	var order []string
	for i := range all {
		m := &all[i]
		if m.Role != eventlog.Assistant {
			continue
		}
		if groups[m.Group] == nil {
			order = append(order, m.Group)
		}
		groups[m.Group] = append(groups[m.Group], drawMessage(m)+" by "+m.Provider+" "+m.Model)
	}
	var got [][]string
	for _, g := range order {
		got = append(got, groups[g])
	}
	const by = " by openai gpt-5.4"
	importtest.Same(t, "responses", [][]string{
		{"assistant reasoning" + by, "assistant I look at the table, and at the gauge." + by, "assistant calls exec_command" + by, "assistant calls exec_command" + by},
		{"assistant calls apply_patch" + by},
		{"assistant calls web_search" + by, "assistant High water is at 3.2 m." + by},
		{"assistant calls local_shell by openai gpt-5.5"},
	}, got)
	if p := all[3].Parts[0]; p.Encrypted != "gAAAAA==" || p.Text != "**Looking for data**" || p.ID != "rs_1" {
		t.Errorf("reasoning is %+v", p)
	}
	if m := all[4]; string(m.Extra) != `{"phase":"commentary"}` {
		t.Errorf("extra is %s", m.Extra)
	}
	if p := all[5].Parts[0]; string(p.Arguments) != `{"cmd":"cat tides.csv"}` || p.CallID != "c1" {
		t.Errorf("call is %+v with %s", p, p.Arguments)
	}
	if p := all[9].Parts[0]; string(p.Arguments) != `"*** Begin Patch\n*** End Patch"` || string(all[9].Extra) != `{"type":"custom_tool_call","status":"completed"}` {
		t.Errorf("call is %s, extra %s", p.Arguments, all[9].Extra)
	}
	shown := all[10].Parts[0].Content
	if len(shown) != 2 || shown[1].Type != eventlog.ImagePart || shown[1].Blob.Bytes != 70 || shown[1].MediaType != "image/png" {
		t.Errorf("result is %+v", shown)
	}
	if p := all[13].Parts[1]; p.Blob != shown[1].Blob || string(p.Extra) != `{"detail":"high"}` {
		t.Errorf("image is %+v", p)
	}
	if p := all[15].Parts[0]; !p.Interrupted || !p.IsError {
		t.Errorf("result is %+v", p)
	}
}

// info is what a session says of itself.
func info(t *testing.T, log *eventlog.Log, session string) projection.SessionInfo {
	t.Helper()
	view, err := projection.Load(t.Context(), log, session, projection.Info)
	if err != nil {
		t.Fatal(err)
	}
	return view.State
}

func TestSessionFacts(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "whole", "agent-fresh", "parent")
	got := info(t, log, id("1"))
	importtest.Same(t, "labels", map[string]string{
		"approval_policy": "on-request", "effort": "high", "git_branch": "gauge", "git_commit": "77aa", "git_repository": "https://example.org/tide.git",
		"model": "gpt-5.5", "model_provider": "openai", "originator": "codex-tui", "sandbox": "workspace-write", "source": "cli",
	}, got.Labels)
	if got.Title != "Tides of Brest" || got.Agent != "codex" || got.CWD != "/home/ada/tide" || !got.Parent.EventID.IsZero() || got.Parent.SessionID != "" {
		t.Errorf("session is %+v", got)
	}
	importtest.Same(t, "source", eventlog.SessionSource{Format: "codex", Version: "0.118.0", Path: fixture("whole"), SessionID: id("1")}, got.Source)
	got = info(t, log, id("5"))
	if got.Parent.SessionID != id("4") || got.Parent.CallID != "s1" || got.Parent.Seq != 11 || got.Labels["agent_role"] != "explorer" {
		t.Errorf("sub-agent is %+v", got)
	}
}

func TestUsage(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "whole")
	importtest.Same(t, "usage", eventlog.Usage{InputTokens: 2100, CacheReadTokens: 3600, OutputTokens: 200, ReasoningTokens: 30}, spent(t, log, id("1")))
}

// spent are the tokens that a session used by itself.
func spent(t *testing.T, log *eventlog.Log, session string) eventlog.Usage {
	t.Helper()
	view, err := projection.Load(t.Context(), log, session, projection.Usage)
	if err != nil {
		t.Fatal(err)
	}
	return view.State.Total.Usage
}

func TestRolledBack(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "rolled-back")
	importtest.Same(t, "active path", []string{
		"session_started Name a sea.",
		"turn_started",
		"developer <permissions instructions>Ask first.</permissions instructions>",
		"user # AGENTS.md instructions for /home/ada/tide <environment_context>",
		"session_updated",
		"head_moved to 5",
		"head_moved to 37",
	}, drawn(t, log, id("2")))
	var tos []int64
	var indexes []int
	for e, err := range log.Read(t.Context(), id("2"), eventlog.All) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok, err := e.HeadMove(); ok && err == nil {
			tos = append(tos, m.To)
		}
		if turn, ok, err := e.TurnStart(); ok && err == nil {
			indexes = append(indexes, turn.Index)
		}
	}
	importtest.Same(t, "moves", []int64{11, 5, 37}, tos)
	importtest.Same(t, "indexes of turns", []int{0, 1, 2, 1, 1}, indexes)
	importtest.Same(t, "usage", eventlog.Usage{InputTokens: 1490, OutputTokens: 25}, spent(t, log, id("2")))
}

// history is what the model sees.
func history(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for _, e := range importtest.History(t, log, session) {
		lines = append(lines, drawMessage(&e.Message))
	}
	return lines
}

func TestCompacted(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "compacted")
	for _, e := range path(t, log, id("3")) {
		c, ok, err := e.Compaction()
		if !ok {
			continue
		}
		var refs []int64
		for _, entry := range c.Entries {
			refs = append(refs, entry.Seq)
		}
		importtest.Same(t, "references", []int64{6, 12, 0, 17, 0}, refs)
		if err != nil || !c.Replace || c.Covers.To != e.Seq-1 || c.Entries[2].Message.Role != eventlog.Developer || string(c.Extra) != `{"window_number":1}` {
			t.Errorf("compaction is %+v, %v", c, err)
		}
	}
	importtest.Same(t, "history", []string{
		"user Count the boats.",
		"assistant Twelve.",
		"developer <permissions instructions>Ask first, always.</permissions instructions>",
		"user Count the oars.",
		"assistant opaque",
		"assistant Forty oars, twelve boats.",
		"user Thanks.",
		"assistant You are welcome.",
	}, history(t, log, id("3")))
}

func TestSummarised(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "summarised")
	importtest.Same(t, "history", []string{
		"developer <permissions instructions>Ask first.</permissions instructions>",
		"user # AGENTS.md instructions for /home/ada/tide <environment_context>",
		"user Paint the hull.",
		"user Blue.",
		"user The hull is to be blue.",
		"assistant Painted.",
	}, history(t, log, id("a")))
}

func TestBare(t *testing.T) {
	log := importtest.NewLog(t)
	load(t, log, "bare")
	importtest.Same(t, "active path", []string{
		"session_started Where is the anchor?", "user Where is the anchor?", "assistant calls shell", "tool result of shell", "assistant On the deck.",
	}, drawn(t, log, id("8")))
}

func TestDamaged(t *testing.T) {
	log := importtest.NewLog(t)
	got := load(t, log, "damaged").Rows[0].Result
	importtest.Same(t, "active path", []string{"session_started Ring the bell.", "turn_started", "user Ring the bell.", "assistant Ding."}, drawn(t, log, id("9")))
	importtest.Same(t, "refusals", []string{"line 3, byte 756", "line 8, byte 1255"}, refusals(got))
	if got.Records != 8 || got.Imported+got.Raw+len(got.Refused) != 8 {
		t.Errorf("result is %+v", got)
	}
}

func refusals(r interop.Result) (all []string) {
	for _, f := range r.Refused {
		all = append(all, fmt.Sprintf("line %d, byte %d", f.Line, f.Offset))
	}
	return all
}

func TestASessionIDThatNoneCanHave(t *testing.T) {
	log := importtest.NewLog(t)
	got, err := loadText(t, log, `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":""}}`+"\n")
	if err != nil || len(got.Refused) != 1 || got.Held != 0 || got.Events != 0 {
		t.Errorf("import: %+v, %v", got, err)
	}
}

// record is a line of a file; its payload is what stands between the braces.
func record(kind, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:01Z","type":%q,"payload":{%s}}`, kind, payload) + "\n"
}

const opening = `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/srv"}}` + "\n"

// What becomes of single records behind the start of a session and a prompt.
func TestRecords(t *testing.T) {
	spawn := record("response_item", `"type":"function_call","name":"spawn_agent","arguments":"{}","call_id":"c"`)
	started := record("response_item", `"type":"function_call_output","call_id":"c","output":"{\"agent_id\":\"a\"}"`)
	for name, test := range map[string]struct {
		lines string
		want  []string
	}{
		"an item that is not known": {record("response_item", `"type":"ghost_snapshot"`), []string{"codex:response_item:ghost_snapshot {\"timestamp\""}},
		"a role that is not known":  {record("response_item", `"type":"message","role":"critic","content":"x"`), []string{`codex:response_item:message {"timestamp"`}},
		"a call without an id":      {record("response_item", `"type":"function_call","name":"x"`), []string{`codex:response_item:function_call {"timestamp"`}},
		"a payload that is no object": {
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
		"what another agent asks": {
			record("response_item", `"type":"agent_message","author":"/root","content":[{"type":"encrypted_content","encrypted_content":"eA=="}]`),
			[]string{`message_added {"role":"user","parts":[{"type":"opaque","kind":"encrypted_content"`}},
		"settings": {
			record("event_msg", `"type":"thread_settings_applied","thread_settings":{"model":"m","cwd":"/tmp"}`) +
				record("event_msg", `"type":"thread_settings_applied","thread_settings":{"model":"m","cwd":"/tmp"}`),
			[]string{`session_updated {"cwd":"/tmp","labels":{"model":"m"},`, `codex:event_msg:thread_settings_applied {`}},
		"a name of another session": {
			record("event_msg", `"type":"thread_name_updated","thread_id":"t","thread_name":"x"`), []string{`codex:event_msg:thread_name_updated {`}},
		"the end of a turn that no record began": {record("event_msg", `"type":"turn_aborted","reason":"replaced"`), []string{
			`turn_completed {"status":"aborted","stop_reason":"replaced",`}},
		"nothing to roll back": {record("event_msg", `"type":"thread_rolled_back","num_turns":0`), []string{`codex:event_msg:thread_rolled_back {`}},
		"a count of tokens that cannot be": {
			record("event_msg", `"type":"token_count","info":{"total_token_usage":{"input_tokens":1},"last_token_usage":{"input_tokens":-1}}`),
			[]string{`codex:event_msg:token_count {`}},
		"a compaction of nothing": {record("compacted", `"message":""`), []string{`codex:compacted {`}},
		"a sub-agent that cannot be started": {
			spawn + record("response_item", `"type":"function_call_output","call_id":"c","output":"collab spawn failed: no"`),
			[]string{`message_added {`, `child_requested {"child_id":"c","call_id":"c","mode":"fresh"}`, `message_added {`, `child_failed {"child_id":"c","call_id":"c","error":"collab spawn failed: no"}`}},
		"a sub-agent whose end is noted": {
			spawn + started + record("response_item", `"type":"message","role":"user","content":"<subagent_notification>\n{\"agent_id\":\"a\",\"status\":{\"errored\":\"no </quota>\"}}\n</subagent_notification>"`),
			[]string{`message_added {`, `child_requested {`, `message_added {`, `child_started {"child_id":"c","child_session_id":"a","call_id":"c"}`,
				`message_added {`, `child_failed {"child_id":"c","child_session_id":"a","call_id":"c","status":"errored","error":"no </quota>"}`}},
		"a sub-agent that is under way": {
			record("event_msg", `"type":"sub_agent_activity","agent_thread_id":"a","event_id":"e","kind":"started"`) +
				record("event_msg", `"type":"sub_agent_activity","agent_thread_id":"a","event_id":"f","kind":"interacted"`) +
				record("event_msg", `"type":"collab_waiting_end","statuses":{"a":"shutdown","b":"shutdown"}`),
			[]string{`child_started {"child_id":"e","child_session_id":"a","extra":`, `codex:event_msg:sub_agent_activity {`,
				`codex:event_msg:collab_waiting_end {`, `child_canceled {"child_id":"e","child_session_id":"a","status":"shutdown"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			got, err := loadText(t, log, opening+record("response_item", `"type":"message","role":"user","content":"Hello"`)+test.lines)
			if err != nil || len(got.Refused) > 0 || got.Held > 0 {
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
		"of the first prompt":        {prompt("<environment_context>x</environment_context>") + prompt("Hello\nthere") + prompt("More"), "Hello"},
		"of an editor":               {prompt("# Context from my IDE setup:\n\n## My request for Codex:\nMend it.\n"), "Mend it."},
		"that was given before":      {record("event_msg", `"type":"thread_name_updated","thread_id":"s","thread_name":"Mending"`) + prompt("Mend it."), "Mending"},
		"where the model begins":     {record("response_item", `"type":"message","role":"assistant","content":"Hi"`) + prompt("Hello"), "Hello"},
		"of an element of one's own": {prompt("<div>What is this?</div>"), "<div>What is this?</div>"},
	} {
		log := importtest.NewLog(t)
		if _, err := loadText(t, log, opening+test.lines); err != nil {
			t.Fatal(err)
		}
		if got := info(t, log, "s").Title; got != test.want {
			t.Errorf("%s: title is %q", name, got)
		}
	}
}

func TestNothingBeginsWithoutAPrompt(t *testing.T) {
	log := importtest.NewLog(t)
	got, err := loadText(t, log, opening+record("turn_context", `"model":"m"`))
	if err != nil || got.Held != 2 || got.Events != 0 || len(importtest.Sessions(t, log)) > 0 {
		t.Errorf("import: %+v, %v", got, err)
	}
	got, err = loadText(t, log, record("turn_context", `"model":"m"`)+record("response_item", `"type":"message","role":"user","content":"Hi"`)+opening)
	if err != nil || got.Held != 0 || got.Events != 4 {
		t.Errorf("import of what stands before its header: %+v, %v", got, err)
	}
}

// Ids that do not tell their time: copies are those that were made at once.
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
	importtest.Same(t, "spent", eventlog.Usage{InputTokens: 7}, spent(t, log, "fork"))
}

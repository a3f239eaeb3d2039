package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
)

// smallFiles are valid files of each format, with texts, and with calls and results if the
// format has them. A value without a line break is a file of testdata/transcripts.
//
// Files with beside are of programs that run experiments: the formats have many members
// that a message may lack. Then a text under another name stays in the extra of its event.
var smallFiles = []struct {
	format, name, text string
	beside             bool
}{
	{"claude", "f.jsonl", `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Where is it?"}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"track","input":{"id":"A1"}}]}}
{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"Leipzig"}]}}
{"type":"assistant","uuid":"u4","parentUuid":"u3","sessionId":"s","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"In Leipzig."}]}}
`, false},
	{"codex", "f.jsonl", `{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"s","timestamp":"2026-03-01T10:00:00Z","cwd":"/w","originator":"codex","cli_version":"1"}}
{"timestamp":"2026-03-01T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Where is it?"}]}}
{"timestamp":"2026-03-01T10:00:02Z","type":"response_item","payload":{"type":"function_call","name":"track","arguments":"{\"id\":\"A1\"}","call_id":"c1"}}
{"timestamp":"2026-03-01T10:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Leipzig"}}
{"timestamp":"2026-03-01T10:00:04Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"In Leipzig."}]}}
`, false},
	{"pi", "f.jsonl", `{"type":"session","version":3,"id":"s","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-03-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Where is it?"}]}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-03-01T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"toolCall","id":"c1","name":"track","arguments":{"id":"A1"}}],"usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-03-01T10:00:03.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"track","content":[{"type":"text","text":"Leipzig"}],"isError":false}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-03-01T10:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"In Leipzig."}]}}
`, false},
	{"gemini", "f.jsonl", `{"sessionId":"s","projectHash":"p","startTime":"2026-03-01T10:00:00.000Z","lastUpdated":"2026-03-01T10:00:00.000Z"}
{"id":"m1","timestamp":"2026-03-01T10:00:00.000Z","type":"user","content":[{"text":"Where is it?"}]}
{"id":"m2","timestamp":"2026-03-01T10:01:00.000Z","type":"gemini","content":"I look.","toolCalls":[{"id":"c1","name":"track","args":{"id":"A1"},"status":"success","result":[{"functionResponse":{"id":"c1","name":"track","response":{"output":"Leipzig"}}}]}]}
{"id":"m3","timestamp":"2026-03-01T10:02:00.000Z","type":"gemini","content":"In Leipzig."}
`, false},
	{"opencode", "f.json", `{"info":{"id":"ses_s","slug":"a","version":"1","projectID":"p","directory":"/w","title":"T","time":{"created":1772359200000,"updated":1772359209000}},"messages":[
{"info":{"id":"msg_1","sessionID":"ses_s","role":"user","time":{"created":1772359200000}},"parts":[{"type":"text","text":"Where is it?","id":"prt_1","messageID":"msg_1","sessionID":"ses_s"}]},
{"info":{"id":"msg_2","sessionID":"ses_s","role":"assistant","time":{"created":1772359201000},"modelID":"m","providerID":"p"},"parts":[{"type":"text","text":"I look.","id":"prt_2","messageID":"msg_2","sessionID":"ses_s"},{"type":"tool","id":"prt_3","messageID":"msg_2","sessionID":"ses_s","callID":"c1","tool":"track","state":{"status":"completed","input":{"id":"A1"},"output":"Leipzig","title":"t","metadata":{},"time":{"start":1772359201000,"end":1772359202000}}},{"type":"text","text":"In Leipzig.","id":"prt_4","messageID":"msg_2","sessionID":"ses_s"}]}]}
`, false},
	{"cline", "api_conversation_history.json", `[{"role":"user","content":[{"type":"text","text":"<task>Where is it?</task>"}],"ts":1772359200000},
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"track","input":{"id":"A1"}}],"ts":1772359201000},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"Leipzig"}],"ts":1772359202000},
{"role":"assistant","content":[{"type":"text","text":"In Leipzig."}],"ts":1772359203000}]
`, false},
	{"messages", "chat.json", `{"messages":[{"role":"user","content":"Where is it?"},
{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"track","arguments":"{\"id\":\"A1\"}"}}]},
{"role":"tool","tool_call_id":"c1","content":"Leipzig"},
{"role":"assistant","content":"In Leipzig."}]}
`, false},
	{"messages", "blocks.json", `{"messages":[{"role":"user","content":"Where is it?"},
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"track","input":{"id":"A1"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"Leipzig"}]}]},
{"role":"assistant","content":[{"type":"text","text":"In Leipzig."}]}]}
`, false},
	{"messages", "items.json", `{"input":[{"role":"user","content":[{"type":"input_text","text":"Where is it?"}]},
{"type":"function_call","call_id":"c1","name":"track","arguments":"{\"id\":\"A1\"}"},
{"type":"function_call_output","call_id":"c1","output":"Leipzig"},
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"In Leipzig."}]}]}
`, false},
	{"messages", "function.json", `{"messages":[{"role":"user","content":"Where is it?"},
{"role":"assistant","content":null,"function_call":{"name":"track","arguments":"{\"id\":\"A1\"}"}},
{"role":"function","name":"track","content":"Leipzig"},
{"role":"assistant","content":"In Leipzig."}]}
`, false},
	{"openhands", "", "pairs.json", true},
	{"openhands", "", "events.jsonl", true},
	{"swe-agent", "", "calls.traj", true},
	{"swe-agent", "", "plain.traj", true},
	{"mini-swe-agent", "", "calls.traj.json", true},
	{"mini-swe-agent", "", "blocks.traj.json", true},
	{"tau-bench", "", "ferry.json", true},
	{"inspect", "f.json", `{"version":2,"status":"success","eval":{"task":"t","run_id":"r","model":"m","created":"2026-01-01T00:00:00Z"},"samples":[{"id":1,"epoch":1,"input":"Where is it?","target":"x","messages":[
{"id":"m1","role":"user","content":"Where is it?"},{"id":"m2","role":"assistant","content":"I look.","tool_calls":[{"id":"c1","function":"track","arguments":{"id":"A1"}}]},
{"id":"m3","role":"tool","tool_call_id":"c1","function":"track","content":"Leipzig"},{"id":"m4","role":"assistant","content":"In Leipzig."}]}]}
`, true},
	{"oasst", "", "trees.jsonl", true},
	{"oasst", "", "messages.jsonl", true},
	{"entire", "", "plain.jsonl", true},
	{"stream", "", "exec.jsonl", true},
	{"stream", "", "stream-json.jsonl", true},
}

// Law: if a member of a valid file has another name, the import of the file is refused, or
// rejects or marks what it does not understand, or the history is the same. No history
// lacks all messages or the result of a call.
func TestRenamedMembers(t *testing.T) {
	for _, file := range smallFiles {
		name, text := file.name, file.text
		if name == "" {
			name = text
			text = importtest.ReadFile(t, filepath.Join("..", "..", "testdata", "transcripts", file.format, name))
		}
		t.Run(file.format+"/"+name, func(t *testing.T) {
			want := imported(t, name, text)
			if want.verdict != "" || len(want.history) == 0 {
				t.Fatalf("the file itself: %s; %d messages", want.verdict, len(want.history))
			}
			verdicts := map[string][]string{}
			for _, member := range memberNames(t, text) {
				if file.format == "swe-agent" && (member == "info" || member == "trajectory") {
					continue // without them the run goes on, and its last call waits
				}
				got := imported(t, name, renamed(t, text, member))
				verdict := got.against(&want, file.beside)
				verdicts[verdict] = append(verdicts[verdict], member)
				if strings.HasPrefix(verdict, "wrong") {
					t.Errorf("%s: %s\n%s", member, verdict, strings.Join(got.history, "\n"))
				}
			}
			for _, verdict := range slices.Sorted(maps.Keys(verdicts)) {
				t.Logf("%-9s %2d: %s", verdict, len(verdicts[verdict]), strings.Join(verdicts[verdict], " "))
			}
		})
	}
}

// Files of other programs that resemble a format. The error says where the first record is
// that is not understood, and nothing is imported.
func TestHalfReadFilesAreRefused(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"qwen.jsonl", `{"uuid":"q1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Count"}]}}
{"uuid":"q2","parentUuid":"q1","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"t1","name":"ls","args":{}}}]}}
{"uuid":"q3","parentUuid":"q2","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"t1","response":{"output":"a"}}}]}}`,
			`:1: record at byte 0: session "s": not understood: no part of the messages of role "user" is understood`},
		{"amp.json", `{"v":12,"id":"T-1","messages":[{"role":"user","content":[{"type":"text","text":"Count"}]},
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"cmd":"ls"}}]},
{"role":"user","content":[{"type":"tool_result","toolUseID":"t1","run":{"status":"done","result":{"output":"a"}}}]},
{"role":"assistant","content":[{"type":"text","text":"Three."}]}]}`,
			`: not understood: the result of the call "t1" is not understood`},
		{"bedrock.json", `{"messages":[{"role":"user","content":[{"text":"Where?"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"track","input":{}}}]},
{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"Leipzig"}]}}]}]}`,
			`not understood: no part of the messages of role "user" is understood`},
		{"langchain.json", `[{"type":"human","content":"hi"},{"type":"ai","content":"hello","tool_calls":[{"name":"track","args":{},"id":"c1","type":"tool_call"}]},{"type":"tool","content":"Leipzig","tool_call_id":"c1"}]`,
			"not a transcript of a known format"},
		{"object.json", `[{"role":"user","content":{"role":"user","content":"Where?"}},{"role":"assistant","content":{"content":"In Leipzig."}}]`,
			`:1: record at byte 1: session "object-1-`},
		{"oasst.jsonl", `{"message_id":"m1","parent_message_id":null,"role":"user","text":"Where?","session_id":"s1"}
{"message_id":"m2","parent_message_id":"m1","role":"assistant","text":null,"session_id":"s1"}`,
			"not a transcript of a known format"},
		{"call.json", `{"messages":[{"role":"user","content":"Where?"},{"role":"assistant","content":"I look.","calls":[{"id":"c1","name":"track"}]},{"role":"tool","tool_call_id":"c1","content":"Leipzig"},{"role":"assistant","content":"There."}]}`,
			`: not understood: the call "c1" has a result, and is not understood`},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), test.name)
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			log := importtest.NewLog(t)
			table, err := interop.Import(t.Context(), log, formats.All(), []string{path})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("import: %v, want %s", err, test.want)
			}
			if r := table.Total(); r.Imported+r.Raw+r.Present+r.Events > 0 || r.Skipped+len(r.Rejected) != r.Records {
				t.Errorf("nothing is stored, and the counts are %+v", r)
			}
			if ids := importtest.Sessions(t, log); len(ids) > 0 {
				t.Errorf("sessions %q", ids)
			}
		})
	}
}

// A file that grows is refused from the first result that is not understood, and what it had
// before stays.
func TestAGrownFileIsRefused(t *testing.T) {
	log := importtest.NewLog(t)
	begin, rest, _ := strings.Cut(smallFiles[0].text, `{"type":"user","uuid":"u3"`)
	claude := named(t, "claude")
	importtest.Load(t, log, claude, "f.jsonl", begin)
	before := importtest.Dump(t, log)
	whole := begin + `{"type":"user","uuid":"u3"` + rest
	for range 2 {
		_, err := claude.Import(t.Context(), log, importtest.Source("f.jsonl", strings.ReplaceAll(whole, "tool_use_id", "toolUseID")))
		if !errors.Is(err, interop.ErrUnread) {
			t.Errorf("import: %v", err)
		}
		importtest.Same(t, "log", before, importtest.Dump(t, log))
	}
	if got := importtest.Load(t, log, claude, "f.jsonl", whole); got.Events == 0 {
		t.Errorf("import of the right file: %+v", got)
	}
}

// outcome is an import into an empty log.
type outcome struct {
	verdict  string // refused, rejected, marked, skipped; empty for none of them
	marks    int
	sessions int
	history  []string
	texts    []string        // of calls: name and arguments
	open     map[string]bool // calls without a result
}

// imported imports a file with the formats that logtool has.
func imported(t *testing.T, name, text string) (o outcome) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := importtest.NewLog(t)
	table, err := interop.Import(t.Context(), log, formats.All(), []string{path})
	total := table.Total()
	o.marks = total.Raw
	o.read(t, log)
	var format *interop.FormatError
	switch {
	case errors.As(err, &format), errors.Is(err, interop.ErrUnread):
		o.verdict = "refused"
	case err != nil:
		t.Errorf("import: %v", err)
	case len(total.Rejected) > 0:
		o.verdict = "rejected"
	case o.sessions == 0 && total.Skipped > 0:
		o.verdict = "skipped"
	}
	return o
}

// read reads the history of all sessions.
func (o *outcome) read(t *testing.T, log *eventlog.Log) {
	o.open = map[string]bool{}
	for _, id := range importtest.Sessions(t, log) {
		o.sessions++
		for _, m := range importtest.Messages(t, log, id) {
			line := string(m.Role)
			for i := range m.Parts {
				p := &m.Parts[i]
				text := event.Message{Parts: append([]event.Part{*p}, p.Content...)}.Text()
				if p.Type == event.ToolCallPart {
					text += p.Name + string(p.Arguments)
				}
				o.texts = append(o.texts, text)
				line += fmt.Sprintf(" %s %q", p.Type, text)
				switch p.Type {
				case event.OpaquePart:
					o.marks++
				case event.ToolCallPart:
					o.open[p.CallID] = true
				case event.ToolResultPart:
					for _, c := range p.Content {
						if c.Type == event.OpaquePart {
							o.marks++
						}
					}
					delete(o.open, p.CallID)
				}
			}
			o.history = append(o.history, line)
		}
	}
}

// against compares the import of a file with a renamed member with the import of the file.
// beside says that a part of a message may lie in the extra of the event.
func (o *outcome) against(whole *outcome, beside bool) string {
	switch {
	case o.verdict == "refused" || o.verdict == "skipped":
		return o.verdict
	case o.says(whole):
		return "the same"
	case o.sessions > 0 && len(o.history) == 0:
		return "wrong: an empty history"
	case len(o.open) > len(whole.open):
		return "wrong: an interruption"
	case o.verdict == "rejected":
		return o.verdict
	case o.marks > whole.marks:
		return "marked"
	case beside:
		return "beside"
	}
	return "wrong: no mark"
}

// says reports whether the history has the same calls and every text of another history,
// and perhaps more around the texts.
func (o *outcome) says(whole *outcome) bool {
	if len(o.history) != len(whole.history) || len(o.open) != len(whole.open) || len(o.texts) != len(whole.texts) {
		return false
	}
	for i := range o.texts {
		if !strings.Contains(o.texts[i], whole.texts[i]) {
			return false
		}
	}
	return true
}

// payloads are the members with values of tools: their members are not of the format.
var payloads = []string{"input", "arguments", "args", "metadata", "info", "labels", "usage"}

// memberNames are the names of all members in a file.
func memberNames(t *testing.T, text string) (names []string) {
	seen := map[string]bool{}
	rewrite(t, text, func(name string) string {
		seen[name] = true
		return name
	})
	return slices.Sorted(maps.Keys(seen))
}

// renamed is a file with another name for a member.
func renamed(t *testing.T, text, member string) string {
	return rewrite(t, text, func(name string) string {
		if name == member {
			return "other_" + name
		}
		return name
	})
}

// rewrite changes the names of all members in a file.
func rewrite(t *testing.T, text string, change func(string) string) string {
	t.Helper()
	var out bytes.Buffer
	d := jsontext.NewDecoder(strings.NewReader(text))
	for {
		v, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		out.Write(rewriteValue(t, v, change))
		out.WriteByte('\n')
	}
}

func rewriteValue(t *testing.T, v jsontext.Value, change func(string) string) jsontext.Value {
	switch v.Kind() {
	case '[':
		all, err := rawjson.Elements(v)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, e := range all {
			list = append(list, string(rewriteValue(t, e, change)))
		}
		return jsontext.Value("[" + strings.Join(list, ",") + "]")
	case '{':
		members, err := rawjson.Members(v)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, m := range members {
			name, value := m.Name, m.Value
			if value.Kind() != '{' || !slices.Contains(payloads, name) || name == "info" && bytes.Contains(value, []byte(`"sessionID"`)) {
				value = rewriteValue(t, value, change)
			}
			list = append(list, fmt.Sprintf("%q:%s", change(name), value))
		}
		return jsontext.Value("{" + strings.Join(list, ",") + "}")
	}
	return v
}

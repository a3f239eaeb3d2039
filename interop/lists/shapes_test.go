package lists_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/lists"
	"github.com/convlog/convlog/upkeep/verify"
)

func TestDetect(t *testing.T) {
	big := strings.Repeat("x", 1000)
	for content, want := range map[string]bool{
		`[{"role":"user","content":"hi"}]`:                                             true,
		`{"messages":[]}`:                                                              true,
		`{"tools":[],"messages":[{"role":"user","content":"hi"}]}`:                     true,
		"\xef\xbb\xbf \n {\"messages\": [\n {\"role\": \"user\", \"content\": \"":      true,
		`{"model":"m","messages":[{"role":"user","content":"` + big:                    true,
		`[{"content":"` + big:                                                          false,
		`[{"role":"user","content":"` + big:                                            true,
		`[[{"role":"user","content":"hi"}]]`:                                           true,
		`{"role":"user","content":"hi"}` + "\n" + `{"role":"assistant","content":""`:   true,
		`{"input":"hi","output":[{"type":"message","role":"assistant","content":[]}]}`: true,
		`{"input":"hi","output":"ho"}`:                                                 false,
		`{"model":"m","tools":[{"name":"` + big:                                        true,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`:           true,
		`{"type":"user","sessionId":"s","message":{"role":"user","content":"hi"}}`:     false,
		`{"messages":[{"type":"user","content":"hi"}]}`:                                false,
		`{"input":[],"output":[]}`:                                                     false,
		`{"messages":{"a":1}}`:                                                         false,
		`{"role":"prompter","text":"hi"}`:                                              false,
		`{"role":"user"}`:                                                              false,
		`[1]`:                                                                          false, `[]`: false, ``: false, `hello`: false, `{`: false, `[[[{"role":"user","content":"hi"}]]]`: false,
	} {
		if got := (lists.Format{}).Detect("f", []byte(content)); got != want {
			t.Errorf("Detect(%.70s) = %v", content, got)
		}
	}
}

// importable are lists with elements that no exporter writes, and the expected events.
var importable = map[string]struct {
	content string
	shape   string
	want    []string
}{
	"a chat with everything around it": {
		content: `{"id":"chat-0000000001","title":"Snow","model":"m-1","temperature":0.5,"tools":[{"type":"function"}],"messages":[
			{"role":"user","content":[{"type":"text","text":"hi","x":1},{"type":"image_url","image_url":{"url":"https://example.org/a.png","detail":"low"}}],"name":"bo"},
			{"role":"assistant","content":"","reasoning_content":"hm","refusal":"I would rather not.","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},{"id":"c2","type":"custom","custom":{"name":"g","input":"text"}}],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}},"finish_reason":"tool_calls"},
			{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"one"}]},
			{"role":"tool","tool_call_id":"c2","name":"g","content":"two"}]}`,
		shape: "openai",
		want: []string{
			`session_started {"title":"Snow","source":{"format":"openai","path":"talk.json","session_id":"chat-0000000001"},"extra":{"id":"chat-0000000001","title":"Snow","model":"m-1","temperature":0.5,"tools":[{"type":"function"}]}}`,
			`user {"name":"bo"} {"type":"text","text":"hi","extra":{"x":1}} {"type":"image","url":"https://example.org/a.png","extra":{"image_url":{"detail":"low"}}}`,
			`assistant {"type":"reasoning","text":"hm"} {"type":"text","text":"I would rather not.","extra":{"type":"refusal"}} {"type":"tool_call","call_id":"c1","name":"f","arguments":{"a":1}} {"type":"tool_call","call_id":"c2","name":"g","arguments":"text","extra":{"type":"custom"}}`,
			`tool {"type":"tool_result","call_id":"c1","name":"f","content":[{"type":"text","text":"one"}]}`,
			`tool {"type":"tool_result","call_id":"c2","name":"g","content":[{"type":"text","text":"two"}]}`,
		},
	},
	"calls before they had ids": {
		content: `[{"role":"system","content":"s"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"not json"}},{"role":"function","name":"f","content":"1"},{"role":"wizard","content":"?"},{"type":"note","text":"n"},7]`,
		shape:   "openai",
		want: []string{
			`session_started {"source":{"format":"openai","path":"talk.json"}}`,
			`system {"type":"text","text":"s"}`,
			`assistant {"type":"tool_call","call_id":"call_2_0","name":"f","arguments":"not json"}`,
			`tool {"type":"tool_result","call_id":"call_2_0","name":"f","content":[{"type":"text","text":"1"}]}`,
			`messages:element {"role":"wizard","content":"?"}`,
			`messages:note {"type":"note","text":"n"}`,
			`messages:element 7`,
		},
	},
	"Anthropic's own members": {
		content: `{"system":"Be brief.","anthropic_version":"x","messages":[
			{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},{"type":"search_result","source":"s"}]},
			{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"tool_use","id":"c1","name":"f","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":5}},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"bad"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c9","content":"whose?"}]}]}`,
		shape: "anthropic",
		want: []string{
			`session_started {"title":"hi","source":{"format":"anthropic","path":"talk.json"},"extra":{"anthropic_version":"x"}}`,
			`system {"type":"text","text":"Be brief."}`,
			`user {"type":"text","text":"hi","extra":{"cache_control":{"type":"ephemeral"}}} {"type":"opaque","kind":"search_result","value":{"type":"search_result","source":"s"}}`,
			`assistant {"stop_sequence":null} {"type":"reasoning","text":"t","signature":"c2ln"} {"type":"tool_call","call_id":"c1","name":"f","arguments":{}}`,
			`tool {"type":"tool_result","call_id":"c1","name":"f","content":[{"type":"text","text":"bad"}],"is_error":true}`,
			`tool {"type":"tool_result","call_id":"c9","content":[{"type":"text","text":"whose?"}]}`,
		},
	},
	"a response with what was asked": {
		content: `{"id":"resp_00000001","object":"response","instructions":"Be brief.","input":"hi","output":[
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"eHl6"},
			{"type":"web_search_call","id":"ws_1","status":"completed"},
			{"type":"computer_call","id":"cc_1","call_id":"c1","action":{"type":"click"},"status":"completed"},
			{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"https://example.org/a.png"}},
			{"type":"item_reference","id":"msg_0"},
			{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ho","annotations":[]}]}],
			"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}`,
		shape: "responses",
		want: []string{
			`session_started {"title":"hi","source":{"format":"responses","path":"talk.json","session_id":"resp_00000001"},"extra":{"id":"resp_00000001","object":"response","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}}`,
			`system {"type":"text","text":"Be brief."}`,
			`user {"type":"text","text":"hi"}`,
			`assistant {"summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]} {"type":"reasoning","id":"rs_1","text":"a\n\nb","encrypted":"eHl6"}`,
			`assistant {"type":"opaque","kind":"web_search_call","value":{"type":"web_search_call","id":"ws_1","status":"completed"}}`,
			`assistant {"type":"computer_call","status":"completed"} {"type":"tool_call","id":"cc_1","call_id":"c1","name":"computer","arguments":{"type":"click"}}`,
			`tool {"type":"computer_call_output"} {"type":"tool_result","call_id":"c1","name":"computer","content":[{"type":"opaque","kind":"computer_screenshot","value":{"type":"computer_screenshot","image_url":"https://example.org/a.png"}}]}`,
			`messages:item_reference {"type":"item_reference","id":"msg_0"}`,
			`assistant {"status":"completed"} {"type":"text","text":"ho","extra":{"annotations":[]}}`,
		},
	},
}

// An import loses nothing: unknown members are in the extra of the message, and an
// element that is no message is kept raw.
func TestWhatBecomesOfLists(t *testing.T) {
	for name, c := range importable {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			got := load(t, log, c.content)
			if len(got.Sessions) != 1 || len(got.Rejected) > 0 {
				t.Fatalf("imported: %+v", got)
			}
			if diff := cmp.Diff(c.want, draw(t, log, got.Sessions[0])); diff != "" {
				t.Errorf("events (+):\n%s", diff)
			}
			for _, format := range []string{"openai", "responses", "anthropic"} {
				exported(t, log, got.Sessions[0], format)
			}
			if report, err := verify.Session(t.Context(), log, got.Sessions[0]); err != nil || len(report.Defects) > 0 {
				t.Errorf("verify: %v, %v", report.Defects, err)
			}
			if again := load(t, log, c.content); again.Events != 0 || again.Present != again.Records {
				t.Errorf("imported again: %+v", again)
			}
		})
	}
}

// The token counts of all shapes mean the same.
func TestUsage(t *testing.T) {
	want := map[string]event.Usage{
		"a chat with everything around it": {InputTokens: 6, CacheReadTokens: 4, OutputTokens: 2},
		"Anthropic's own members":          {InputTokens: 3, CacheReadTokens: 5, OutputTokens: 4},
		"a response with what was asked":   {InputTokens: 6, CacheReadTokens: 4, OutputTokens: 2, ReasoningTokens: 1},
	}
	for name, u := range want {
		log := importtest.NewLog(t)
		got := load(t, log, importable[name].content)
		var sum event.Usage
		for e, err := range log.Read(t.Context(), got.Sessions[0], eventlog.All()) {
			if err != nil {
				t.Fatal(err)
			}
			m, _, _ := event.Decode[event.Message](&e)
			sum = sum.Add(m.Usage)
		}
		if diff := cmp.Diff(u, sum); diff != "" {
			t.Errorf("%s: usage (+):\n%s", name, diff)
		}
	}
}

// A message that breaks a rule of conversation is imported and marked.
func TestBrokenRulesAreMarked(t *testing.T) {
	log := importtest.NewLog(t)
	got := load(t, log, importable["Anthropic's own members"].content)
	for e, err := range log.Read(t.Context(), got.Sessions[0], eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := e.MetadataValue("broken"); ok != (e.Seq == 6) || ok && string(v) != `["orphan_result"]` {
			t.Errorf("event %d: broken %s", e.Seq, v)
		}
	}
}

package lists_test

import (
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/lists"
)

const (
	asked      = `{"model":"m","temperature":0,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]}`
	completion = `{"id":"chatcmpl-0000000001","object":"chat.completion","created":1767225600,"model":"m-2","choices":[` +
		`{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"},` +
		`{"index":1,"message":{"role":"assistant","content":"Or not."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`
	answer = `{"id":"resp_0000000001","object":"response","created_at":1767225600,"model":"m-3","output":[{"type":"reasoning","id":"rs_1","summary":[]},` +
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Ho","annotations":[]}]}],"usage":{"input_tokens":5,"output_tokens":1}}`
	message = `{"id":"msg_0000000001","type":"message","role":"assistant","model":"m-4","content":[{"type":"text","text":"Ha"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`
)

// A response becomes a message with the model and the usage of the response, with or
// without its request.
func TestResponses(t *testing.T) {
	system, user := "system Be…", "user Hi…"
	for name, c := range map[string]struct {
		content, id string
		path        []string
		model       string
		usage       event.Usage
	}{
		"a completion": {completion, "chatcmpl-0000000001", []string{"assistant calls f {}"}, "m-2", event.Usage{InputTokens: 6, OutputTokens: 2, CacheReadTokens: 4}},
		"a request and its completion": {
			`{"id":"pair-000000001","request":` + asked + `,"response":` + completion + `}`, "pair-000000001",
			[]string{system, user, "assistant calls f {}"}, "m-2", event.Usage{InputTokens: 6, OutputTokens: 2, CacheReadTokens: 4},
		},
		"a batch":                   {`{"id":"batch-00000001","custom_id":"c","response":{"status_code":200,"body":` + completion + `},"error":null}`, "batch-00000001", []string{"assistant calls f {}"}, "m-2", event.Usage{InputTokens: 6, OutputTokens: 2, CacheReadTokens: 4}},
		"a request of a batch":      {`{"id":"batch-00000002","method":"POST","url":"/v1/chat/completions","body":` + asked + `}`, "batch-00000002", []string{system, user}, "", event.Usage{}},
		"a response":                {answer, "resp_0000000001", []string{"assistant reasoning", "assistant Ho…"}, "m-3", event.Usage{InputTokens: 5, OutputTokens: 1}},
		"an input and its response": {`{"request":{"model":"m","instructions":"Be brief.","input":"Hi"},"response":` + answer + `}`, "resp_0000000001", []string{system, user, "assistant reasoning", "assistant Ho…"}, "m-3", event.Usage{InputTokens: 5, OutputTokens: 1}},
		"messages and a message":    {`{"uuid":"talk-000000001","messages":[{"role":"user","content":"Hi"}],"response":` + message + `}`, "talk-000000001", []string{user, "assistant Ha…"}, "m-4", event.Usage{InputTokens: 3, OutputTokens: 2}},
		"messages and choices":      {`{"id":"both-000000001","messages":[{"role":"user","content":"Hi"}],"choices":[{"index":0,"message":{"role":"assistant","content":"Ho"}}],"usage":{"prompt_tokens":1}}`, "both-000000001", []string{user, "assistant Ho…"}, "", event.Usage{InputTokens: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			got := importtest.Load(t, log, lists.Format{}, "f.json", c.content)
			importtest.Again(t, log, lists.Format{}, "f.json", c.content)
			if len(got.Sessions) != 1 || got.Raw > 0 || len(got.Rejected) > 0 || c.id != "" && got.Sessions[0] != c.id {
				t.Fatalf("import: %+v", got)
			}
			importtest.Same(t, "active path", append([]string{"session_started"}, c.path...), importtest.Path(t, log, got.Sessions[0]))
			all := importtest.Messages(t, log, got.Sessions[0])
			last := all[len(all)-1]
			last.Usage.Extra = nil
			if last.Model != c.model {
				t.Errorf("the model is %q", last.Model)
			}
			importtest.Same(t, "usage", c.usage, last.Usage)
			for cut := strings.Index(c.content, `"role"`) + len(`"role":"assistant","content":`); cut < len(c.content); cut += 7 {
				if !(lists.Format{}).Detect("f.json", []byte(c.content[:cut])) && !strings.Contains(name, "batch") {
					t.Errorf("%s is not known", c.content[:cut])
				}
			}
		})
	}
}

// The members besides the answer stay in the settings.
func TestWhatStandsAroundAResponse(t *testing.T) {
	log := importtest.NewLog(t)
	got := importtest.Load(t, log, lists.Format{}, "f.json", `{"id":"pair-000000001","ms":5,"request":`+asked+`,"response":`+completion+`}`)
	start, m := importtest.Start(t, log, got.Sessions[0]), importtest.Messages(t, log, got.Sessions[0])[2]
	for _, part := range []string{`"ms":5`, `"request":{"model":"m","temperature":0}`, `"choices":[{"index":1,"message":{"role":"assistant","content":"Or not."}`, `"object":"chat.completion"`} {
		if !strings.Contains(string(start.Extra), part) {
			t.Errorf("%s is not in %s", part, start.Extra)
		}
	}
	if m.StopReason != "tool_calls" || m.ResponseID != "chatcmpl-0000000001" || m.Extra != nil {
		t.Errorf("the answer is %+v", m)
	}
}

func TestTurns(t *testing.T) {
	log := importtest.NewLog(t)
	content := `[{"id":"turns-00000001","system":"Be kind.","conversations":[{"from":"human","value":"Where is the ferry?","weight":1},{"from":"function_call","value":"{\"name\":\"find\",\"arguments\":{\"what\":\"ferry\"}}"},{"from":"observation","value":"at sea"},{"from":"gpt","value":"At sea."},{"from":"nobody","value":"?"}]},` +
		`{"id":"turns-00000002","conversations":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}]},{"id":"turns-00000003","conversations":[{"from":"gpt","value":"","role":"r"},{"from":"tool_call","value":"find it"}]}]`
	got := importtest.Load(t, log, lists.Format{}, "f.json", content)
	importtest.Again(t, log, lists.Format{}, "f.json", content)
	if got.Records != 10 || got.Raw != 1 || len(got.Sessions) != 3 {
		t.Fatalf("import: %+v", got)
	}
	importtest.Same(t, "turns", []string{
		"session_started", "system Be…", "user Where…", `assistant calls find {"what":"ferry"}`, "tool result of find: at sea", "assistant At…", "messages:element",
	}, importtest.Path(t, log, "turns-00000001"))
	importtest.Same(t, "messages", []string{"session_started", "user Hi…", "assistant Ho…"}, importtest.Path(t, log, "turns-00000002"))
	importtest.Same(t, "others", []string{"session_started", "assistant", "assistant find…"}, importtest.Path(t, log, "turns-00000003"))
	if m := importtest.Messages(t, log, "turns-00000003")[0]; string(m.Extra) != `{"turn_role":"r"}` {
		t.Errorf("the extra is %s", m.Extra)
	}
	for head, want := range map[string]bool{
		`{"conversations":[{"from":"human","value":"Where is`: true, `{"conversations":[{"from":"sensor","value":"Where is`: false,
		`{"conversations":[{"value":"x"}]}`: false, `{"from":"human","value":"x"}`: false, `{"conversations":[]}`: false,
		`{"choices":[{"delta":{"role":"assistant","content":"x"}}]}`: false, `{"request":{"url":"u"},"response":{"status":200}}`: false,
		`{"response":{"messages":"none"}`: false,
	} {
		if got := (lists.Format{}).Detect("f.json", []byte(head)); got != want {
			t.Errorf("detect %s: %v", head, got)
		}
	}
}

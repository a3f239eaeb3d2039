package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/projection"
)

func TestAnswer(t *testing.T) {
	const blocks = `{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"redacted_thinking","data":"eHl6"},` +
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]},` +
		`{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"order","input":{"n":9007199254740993}}`
	got, err := anthropic.Answer([]byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[` + blocks + `],
		"stop_reason":"tool_use","stop_sequence":null,"container":{"id":"k"},
		"usage":{"input_tokens":6,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	server := event.ToolCall("srvtoolu_1", "web_search", []byte(`{"query":"x"}`))
	server.Type = event.ServerToolCallPart
	want := event.Message{
		Role: event.Assistant, Provider: "anthropic", Model: "m-1", ResponseID: "msg_1", StopReason: "tool_use",
		Parts: []event.Part{
			event.Reasoning("Hm.", "c2ln"), {Type: event.ReasoningPart, Encrypted: "eHl6", Redacted: true}, server,
			event.Opaque("web_search_tool_result", []byte(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]}`)),
			event.Text("I look."), event.ToolCall("c1", "order", []byte(`{"n":9007199254740993}`)),
		},
		Usage: event.Usage{
			InputTokens: 6, OutputTokens: 7, CacheReadTokens: 4, CacheWriteTokens: 2, ReasoningTokens: 3,
			Extra: []byte(`{"output_tokens_details":{"thinking_tokens":3}}`),
		},
		Extra: []byte(`{"container":{"id":"k"}}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	result := event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c1", "order", event.Text("5"))}}
	raw, err := anthropic.Messages([]projection.Entry{{Message: event.Message{Role: event.User, Parts: []event.Part{event.Text("Hi")}}}, {Message: got}, {Message: result}})
	if err != nil || modelapi.CheckMessages(raw) != nil {
		t.Errorf("the answer renders to %s: %v, %v", raw, err, modelapi.CheckMessages(raw))
	}
	if !strings.Contains(string(raw), blocks) {
		t.Errorf("the blocks are not the same in\n%s", raw)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for _, raw := range []string{``, `[]`, `{}`, `{"content":"x"}`, `{"content":null}`} {
		if m, err := anthropic.Answer([]byte(raw)); !errors.Is(err, render.ErrAnswer) {
			t.Errorf("Answer(%s) = %v, %v", raw, m, err)
		}
	}
}

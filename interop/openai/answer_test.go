package openai_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
)

func TestChatAnswer(t *testing.T) {
	got, err := openai.ChatAnswer([]byte(`{"id":"r1","object":"chat.completion","created":5,"model":"m-1","service_tier":null,
		"choices":[{"index":0,"finish_reason":"tool_calls","logprobs":null,"native":"x","message":{"role":"assistant","content":"I look.","refusal":null,
			"reasoning_content":"Hm.","tool_calls":[
				{"id":"c1","type":"function","function":{"name":"order","arguments":"{\"n\":9007199254740993}"},"extra_content":{"s":1}},
				{"type":"function","function":{"name":"order","arguments":"{\"n\":"}}]}}],
		"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	first := event.ToolCall("c1", "order", []byte(`{"n":9007199254740993}`))
	first.Extra = []byte(`{"extra_content":{"s":1}}`)
	want := event.Message{
		Role: event.Assistant, Provider: "openai", Model: "m-1", ResponseID: "r1", StopReason: "tool_calls",
		Parts: []event.Part{event.Reasoning("Hm.", ""), event.Text("I look."), first, event.ToolCall("r1_1", "order", []byte(`"{\"n\":"`))},
		Usage: event.Usage{
			InputTokens: 6, OutputTokens: 7, CacheReadTokens: 4, ReasoningTokens: 3,
			Extra: []byte(`{"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`),
		},
		Extra: []byte(`{"choice":{"native":"x"},"response":{"created":5}}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	raw, err := openai.Chat([]projection.Entry{{Message: got}})
	if err != nil || modelapi.CheckChat(raw) != nil {
		t.Errorf("the answer renders to %s: %v, %v", raw, err, modelapi.CheckChat(raw))
	}
}

func TestWhatIsNoChatAnswer(t *testing.T) {
	for _, raw := range []string{``, `[]`, `{}`, `{"choices":[]}`, `{"choices":[5]}`, `{"choices":[{"message":null}]}`, `{"choices":{}}`} {
		if m, err := openai.ChatAnswer([]byte(raw)); !errors.Is(err, render.ErrAnswer) {
			t.Errorf("ChatAnswer(%s) = %v, %v", raw, m, err)
		}
	}
}

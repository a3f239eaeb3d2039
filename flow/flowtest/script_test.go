package flowtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/projection"
)

// history makes a history of messages with the roles.
func history(roles ...event.Role) *flow.Request {
	r := &flow.Request{Model: "m"}
	for _, role := range roles {
		r.Messages = append(r.Messages, projection.Entry{Message: event.Message{Role: role}})
	}
	return r
}

func generate(t *testing.T, m flow.Model, r *flow.Request) (flow.Response, []string, error) {
	t.Helper()
	var deltas []string
	answer, err := m.Generate(t.Context(), r, func(d eventlog.Delta) { deltas = append(deltas, fmt.Sprint(d.Part, " ", d.Kind, " ", d.Text)) })
	return answer, deltas, err
}

func TestScript(t *testing.T) {
	failed := errors.New("no")
	s := flowtest.Script{
		flowtest.Say("I look it up.", event.ToolCall("c", "order", []byte(`{"id":1}`))),
		func(context.Context, *flow.Request) (flow.Response, error) { return flow.Response{}, failed },
		func(_ context.Context, r *flow.Request) (flow.Response, error) {
			return flow.Response{Message: event.Message{Parts: []event.Part{event.Text(fmt.Sprint(len(r.Messages)))}}, Cost: event.Dollar}, nil
		},
	}
	for range 2 {
		got, deltas, err := generate(t, s, history(event.User))
		want := `[0 text I  0 text look  0 text it  0 text up. 1 tool_call {"id":1}]`
		if err != nil || fmt.Sprint(deltas) != want || got.Message.StopReason != "tool_calls" || got.Message.Provider != "script" || got.Message.Model != "m" {
			t.Errorf("%+v, %v, %v", got.Message, deltas, err)
		}
		if err := got.Message.Validate(); err != nil {
			t.Error(err)
		}
		got.Message.Parts[0].Text = "changed"
	}
	if _, _, err := generate(t, s, history(event.User, event.Assistant, event.Tool)); err != failed {
		t.Errorf("the second answer is %v", err)
	}
	got, _, err := generate(t, s, history(event.Assistant, event.User, event.Assistant, event.Tool, event.Assistant))
	if err != nil || got.Message.Text() != "5" || got.Message.StopReason != "stop" || got.Cost != event.Dollar {
		t.Errorf("the third answer is %+v, %v", got, err)
	}
	_, _, err = generate(t, s, history(event.User, event.Assistant, event.Assistant, event.Assistant))
	var e *flow.ModelError
	if !errors.As(err, &e) || !e.Permanent() || err.Error() != "script: the script has 3 answers, and was asked for answer 4" {
		t.Errorf("after the end: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Generate(ctx, history(event.User), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// A turn that looks up an order: the model calls a tool, and answers with its result.
func ExampleScript() {
	model := flowtest.Script{
		flowtest.Say("", event.ToolCall("c1", "order", []byte(`{"id":"A1001"}`))),
		flowtest.Say("It is on its way."),
	}
	order := flow.Tool("order", "Look up an order.", func(_ context.Context, in struct {
		ID string `json:"id" jsonschema:"the number on the parcel"`
	}) (map[string]string, error) {
		return map[string]string{in.ID: "on its way"}, nil
	})

	ctx := context.Background()
	request := history(event.User)
	for {
		answer, err := model.Generate(ctx, request, func(eventlog.Delta) {})
		if err != nil {
			panic(err)
		}
		request.Messages = append(request.Messages, projection.Entry{Message: answer.Message})
		for _, call := range answer.Message.ToolCalls() {
			content, err := order.Run(ctx, call)
			fmt.Println(content[0].Text, err)
		}
		if answer.Message.StopReason == "stop" {
			fmt.Println(answer.Message.Text())
			return
		}
	}
	// Output:
	// {"A1001":"on its way"} <nil>
	// It is on its way.
}

package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
)

func named64(name string) flow.ToolSpec {
	return flow.ToolSpec{Name: name, Run: func(context.Context, event.Part) ([]event.Part, error) { return nil, nil }}
}

// An agent whose tools no provider accepts asks no model and runs no effect. The turn continues
// with corrected tools.
func TestToolsThatAreRefused(t *testing.T) {
	nobody := &flow.Agent[notes]{}
	for name, tools := range map[string][]flow.ToolSpec{
		"a space":              {named64("ok"), named64("read file")},
		"a letter of no ASCII": {named64("größe")},
		"no name":              {named64("")},
		"too long":             {named64(strings.Repeat("x", 65))},
		"two of one name":      {named64("pay"), named64("look"), named64("pay")},
		"once, and no review":  {flow.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "", nil }, flow.Once)},
		"an agent of no name":  {flow.AgentTool("ask", "Asks.", nobody, flow.ChildOptions{})},
	} {
		for place, turn := range map[string]func(tools []flow.ToolSpec, m flow.Model) func(context.Context, *flow.Turn[notes]) error{
			"Chat": func(tools []flow.ToolSpec, m flow.Model) func(context.Context, *flow.Turn[notes]) error {
				return flow.Chat[notes](m, flow.Request{}, tools...)
			},
			"Model": func(tools []flow.ToolSpec, m flow.Model) func(context.Context, *flow.Turn[notes]) error {
				return func(ctx context.Context, tn *flow.Turn[notes]) error {
					_, err := tn.Model(ctx, m, flow.Request{Tools: tools})
					return err
				}
			},
			"Tools": func(tools []flow.ToolSpec, m flow.Model) func(context.Context, *flow.Turn[notes]) error {
				return func(ctx context.Context, tn *flow.Turn[notes]) error {
					answer, err := tn.Model(ctx, flowtest.Script{flowtest.Say("hm", event.ToolCall("c", "pay", nil))}, flow.Request{})
					if err != nil {
						return err
					}
					return tn.Tools(ctx, tools, answer.ToolCalls())
				}
			},
		} {
			t.Run(name+"/"+place, func(t *testing.T) {
				asked := 0
				m := flowtest.Script{func(ctx context.Context, r *flow.Request) (flow.Response, error) {
					asked++
					return flowtest.Say("done")(ctx, r)
				}}
				a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: turn(tools, m)}
				if _, err := a.Run(t.Context(), "s", flow.Text("go")); !errors.Is(err, flow.ErrStart) || asked != 0 {
					t.Fatalf("%v, asked %d", err, asked)
				}
				for _, x := range typesAfter(t, a.Log, 0) {
					if x == "effect_intended" && place != "Tools" || x == "tool_started" || x == "turn_completed" {
						t.Fatal(x)
					}
				}
				a.Turn = turn([]flow.ToolSpec{named64("pay"), named64(strings.Repeat("x", 64))}, m)
				if out, err := resume(t.Context(), a, "s"); err != nil || out.Status != flow.StatusFinished {
					t.Fatalf("corrected: %v %s", err, out.Status)
				}
			})
		}
	}
}

// An agent without a name is refused by each call that would run or store something.
func TestAnAgentWithoutAName(t *testing.T) {
	a := &flow.Agent[notes]{Log: openLog(t), Turn: twice(echo(nil))}
	_, sent := a.Send(t.Context(), "s", flow.Text("x"))
	_, run := a.Run(t.Context(), "s", flow.Text("x"))
	_, resumed := a.Resume(t.Context(), flow.Ref{Session: "s"})
	_, begun := a.Begin(t.Context(), flow.Content[notes]{Session: "s"})
	for i, err := range []error{sent, run, resumed, begun, a.Serve(t.Context())} {
		if !errors.Is(err, flow.ErrStart) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := a.Log.Head(t.Context(), "s"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Error(err)
	}
}

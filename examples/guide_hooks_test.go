package examples

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
)

// Spent is the custom state of an agent with a budget.
type Spent struct {
	Cost event.Cost `json:"cost"`
}

// budget refuses calls of models after a sum of all turns.
func budget(most event.Cost) flow.Hook {
	return flow.Hook{
		Name: "budget",
		BeforeModel: func(ctx context.Context, _ *flow.Request) error {
			spent, err := flow.StateOf[Spent](ctx)
			if err == nil && spent.Cost >= most {
				err = errors.New("the budget of the session is spent")
			}
			return err
		},
		AfterModel: func(ctx context.Context, _ *flow.Request, a *flow.Response) error {
			return flow.Update(ctx, func(s *Spent) error { s.Cost = s.Cost.Add(a.Cost); return nil })
		},
		StreamFirst: true, // it changes no answer
	}
}

// guardrail keeps account numbers from the model, and payments on the allowed orders.
var guardrail = flow.Hook{
	Name: "guardrail",
	BeforeTool: func(_ context.Context, call *event.Part) error {
		if call.Name == "pay" && !strings.Contains(string(call.Arguments), `"order":"A`) {
			return errors.New("only orders of shop A are paid back")
		}
		return nil
	},
	AfterTool: func(_ context.Context, _ event.Part, result *event.Part) error {
		for i, p := range result.Content {
			result.Content[i].Text = strings.ReplaceAll(p.Text, "DE02100100100006820101", "[account]")
		}
		return nil
	},
}

func TestGuideHooks(t *testing.T) {
	ctx, l := openDesk(t)
	answer := func(context.Context, *flow.Request) (flow.Response, error) {
		return flow.Response{Message: event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Done.")}}, Cost: event.Dollar}, nil
	}
	call := flowtest.Say("", event.ToolCall("1", "pay", []byte(`{"order":"B1","cents":5}`)), event.ToolCall("2", "pay", []byte(`{"order":"A1","cents":5}`)))
	tool := flow.Tool("pay", "Pays money back.", func(context.Context, Payment) (string, error) { return "paid to DE02100100100006820101", nil })
	agent := &flow.Agent[Spent]{Name: "desk", Log: l, Turn: flow.Chat[Spent](flowtest.Script{call, answer}, flow.Request{}, tool)}
	agent.Options.Hooks = []flow.Hook{budget(event.Dollar), guardrail}
	out, err := agent.Run(ctx, "s", flow.Text("Pay back."))
	check(t, err)
	var told []string
	for _, m := range out.Messages {
		for _, p := range m.ToolResults() {
			told = append(told, p.Content[0].Text)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0]+told[1], "only orders of shop A") || !strings.Contains(told[0]+told[1], "paid to [account]") {
		t.Errorf("the model is told %q", told)
	}
	if _, err := agent.Run(ctx, "s", flow.Text("Again.")); !errors.Is(err, flow.ErrDenied) || !strings.Contains(err.Error(), `hook "budget"`) {
		t.Error(err)
	}
}

// Order is what the model reads from a message.
type Order struct {
	Number string   `json:"number" jsonschema:"as the customer writes it"`
	Cents  int      `json:"cents"`
	Tags   []string `json:"tags,omitempty"`
}

func readOrder(model flow.Model) func(context.Context, *flow.Turn[Desk]) error {
	return func(ctx context.Context, t *flow.Turn[Desk]) error {
		order, err := flow.Ask[Order](ctx, t, model, flow.Request{System: "Read the order."})
		if err != nil {
			return err
		}
		return t.Update(func(d *Desk) error { d.Drawn = order.Cents; return nil })
	}
}

func TestGuideTypedAnswers(t *testing.T) {
	ctx, l := openDesk(t)
	model := flowtest.Script{flowtest.Say("It costs 12."), flowtest.Say(`{"number":"A1","cents":1200}`)}
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: readOrder(model)}
	out, err := agent.Run(ctx, "s", flow.Text("A1, 12 dollars"))
	check(t, err)
	if out.Custom.Drawn != 1200 {
		t.Errorf("%+v", out.Custom)
	}
}

// decideOrForget waits for an answer or a cancellation, at most a day.
func decideOrForget(ctx context.Context, t *flow.Turn[Desk]) error {
	answer, err := t.NewWait(ctx, "answer", 24*time.Hour)
	if err != nil {
		return err
	}
	cancel, err := t.NewWait(ctx, "cancel", 0)
	if err != nil {
		return err
	}
	first, err := t.First(ctx, answer, cancel)
	if err != nil {
		return err
	}
	if first == cancel {
		return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Forgotten.")}})
	}
	n, err := flow.Await[int](ctx, t, answer) // at once
	if err != nil {
		return err
	}
	return t.Update(func(d *Desk) error { d.Drawn = n; return nil })
}

func TestGuideFirst(t *testing.T) {
	ctx, l := openDesk(t)
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: decideOrForget}
	_, err := agent.Run(ctx, "s", flow.Text("Wait."))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) || len(pause.Waits) != 2 {
		t.Fatal(err)
	}
	_, err = flow.Resolve(ctx, l, "s", pause.Waits[1].WaitID, nil, "me")
	check(t, err)
	out, err := resume(ctx, agent, "s")
	check(t, err)
	if out.Message.Text() != "Forgotten." {
		t.Errorf("%v", out.Message)
	}
}

package flowtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/store/memory"
)

// shop is the state of the agent of the tests.
type shop struct {
	Visits, Paid int
}

// variant changes the code of the agent.
type variant struct {
	system  string
	turn    func(ctx context.Context, t *flow.Turn[shop], v *variant) error
	offline bool // nothing may run
}

const session = "order-7"

// agent answers with a script and has effects of all kinds.
func (v *variant) agent(t testing.TB, log *eventlog.Log) *flow.Agent[shop] {
	turn := v.turn
	if turn == nil {
		turn = chat
	}
	return &flow.Agent[shop]{Name: "shop", Log: log, Turn: func(ctx context.Context, x *flow.Turn[shop]) error {
		return turn(ctx, x, v)
	}, Options: flow.Options{InProcess: -1}}
}

func (v *variant) runs(name string) error {
	if v.offline {
		return fmt.Errorf("%s ran in a replay", name)
	}
	return nil
}

func (v *variant) model() flow.Model {
	return flowtest.Script{
		func(context.Context, *flow.Request) (flow.Response, error) {
			return flow.Response{Message: said("Let me look.", event.ToolCall("c1", "find", jsontext.Value(`{"id":"A1"}`)),
				event.ToolCall("c2", "track", jsontext.Value(`{"id":"A1"}`)))}, v.runs("the model")
		},
		func(_ context.Context, r *flow.Request) (flow.Response, error) {
			return flow.Response{Message: said("Done with " + r.Messages[len(r.Messages)-1].Message.ToolResults()[0].Content[0].Text)}, v.runs("the model")
		},
	}
}

type order struct {
	ID string `json:"id"`
}

func (v *variant) tool(name string) flow.ToolSpec {
	return flow.Tool(name, "Does "+name+".", func(ctx context.Context, o order) (string, error) {
		if err := v.runs(name); err != nil {
			return "", err
		}
		return name + " of " + o.ID, flow.Update(ctx, func(s *shop) error { s.Visits++; return nil })
	})
}

// chat is the turn function that the tests record.
func chat(ctx context.Context, t *flow.Turn[shop], v *variant) error {
	system := v.system
	if system == "" {
		system = "You are a shop.\nBe kind."
	}
	if err := t.Update(func(s *shop) error { s.Visits += 10; return nil }); err != nil {
		return err
	}
	tools := []flow.ToolSpec{v.tool("find"), v.tool("track")}
	r := flow.Request{Model: "m1", System: system, Tools: tools, Parameters: jsontext.Value(`{"temperature":0}`)}
	for {
		answer, err := t.Model(ctx, v.model(), r)
		if err != nil {
			return err
		}
		calls := answer.ToolCalls()
		if len(calls) == 0 {
			break
		}
		if err := t.Tools(ctx, tools, calls); err != nil {
			return err
		}
	}
	id := t.NewID()
	paid, err := v.pay(ctx, t, 1250)
	if err != nil {
		return err
	}
	return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(fmt.Sprint("Paid ", paid, ", receipt ", id, " of ", t.Now().UnixNano()))}})
}

func (v *variant) pay(ctx context.Context, t *flow.Turn[shop], cents int) (int, error) {
	return flow.Do(ctx, t, flow.Effect{Name: "pay", Arguments: cents}, func(ctx context.Context) (int, error) {
		return cents, errors.Join(v.runs("pay"), flow.Update(ctx, func(s *shop) error { s.Paid += cents; return nil }))
	})
}

func newLog(t testing.TB) *eventlog.Log {
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { _ = log.Close() })
	return log
}

// record runs the agent with inputs.
func record(t testing.TB, v *variant, inputs ...string) *eventlog.Log {
	t.Helper()
	log := newLog(t)
	for _, text := range inputs {
		if _, err := v.agent(t, log).Run(t.Context(), session, flow.Text(text)); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// rerun replays a recording, and returns its divergence.
func rerun(t testing.TB, v variant, log *eventlog.Log, opts ...flowtest.Options) (flowtest.Result, *flowtest.DivergenceError) {
	t.Helper()
	v.offline = true
	r, err := flowtest.Run(t.Context(), v.agent(t, nil), log, session, opts...)
	if r.Log != nil {
		t.Cleanup(func() { _ = r.Log.Close() })
	}
	var d *flowtest.DivergenceError
	if err != nil && !errors.As(err, &d) {
		t.Fatal(err)
	}
	return r, d
}

func TestTheSameCodeReplays(t *testing.T) {
	log := record(t, &variant{}, "Hello.", "And again.")
	r, d := rerun(t, variant{}, log)
	if d != nil || r.Turns != 2 || r.ByPosition || r.Open || r.Unchecked != 0 {
		t.Fatalf("%v, %+v", d, r)
	}
	was, _ := (&variant{}).agent(t, log).Snapshot(t.Context(), lastSnapshot(t, log))
	is, _ := (&variant{}).agent(t, r.Log).Snapshot(t.Context(), lastSnapshot(t, r.Log))
	if was.Custom != is.Custom || lastText(was) != lastText(is) || !strings.Contains(lastText(is), "receipt") {
		t.Errorf("%+v, %+v", was, is)
	}
}

// A change of the code fails at its effect.
func TestChangedCode(t *testing.T) {
	log := record(t, &variant{}, "Hello.", "And again.")
	call := func(prompt func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error) variant {
		return variant{turn: func(ctx context.Context, t *flow.Turn[shop], v *variant) error {
			r := flow.Request{Model: "m1", System: "You are a shop.\nBe kind.", Tools: []flow.ToolSpec{v.tool("find"), v.tool("track")}, Parameters: jsontext.Value(`{"temperature":0}`)}
			if err := t.Update(func(s *shop) error { s.Visits += 10; return nil }); err != nil {
				return err
			}
			return prompt(ctx, t, v, &r)
		}}
	}
	twice := func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request, change func(calls []event.Part) []event.Part) error {
		answer, err := t.Model(ctx, v.model(), *r)
		if err != nil {
			return err
		}
		if err := t.Tools(ctx, r.Tools, change(answer.ToolCalls())); err != nil {
			return err
		}
		_, err = t.Model(ctx, v.model(), *r)
		return err
	}
	for _, c := range []struct {
		name    string
		variant variant
		ordinal string
		member  string
		text    string
	}{
		{"another prompt", variant{system: "You are a shop.\nBe brief."}, "0", "request", "+   Be brief."},
		{"another model", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			r.Model = "m2"
			_, err := t.Model(ctx, v.model(), *r)
			return err
		}), "0", "effect", `+ model "m2"`},
		{"other parameters", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			r.Parameters = jsontext.Value(`{"temperature":1}`)
			_, err := t.Model(ctx, v.model(), *r)
			return err
		}), "0", "arguments", `"temperature":1`},
		{"a tool more", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			r.Tools = append(r.Tools, v.tool("pay"))
			_, err := t.Model(ctx, v.model(), *r)
			return err
		}), "0", "request", "+ tool pay:"},
		{"a message more", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			if err := t.Add(event.Message{Role: event.User, Parts: []event.Part{event.Text("In French.")}}); err != nil {
				return err
			}
			_, err := t.Model(ctx, v.model(), *r)
			return err
		}), "0", "request", "+   In French."},
		{"two tools in another order", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			return twice(ctx, t, v, r, func(calls []event.Part) []event.Part { return []event.Part{calls[1], calls[0]} })
		}), "1.0", "effect", `+ tool "track"`},
		{"a dropped call", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			return twice(ctx, t, v, r, func(calls []event.Part) []event.Part { return calls[:1] })
		}), "1.0", "batch", `+ 1: "find"`},
		{"other arguments of a tool", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			return twice(ctx, t, v, r, func(calls []event.Part) []event.Part {
				calls[1].Arguments = jsontext.Value(`{"id":"A2"}`)
				return calls
			})
		}), "1.1", "arguments", `+ {"id":"A2"}`},
		{"an early end", call(func(ctx context.Context, t *flow.Turn[shop], v *variant, r *flow.Request) error {
			return twice(ctx, t, v, r, func(calls []event.Part) []event.Part { return calls })
		}), "3", "end", `- effect "pay" 1250`},
		{"an early error", call(func(context.Context, *flow.Turn[shop], *variant, *flow.Request) error {
			return errors.New("out of stock")
		}), "0", "end", "out of stock"},
		{"another effect at the end", variant{turn: func(ctx context.Context, t *flow.Turn[shop], v *variant) error {
			if err := chat(ctx, t, v); err != nil {
				return err
			}
			_, err := v.pay(ctx, t, 1)
			return err
		}}, "4", "effect", `+ another effect: effect "pay" 1`},
		{"another effect before", variant{turn: func(ctx context.Context, t *flow.Turn[shop], v *variant) error {
			if _, err := v.pay(ctx, t, 1); err != nil {
				return err
			}
			return chat(ctx, t, v)
		}}, "0", "effect", `+ effect "pay" 1`},
		{"an error at the end", variant{turn: func(ctx context.Context, t *flow.Turn[shop], v *variant) error {
			return errors.Join(chat(ctx, t, v), errors.New("no more"))
		}}, "", "end", "no more"},
		{"another state", variant{turn: func(ctx context.Context, t *flow.Turn[shop], v *variant) error {
			if err := t.Update(func(s *shop) error { s.Paid = 1; return nil }); err != nil {
				return err
			}
			return chat(ctx, t, v)
		}}, "0", "data.patch[0].value.Paid", "+ 1"},
		{"another message at the end", variant{turn: func(ctx context.Context, t *flow.Turn[shop], v *variant) error {
			return errors.Join(chat(ctx, t, v), t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Bye.")}}))
		}}, "", "type", `+ "message_added"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, d := rerun(t, c.variant, log)
			if d == nil {
				t.Fatal("no divergence")
			}
			if d.Ordinal != c.ordinal || d.Member != c.member || d.Index != 0 || d.Seq == 0 || !strings.Contains(d.Error(), c.text) {
				t.Errorf("effect %q, member %q, turn %d, event %d\n%v", d.Ordinal, d.Member, d.Index, d.Seq, d)
			}
			t.Log(d)
		})
	}
}

func lastSnapshot(t testing.TB, log *eventlog.Log) flow.Ref {
	t.Helper()
	for e, err := range log.Read(t.Context(), session, eventlog.All().Backward()) {
		if err != nil {
			t.Fatal(err)
		}
		if s, ok, err := event.Decode[event.Snapshot](&e); ok && err == nil {
			return flow.Ref{Session: session, Snapshot: s.SnapshotID}
		}
	}
	t.Fatal("no snapshot")
	return flow.Ref{}
}

var _ = time.Second

func lastText(s flow.Snapshot[shop]) string { return s.Messages[len(s.Messages)-1].Text() }

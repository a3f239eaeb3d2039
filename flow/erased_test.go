package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/upkeep/erase"
)

// eraseNewest redacts the newest event of a type.
func eraseNewest(t *testing.T, log *eventlog.Log, name event.Type) {
	t.Helper()
	head, err := log.Head(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range log.Read(t.Context(), "s", eventlog.Between(0, head.Seq).Backward()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type.Name() == name {
			if _, err := erase.Redact(t.Context(), log, "s", []int64{e.Seq}); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no %s", name)
}

// A turn does not use a text that was erased while it hibernated, and puts no zero value in
// its place.
func TestErasedWhileATurnHibernates(t *testing.T) {
	for name, test := range map[event.Type]struct {
		want error
		said string
	}{
		event.EffectCompleted:   {flow.ErrNeedsReconcile, ""},
		event.MessageAdded:      {flow.ErrNeedsReconcile, ""}, // of the model
		event.EffectIntended:    {nil, `done: paid {"order":"A1"}`},
		event.ApprovalRequested: {nil, `done: paid {"order":"A1"}`},
		event.TurnStarted:       {nil, `done: paid {"order":"A1"}`},
		event.TurnHibernated:    {nil, `done: paid {"order":"A1"}`},
		event.RunClaimed:        {nil, `done: paid {"order":"A1"}`},
		event.StepCompleted:     {nil, `done: paid {"order":"A1"}`},
	} {
		t.Run(string(name), func(t *testing.T) {
			s := newShop(t, ask("Pay?"))
			_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
			paused(t, err)
			eraseNewest(t, s.log, name)
			if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(open(t, s, "s")[0], event.Approved)); err != nil {
				t.Fatal(err)
			}
			out, err := resume(t.Context(), &s.agent, "s")
			if !errors.Is(err, test.want) || s.calls.Load() > 2 || test.want != nil && s.runs() != 0 {
				t.Fatalf("%v, ran %d", err, s.runs())
			}
			if test.want == nil {
				if out.Message.Text() != test.said || s.runs() != 1 {
					t.Fatalf("%q, ran %d", out.Message.Text(), s.runs())
				}
				return
			}
			if _, err := flow.Abort(t.Context(), s.log, "s", event.Abort{}); err != nil {
				t.Fatal(err)
			}
			s.agent.Turn = twice(echo(nil))
			if out, err := s.agent.Run(t.Context(), "s", flow.Text("B2")); err != nil || out.Status != flow.StatusFinished {
				t.Fatal(err)
			}
		})
	}
}

// An answer that is erased before its effect began does not count: the arguments that the
// person approved are unknown.
func TestAnErasedAnswerIsAskedAnew(t *testing.T) {
	for _, d := range []event.Decision{event.Approved, event.Answered, event.Denied} {
		s := newShop(t, ask("Pay?"))
		_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
		first := paused(t, err).Reviews[0]
		a := answerTo(first, d)
		switch d {
		case event.Approved:
			a.Arguments = jsontext.Value(`{"order":"A9"}`)
		case event.Answered:
			a.Value = "by hand"
		}
		if _, err := flow.Decide(t.Context(), s.log, "s", a); err != nil {
			t.Fatal(err)
		}
		eraseNewest(t, s.log, event.ApprovalResolved)
		_, err = resume(t.Context(), &s.agent, "s")
		again := paused(t, err)
		if len(again.Reviews) != 1 || again.Reviews[0].InterruptID == first.InterruptID || s.runs() != 0 {
			t.Fatalf("%s: %+v, ran %d", d, again.Reviews, s.runs())
		}
		if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(again.Reviews[0], event.Approved)); err != nil {
			t.Fatal(err)
		}
		if out, err := resume(t.Context(), &s.agent, "s"); err != nil || s.runs() != 1 {
			t.Fatalf("%s: %v %+v", d, err, out.Message)
		}
	}
}

// The erased answer of an effect that began does not allow another attempt.
func TestAnErasedAnswerOfAnEffectThatBegan(t *testing.T) {
	n := 0
	a := agentOf(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	a.Turn = func(ctx context.Context, tn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "x", Review: &flow.Question{}}, func(ctx context.Context) (int, error) {
			if n++; n > 1 {
				return 0, nil
			}
			stop()
			<-ctx.Done()
			return 0, ctx.Err()
		})
		return err
	}
	_, err := a.Run(t.Context(), "s", flow.Text("go"))
	yes := answerTo(paused(t, err).Reviews[0], event.Approved)
	yes.Arguments = jsontext.Value(`7`)
	c, err := connectWith(ctx, a, "s", yes)
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	eraseNewest(t, a.Log, event.ApprovalResolved)
	if _, err := resume(t.Context(), a, "s"); !errors.Is(err, flow.ErrNeedsReconcile) || n != 1 {
		t.Fatalf("%v, ran %d", err, n)
	}
	info, err := flow.Info(t.Context(), a.Log, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flow.Reconcile(t.Context(), a.Log, "s", info.Effects[0].Key, flow.Outcome{Result: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t.Context(), a, "s"); err != nil || n != 1 {
		t.Fatalf("%v, ran %d", err, n)
	}
}

// A wait whose value is erased was canceled.
func TestAnErasedValueOfAWait(t *testing.T) {
	var got error
	a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
		w, err := tn.NewWait(ctx, "", 0)
		if err != nil {
			return err
		}
		_, got = flow.Await[int](ctx, tn, w)
		if errors.As(got, new(*flow.Hibernated)) {
			return got
		}
		return nil
	})
	_, err := a.Run(t.Context(), "s", flow.Text("go"))
	h := paused(t, err)
	if _, err := flow.Resolve(t.Context(), a.Log, "s", h.Waits[0].WaitID, 7, "me"); err != nil {
		t.Fatal(err)
	}
	eraseNewest(t, a.Log, event.WaitResolved)
	if _, err := resume(t.Context(), a, "s"); err != nil || !errors.Is(got, flow.ErrCanceled) {
		t.Fatalf("%v, %v", err, got)
	}
}

// The turn function gets an input without the erased messages. A posted input that is
// erased begins no turn.
func TestAnErasedInput(t *testing.T) {
	var inputs []int
	a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
		inputs = append(inputs, len(tn.Input().Messages))
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "x", Review: &flow.Question{}}, func(context.Context) (int, error) { return 1, nil })
		return err
	})
	_, err := a.Run(t.Context(), "s", flow.Text("secret"))
	yes := answerTo(paused(t, err).Reviews[0], event.Approved)
	eraseNewest(t, a.Log, event.MessageAdded)
	if err := post(t.Context(), a.Log, "s", flow.Text("another secret")); err != nil {
		t.Fatal(err)
	}
	eraseNewest(t, a.Log, event.ExternalInput)
	if _, err := flow.Decide(t.Context(), a.Log, "s", yes); err != nil {
		t.Fatal(err)
	}
	out, err := resume(t.Context(), a, "s")
	if err != nil || len(inputs) != 2 || inputs[0] != 1 || inputs[1] != 0 {
		t.Fatalf("%v, inputs %v, %+v", err, inputs, out.Messages)
	}
}

// An erasure while a turn runs: the runner neither uses nor writes the erased text.
func TestErasedWhileATurnRuns(t *testing.T) {
	for _, name := range []event.Type{event.MessageAdded, event.CustomPatched, event.EffectCompleted, event.EffectIntended, event.RunClaimed, event.TurnStarted} {
		t.Run(string(name), func(t *testing.T) {
			var a *flow.Agent[notes]
			var history []event.Message
			a = agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
				plus := func(n *notes) error { n.Count++; return nil }
				if err := errors.Join(tn.Add(said("secret")), tn.Update(plus)); err != nil {
					return err
				}
				if _, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(ctx context.Context) (int, error) { return 1, flow.Update(ctx, plus) }); err != nil {
					return err
				}
				_, err := flow.Do(ctx, tn, flow.Effect{Name: "two"}, func(ctx context.Context) (int, error) {
					eraseNewest(t, a.Log, name)
					return 1, flow.Update(ctx, plus)
				})
				if err != nil {
					return err
				}
				if history, err = tn.Messages(); err != nil {
					return err
				}
				return tn.Update(plus)
			})
			out, err := a.Run(t.Context(), "s", flow.Text("go"))
			t.Logf("%v %+v", err, out.Custom)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range append(history, out.Messages...) {
				if name == event.MessageAdded && m.Text() == "secret" {
					t.Fatal("the erased message is in the history")
				}
			}
			again, err := a.Run(t.Context(), "s", flow.Text("go"))
			t.Logf("%v %+v", err, again.Custom)
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

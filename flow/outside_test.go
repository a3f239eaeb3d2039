package flow_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/memory"
)

// A person records the outcome of a tool call that was interrupted. The model gets it as
// the result of the call.
func TestReconcileAToolCall(t *testing.T) {
	for name, test := range map[string]struct {
		outcome flow.Outcome
		want    string
		runs    int
	}{
		"result":      {flow.Outcome{Result: "paid at the bank"}, "done: paid at the bank", 1},
		"value":       {flow.Outcome{Result: map[string]int{"paid": 3}}, `done: {"paid":3}`, 1},
		"error":       {flow.Outcome{Err: errors.New("the bank refused")}, "done: the bank refused", 1},
		"did not run": {flow.Outcome{DidNotRun: true}, `done: paid {"order":"A1"}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, ask("Pay?"))
			pay, begun, ctx := s.tool(ask("Pay?")), make(chan struct{}), t.Context()
			run, first := pay.Run, true
			pay.Run = func(ctx context.Context, call event.Part) ([]event.Part, error) {
				parts, err := run(ctx, call)
				if first {
					first = false
					close(begun)
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return parts, err
			}
			s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, pay)
			_, _ = s.agent.Run(ctx, "s", flow.Text("A1")) // hibernates
			running, stop := context.WithCancel(ctx)
			c, err := connectWith(running, &s.agent, "s", answerTo(open(t, s, "s")[0], event.Approved))
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			stop()
			<-c.Done()
			info, err := flow.Info(ctx, s.log, "s")
			if err != nil || len(info.Effects) != 1 {
				t.Fatalf("%+v %v", info, err)
			}
			if _, err := resume(ctx, &s.agent, "s"); !errors.Is(err, flow.ErrNeedsReconcile) {
				t.Fatal(err)
			}
			if _, err := flow.Reconcile(ctx, s.log, "s", info.Effects[0].Key, test.outcome); err != nil {
				t.Fatal(err)
			}
			out, err := resume(ctx, &s.agent, "s")
			if err != nil || out.Message.Text() != test.want || s.runs() != test.runs {
				t.Fatalf("%v %+v, ran %d", err, out.Message, s.runs())
			}
		})
	}
}

// The outcome of an effect that was open at the fork point is unknown in the fork, and
// nothing runs until a person records it.
func TestReconcileInAFork(t *testing.T) {
	for _, didNotRun := range []bool{false, true} {
		s := newShop(t, ask("Pay?"))
		pay, begun, ctx := s.tool(nil), make(chan struct{}), t.Context()
		pay.Class, pay.Review = event.EffectReconcile, nil
		run, first := pay.Run, true
		pay.Run = func(ctx context.Context, call event.Part) ([]event.Part, error) {
			parts, err := run(ctx, call)
			if first {
				first = false
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return parts, err
		}
		s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, pay)
		running, stop := context.WithCancel(ctx)
		c, err := connect(running, &s.agent, "s")
		if err != nil {
			t.Fatal(err)
		}
		c.SendText("A1")
		<-begun
		stop()
		<-c.Done()
		if _, err := fork.At(ctx, s.log, "s", fork.Head(), fork.Options{ID: "f", Force: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := resume(ctx, &s.agent, "f"); !errors.Is(err, flow.ErrNeedsReconcile) || s.runs() != 1 {
			t.Fatal(err, s.runs())
		}
		info, err := flow.Info(ctx, s.log, "f")
		if err != nil || len(info.Effects) != 1 || !info.Effects[0].Inherited {
			t.Fatalf("%+v %v", info.Effects, err)
		}
		if _, err := flow.Reconcile(ctx, s.log, "f", info.Effects[0].Key, flow.Outcome{Result: "paid", DidNotRun: didNotRun}); err != nil {
			t.Fatal(err)
		}
		out, err := resume(ctx, &s.agent, "f")
		want, runs := "done: paid", 1
		if didNotRun {
			want, runs = `done: paid {"order":"A1"}`, 2
		}
		if err != nil || out.Message.Text() != want || s.runs() != runs || runs == 2 && len(s.ran) != 2 {
			t.Fatalf("%v %+v, keys %v", err, out.Message, s.ran)
		}
	}
}

// The outcome of an append from outside is unknown: the same events are appended again, and
// stored once.
func TestAnUnknownOutcomeOutside(t *testing.T) {
	for name, how := range map[string]crash{"before": unknownBefore, "after": unknownAfter} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, ask("Pay?"))
			data := memory.New()
			s.log = eventlog.Open(data)
			s.agent.Log = s.log
			_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
			h := paused(t, err)
			for _, change := range []func(log *eventlog.Log) error{
				func(log *eventlog.Log) error {
					err := post(t.Context(), log, "s", flow.Text("B2"))
					return err
				},
				func(log *eventlog.Log) error {
					_, err := flow.Decide(t.Context(), log, "s", answerTo(h.Reviews[0], event.Denied))
					return err
				},
				func(log *eventlog.Log) error {
					_, err := flow.Abort(t.Context(), log, "s", event.Abort{})
					return err
				},
			} {
				before, _ := s.log.Head(t.Context(), "s")
				store := &crashStore{Store: data.Handle(), n: 1, how: how}
				log := eventlog.Open(store)
				if err := change(log); err != nil || !store.fired {
					t.Fatal(err)
				}
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				types := typesAfter(t, s.log, before.Seq)
				if slices.Sort(types); len(types) == 0 || len(slices.Compact(slices.Clone(types))) != len(types) {
					t.Fatalf("appended %v", types)
				}
			}
		})
	}
}

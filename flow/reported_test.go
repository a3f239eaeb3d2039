package flow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

// These tests are programs that users reported, with what they expected. The other programs of
// the reports are rows of TestAToolAppendsToItsSession and TestChangesOfCode,
// TestRunReturnsAfterItsRunner, TestAnInputToAHibernatedSession and TestAnInputIsSentAgain.

// A tool appends to its session: the turn ends in the same run, and nothing runs the tool again.
func TestAToolAppendsInARun(t *testing.T) {
	for name, f := range ownEvents {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := eventlog.Open(memory.New())
				defer l.Close()
				ran := 0
				charge := flow.Tool("charge", "", func(ctx context.Context, _ struct{}) (string, error) {
					ran++
					run, _ := flow.FromContext(ctx)
					return "charged", f(ctx, l, run.Session)
				})
				model := modelFunc(func(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
					for _, x := range r.Messages {
						if x.Message.Role == event.Tool {
							return flow.Response{Message: said("end")}, nil
						}
					}
					return flow.Response{Message: event.Message{Parts: []event.Part{event.ToolCall("1", "charge", nil)}}}, nil
				})
				a := &flow.Agent[notes]{Name: "a", Log: l, Turn: flow.Chat[notes](model, flow.Request{}, charge)}
				if out, err := a.Run(t.Context(), "s", flow.Text("x")); err != nil || ran != 1 || out.Status != flow.StatusFinished {
					t.Fatalf("%v %s, charged %d", err, out.Status, ran)
				}
				if out, err := resume(t.Context(), a, "s"); err != nil || ran != 1 || out.Status != flow.StatusFinished {
					t.Fatalf("run again: %v %s, charged %d", err, out.Status, ran)
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				if err := a.Serve(ctx); err != nil || ran != 1 {
					t.Fatalf("served: %v, charged %d", err, ran)
				}
			})
		})
	}
}

// A detached input has a reference at once, while its turn waits, runs and fails, and the
// reference leads to the end of the turn.
func TestDetachHasAReference(t *testing.T) {
	for _, mode := range []string{"at once", "while the turn runs", "while the effect runs", "while the turn fails"} {
		t.Run(mode, func(t *testing.T) {
			begun, gate := make(chan struct{}), make(chan struct{})
			a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
				_, err := flow.Do(ctx, tn, flow.Effect{Name: "slow"}, func(context.Context) (bool, error) {
					close(begun)
					<-gate
					return true, nil
				})
				if err == nil && mode == "while the turn fails" {
					err = errors.New("a bug")
				}
				return err
			}}
			h, err := a.Send(t.Context(), "s", flow.Text("work"))
			if err != nil {
				t.Fatal(err)
			}
			want := flow.StatusFinished
			switch mode {
			case "while the turn runs":
				if _, err := h.Turn(t.Context()); err != nil {
					t.Fatal(err)
				}
			case "while the turn fails":
				want = flow.StatusFailed
				fallthrough
			case "while the effect runs":
				<-begun
			}
			ref := h.Detach()
			if ref.Session != "s" || ref.Snapshot == "" || h.Detach() != ref {
				t.Fatalf("%+v", ref)
			}
			close(gate)
			_, _ = h.Wait(t.Context())
			if s, err := a.Snapshot(t.Context(), ref); err != nil || s.Status != want {
				t.Fatalf("%v %s", err, s.Status)
			}
		})
	}
}

// A step is inserted before an open wait that was answered. The new code runs nothing, and the
// old code gets the answer.
func TestAStepBeforeAnOpenWait(t *testing.T) {
	l := openLog(t)
	mails, awaited := 0, 0
	agent := func(inserted bool) *flow.Agent[notes] {
		return &flow.Agent[notes]{Name: "a", Log: l, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			if inserted {
				if _, err := flow.Do(ctx, tn, flow.Effect{Name: "mail"}, func(context.Context) (int, error) { mails++; return 1, nil }); err != nil {
					return err
				}
			}
			w, err := tn.NewWait(ctx, "payment", 0)
			if err != nil {
				return err
			}
			awaited, err = flow.Await[int](ctx, tn, w)
			return err
		}}
	}
	var pause *flow.Hibernated
	if _, err := agent(false).Run(t.Context(), "s", flow.Text("x")); !errors.As(err, &pause) {
		t.Fatal(err)
	}
	if _, err := flow.Resolve(t.Context(), l, "s", pause.Waits[0].WaitID, 1250, "the bank"); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t.Context(), agent(true), "s"); !errors.As(err, new(*flow.DivergenceError)) || mails != 0 {
		t.Fatalf("%v, %d mails", err, mails)
	}
	if _, err := resume(t.Context(), agent(false), "s"); err != nil || awaited != 1250 {
		t.Fatalf("%v, awaited %d", err, awaited)
	}
}

// A turn fails after its charge. Its input is sent again: the charge does not run again.
func TestABugAfterTheCharge(t *testing.T) {
	var keys []string
	fail := true
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "charge", Class: event.EffectDedupe}, func(ctx context.Context) (int, error) {
			run, _ := flow.FromContext(ctx)
			keys = append(keys, run.Key)
			return 1, nil
		})
		if err == nil && fail {
			err = errors.New("a bug after the charge")
		}
		return err
	}}
	in := flow.Text("buy")
	in.ID = "order-17"
	if _, err := a.Run(t.Context(), "s", in); !errors.As(err, new(*flow.TurnError)) {
		t.Fatal(err)
	}
	fail = false
	if out, err := a.Run(t.Context(), "s", in); err != nil || out.Status != flow.StatusFinished || len(keys) != 1 {
		t.Fatalf("%v %s, keys %v", err, out.Status, keys)
	}
}

// The state of a session has another shape than the code of a server. The server tries again
// rarely, and the turn stays open for the code of the state.
func TestServeWithAStateOfAnotherShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := eventlog.Open(memory.New())
		defer l.Close()
		type older struct{ Sum string }
		old := &flow.Agent[older]{Name: "a", Log: l, Turn: func(_ context.Context, tn *flow.Turn[older]) error {
			return tn.Update(func(s *older) error { s.Sum = "one"; return nil })
		}}
		if _, err := old.Run(t.Context(), "s", flow.Text("x")); err != nil {
			t.Fatal(err)
		}
		if err := post(t.Context(), l, "s", flow.Text("y")); err != nil {
			t.Fatal(err)
		}
		before, err := l.Head(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		type newer struct{ Sum int }
		a := &flow.Agent[newer]{Name: "a", Log: l, Turn: func(_ context.Context, tn *flow.Turn[newer]) error {
			_, err := tn.State()
			return err
		}}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := a.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		after, err := l.Head(t.Context(), "s")
		if err != nil || after.Seq-before.Seq > 40 {
			t.Fatalf("%v, %d events in an hour", err, after.Seq-before.Seq)
		}
		if out, err := resume(t.Context(), old, "s"); err != nil || out.Status != flow.StatusFinished {
			t.Fatalf("the older code does not end the turn: %v %s", err, out.Status)
		}
	})
}

package flow_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/runlog"
)

// An abort of the parent aborts its children, whoever runs.
func TestAbortGoesDown(t *testing.T) {
	f := newFamily(t)
	_, err := f.top.Run(t.Context(), "s", flow.Text("the bill"))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) {
		t.Fatal(err)
	}
	before, err := flow.Abort(t.Context(), f.log, "s", event.Abort{Reason: "enough"})
	if err != nil || before != flow.StatusHibernated {
		t.Fatal(before, err)
	}
	for info, err := range flow.Runs(t.Context(), f.log) {
		if err != nil || info.Status != flow.StatusAborted {
			t.Errorf("%s: %s, %v", info.Session, info.Status, err)
		}
	}
	if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(pause.Reviews[0], event.Approved)); !errors.Is(err, flow.ErrAnswered) {
		t.Errorf("an answer after the abort: %v", err)
	}
	f.check(t, 3)
}

// sleeper is a child that sleeps until its context ends.
func sleeper(began chan<- struct{}) *flow.Agent[notes] {
	return &flow.Agent[notes]{Name: "sleeper", Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "sleep"}, func(ctx context.Context) (int, error) {
			began <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		return err
	}}
}

func TestAbortOfARunningChild(t *testing.T) {
	f, began, mode := newFamily(t), make(chan struct{}, 1), event.ChildFresh
	f.middle.Turn = delegate(sleeper(began), &mode)
	c, err := connect(t.Context(), f.top, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendText("go"); err != nil {
		t.Fatal(err)
	}
	<-began
	if _, err := c.last().Abort(t.Context(), "me", "enough"); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Output(t.Context()); !errors.Is(err, flow.ErrAborted) || out.Status != flow.StatusAborted {
		t.Errorf("%v, %v", out.Status, err)
	}
	for info, err := range flow.Runs(t.Context(), f.log) {
		if err != nil || info.Status != flow.StatusAborted {
			t.Errorf("%s: %s, %v", info.Session, info.Status, err)
		}
	}
	f.check(t, 3)
}

// A parent that stops leaves its children open, and continues them later.
func TestAParentThatStops(t *testing.T) {
	f, began, mode := newFamily(t), make(chan struct{}, 1), event.ChildFresh
	awake := atomic.Bool{}
	low := sleeper(began)
	asleep := low.Turn
	low.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
		if awake.Load() {
			_, err := flow.Do(ctx, t, flow.Effect{Name: "sleep"}, func(ctx context.Context) (int, error) { return 1, nil })
			return errors.Join(err, t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("awake")}}))
		}
		return asleep(ctx, t)
	}
	f.middle.Turn = delegate(low, &mode)
	f.killAfter(t, began)
	for info, err := range flow.Runs(t.Context(), f.log) {
		if err != nil || info.Status != flow.StatusExpired {
			t.Errorf("%s: %s, %v", info.Session, info.Status, err)
		}
	}
	awake.Store(true)
	out, err := resume(t.Context(), f.top, "s")
	if err != nil || out.Message.Text() != "middle: sleeper: awake" {
		t.Errorf("%v, %v", out.Message, err)
	}
	f.check(t, 3)
}

// A child whose time ends is aborted, and the error of the effect is a timeout.
func TestTheTimeOfAChild(t *testing.T) {
	f, began := newFamily(t), make(chan struct{}, 1)
	f.top.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "delegate", Timeout: 20 * time.Millisecond}, func(ctx context.Context) (string, error) {
			_, err := flow.RunChild(ctx, sleeper(began), t.Input(), flow.ChildOptions{})
			return "", err
		})
		var failed *flow.EffectError
		if !errors.As(err, &failed) || failed.Code != "timeout" {
			return errors.Join(errors.New("want a timeout"), err)
		}
		return nil
	}
	if _, err := f.top.Run(t.Context(), "s", flow.Text("go")); err != nil {
		t.Fatal(err)
	}
	for info := range flow.Runs(t.Context(), f.log) {
		if want := map[bool]flow.Status{true: flow.StatusFinished, false: flow.StatusAborted}[info.Session == "s"]; info.Status != want {
			t.Errorf("%s: %s, want %s", info.Session, info.Status, want)
		}
	}
	f.check(t, 2)
}

// A child that fails is tried again in the same session and turn, and what it did is not
// done again.
func TestAChildIsTriedAgain(t *testing.T) {
	for _, mode := range []event.ChildMode{event.ChildFresh, event.ChildHandoff, event.ChildFork} {
		t.Run(string(mode), func(t *testing.T) {
			f := newFamily(t)
			did, turns, tries := 0, map[ulid.ULID]bool{}, 0
			low := &flow.Agent[notes]{Name: "low", Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
				tries++
				turns[t.ID()] = true
				if _, err := flow.Do(ctx, t, flow.Effect{Name: "do"}, func(context.Context) (int, error) { did++; return did, nil }); err != nil {
					return err
				}
				if tries == 1 {
					return errors.New("no luck")
				}
				return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("luck")}})
			}}
			f.top.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
				_, err := flow.Do(ctx, t, flow.Effect{Name: "delegate", Retry: flow.Retry{Attempts: 2, First: 1, If: func(error) bool { return true }}}, func(ctx context.Context) (string, error) {
					out, err := flow.RunChild(ctx, low, t.Input(), flow.ChildOptions{Mode: mode})
					if err != nil {
						return "", err
					}
					return out.Message.Text(), nil
				})
				return err
			}
			if _, err := f.top.Run(t.Context(), "s", flow.Text("go")); err != nil || did != 1 || tries != 2 || len(turns) != 1 {
				t.Fatalf("%v, did %d, %d tries in %d turns", err, did, tries, len(turns))
			}
			f.check(t, 2)
		})
	}
}

// A child that fails for good fails the effect, and the parent's log says so.
func TestAChildThatFails(t *testing.T) {
	f := newFamily(t)
	f.low.Turn = func(context.Context, *flow.Turn[notes]) error { return errors.New("no luck") }
	_, err := f.top.Run(t.Context(), "s", flow.Text("go"))
	var failed *flow.TurnError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("the error is %v", err)
	}
	run, err := runlog.Load(t.Context(), f.log, "s")
	if err != nil || run.Totals.Children != 1 {
		t.Fatal(run, err)
	}
	if c := run.Turns[0].Ops[0].Children; len(c) != 1 || c[0].State != event.ChildFailed || !strings.HasSuffix(c[0].Error, "no luck") {
		t.Errorf("the op tree has %+v", c)
	}
	f.check(t, 3)
}

// An attempt of a child that hibernated is no failure: all attempts of Retry are left.
func TestABlockedAttemptIsNoFailure(t *testing.T) {
	f := newFamily(t)
	fails := 0
	pay := f.low.Turn
	f.low.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
		if err := pay(ctx, t); err != nil {
			return err
		}
		if fails++; fails == 1 {
			return errors.New("no luck")
		}
		return nil
	}
	f.top.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "delegate", Retry: flow.Retry{Attempts: 2, First: time.Nanosecond}}, func(ctx context.Context) (string, error) {
			_, err := flow.RunChild(ctx, f.low, t.Input(), flow.ChildOptions{})
			return "", err
		})
		return err
	}
	_, err := f.top.Run(t.Context(), "s", flow.Text("the bill"))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) {
		t.Fatal(err)
	}
	if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(pause.Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t.Context(), f.top, "s"); err != nil || fails != 2 || f.paid.Load() != 1 {
		t.Errorf("%v, failed %d times, paid %d times", err, fails, f.paid.Load())
	}
}

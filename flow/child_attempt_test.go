package flow_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// killed runs a family whose "low" is killed inside its effect, until awake. It returns the
// session of "low".
func (f *family) killed(t *testing.T, class event.EffectClass, began chan struct{}, awake *atomic.Bool) string {
	t.Helper()
	f.low.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "pay", Class: class}, func(ctx context.Context) (int, error) {
			if awake.Load() {
				return 1, nil
			}
			began <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		return errors.Join(err, t.Add(said("paid")))
	}
	f.killAfter(t, began)
	for info, err := range flow.Runs(t.Context(), f.log) {
		if err != nil {
			t.Fatal(err)
		}
		if info.Agent == "low" {
			return info.Session
		}
	}
	t.Fatal("no session of low")
	return ""
}

// serve runs a server of "top" until the test ends.
func (f *family) serve(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	f.top.Options.Poll = 5 * time.Millisecond
	go func() { served <- f.top.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// A server stops a parent whose grandchild has an effect of unknown outcome. It continues
// the parent after a person has recorded the outcome in the grandchild's session, and not
// before.
func TestServeContinuesAParentAfterReconcile(t *testing.T) {
	t.Parallel() // the server waits a second before it tries again
	f := newFamily(t)
	low := f.killed(t, event.EffectReconcile, make(chan struct{}, 1), new(atomic.Bool))
	f.serve(t)
	waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return i.Epoch == 2 && i.Runner == "" })
	time.Sleep(20 * time.Millisecond) // the server looks again and again
	info, err := flow.Info(t.Context(), f.log, low)
	if err != nil || len(info.Effects) != 1 {
		t.Fatal(info.Effects, err)
	}
	if _, err := flow.Reconcile(t.Context(), f.log, low, info.Effects[0].Key, flow.Outcome{Result: 1, By: "me"}); err != nil {
		t.Fatal(err)
	}
	if info := waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return i.Status == flow.StatusFinished }); info.Epoch != 3 {
		t.Errorf("%d runners", info.Epoch)
	}
	f.check(t, 3)
}

// A server stops a parent whose grandchild has another runner. It continues the parent
// after that runner has ended, and not before.
func TestServeContinuesAParentAfterTheRunnerOfAChild(t *testing.T) {
	t.Parallel() // the server waits a second before it tries again
	f, began, awake := newFamily(t), make(chan struct{}, 1), new(atomic.Bool)
	session := f.killed(t, event.EffectIdempotent, began, awake)
	low := *f.low
	low.Log = f.log
	ctx, end := context.WithCancel(t.Context())
	other, err := connect(ctx, &low, session)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	f.serve(t)
	waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return i.Epoch >= 2 && i.Runner == "" })
	time.Sleep(20 * time.Millisecond) // the server looks again and again
	info, err := flow.Info(t.Context(), f.log, "s")
	if err != nil || info.Epoch != 2 {
		t.Errorf("%d runners beside the other one, %v", info.Epoch, err)
	}
	awake.Store(true)
	end()
	<-other.Done()
	if info := waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return i.Status == flow.StatusFinished }); info.Epoch != 3 {
		t.Errorf("%d runners", info.Epoch)
	}
	f.check(t, 3)
}

// A fork for a child begins where its effect began, also if it is made by a later attempt:
// the child does not see the other effects of the batch.
func TestAForkOfALaterAttempt(t *testing.T) {
	for _, again := range []string{"", "another attempt", "another runner"} {
		t.Run(again, func(t *testing.T) {
			f := newFamily(t)
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			low := &flow.Agent[notes]{Name: "top", Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
				n, err := t.State()
				return errors.Join(err, t.Add(said(map[bool]string{true: "nothing", false: "more"}[n.Count == 0])))
			}}
			f.top.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
				results, err := flow.Batch(ctx, t, 2,
					flow.Call[string]{Effect: flow.Effect{Name: "other"}, Do: func(ctx context.Context) (string, error) {
						return "", flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
					}},
					flow.Call[string]{Effect: flow.Effect{Name: "delegate", Retry: flow.Retry{Attempts: 2, First: 1}}, Do: func(ctx context.Context) (string, error) {
						run, _ := flow.FromContext(ctx)
						if run.Attempt == 1 {
							for {
								if s, err := flow.StateOf[notes](ctx); err != nil || s.Count > 0 {
									break
								}
							}
							switch again {
							case "another attempt":
								return "", errors.New("no luck")
							case "another runner":
								kill()
								<-ctx.Done()
								return "", ctx.Err()
							}
						}
						out, err := flow.RunChild(ctx, low, t.Input(), flow.ChildOptions{Mode: event.ChildFork})
						if err != nil {
							return "", err
						}
						return out.Message.Text(), nil
					}})
				if err != nil {
					return err
				}
				return t.Add(said(results[1].Value))
			}
			out, err := f.top.Run(ctx, "s", flow.Text("go"))
			if again == "another runner" {
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return i.Runner == "" })
				out, err = resume(t.Context(), f.top, "s")
			}
			if err != nil || out.Message.Text() != "nothing" {
				t.Errorf("the child knows %v, %v", out.Message, err)
			}
			f.check(t, 2)
		})
	}
}

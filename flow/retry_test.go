package flow_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/memory"
)

// failing is an agent whose turn runs an effect and then a batch of three effects. Two of
// the batch fail while down is true, and then the turn fails.
type failing struct {
	down bool
	runs map[string]int // by name
	keys map[string]map[string]bool
}

func (f *failing) agent(log *eventlog.Log) *flow.Agent[notes] {
	f.runs, f.keys = map[string]int{}, map[string]map[string]bool{}
	return &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		do := func(name string, fails bool) flow.Call[int] {
			return flow.Call[int]{Effect: flow.Effect{Name: name, Arguments: name}, Do: func(ctx context.Context) (int, error) {
				run, _ := flow.FromContext(ctx)
				if f.keys[name] == nil {
					f.keys[name] = map[string]bool{}
				}
				f.runs[name]++
				f.keys[name][run.Key] = true
				if fails && f.down {
					return 0, errors.New("down")
				}
				return run.Attempt, flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
			}}
		}
		if _, err := flow.Batch(ctx, tn, 1, do("before", true)); err != nil {
			return err
		}
		results, err := flow.Batch(ctx, tn, 1, do("one", true), do("two", false), do("three", true))
		if err != nil {
			return err
		}
		var errs []error
		for _, r := range results {
			errs = append(errs, r.Err)
		}
		return errors.Join(errs...)
	}}
}

func retry(t *testing.T, a *flow.Agent[notes], session string) (flow.Output[notes], error) {
	t.Helper()
	return again(t.Context(), a, session)
}

// A retry runs the effects of the last batch that failed again, with the same key, and no
// other effect. A batch of one that failed before stays failed.
func TestARetryRunsTheFailedEffectsAgain(t *testing.T) {
	for _, session := range []string{"s", "fork", "copy"} {
		log := openLog(t)
		f := &failing{down: true}
		a := f.agent(log)
		if _, err := a.Run(t.Context(), "s", flow.Text("go")); err == nil {
			t.Fatal("no error")
		}
		for range 2 {
			if _, err := retry(t, a, "s"); !errors.As(err, new(*flow.TurnError)) {
				t.Fatal(err)
			}
		}
		keys := 1
		switch session {
		case "fork":
			keys = 2
			if _, err := fork.At(t.Context(), log, "s", fork.Head(), fork.Options{ID: session}); err != nil {
				t.Fatal(err)
			}
		case "copy":
			keys = 2
			if _, err := fork.Copy(t.Context(), log, "s", fork.CopyOptions{ID: session}); err != nil {
				t.Fatal(err)
			}
		}
		f.down = false
		out, err := retry(t, a, session)
		if err != nil || out.Custom.Count != 3 || len(out.Messages) != 1 {
			t.Fatalf("%s: %v %+v", session, err, out)
		}
		if f.runs["before"] != 1 || f.runs["one"] != 4 || f.runs["two"] != 1 || f.runs["three"] != 4 || len(f.keys["one"]) != keys {
			t.Fatalf("%s: ran %v, keys %v", session, f.runs, f.keys)
		}
	}
}

// A kill after the result of a second attempt, or before it, gives the same turn.
func TestAKillAfterARetry(t *testing.T) {
	for n := 1; ; n++ {
		fired := false
		synctest.Test(t, func(t *testing.T) {
			data := memory.New()
			defer data.Close()
			f := &failing{down: true}
			a := f.agent(eventlog.Open(data.Handle()))
			defer a.Log.Close()
			if _, err := a.Run(t.Context(), "s", flow.Text("go")); err == nil {
				t.Fatal("no error")
			}
			f.down = false
			store := &crashStore{Store: data.Handle(), n: n, how: crashAfter}
			b := *a
			b.Log = eventlog.Open(store)
			defer b.Log.Close()
			_, _ = again(t.Context(), &b, "s")
			time.Sleep(time.Minute)
			fired = store.fired
			info, err := flow.Info(t.Context(), a.Log, "s")
			if err != nil {
				t.Fatal(err)
			}
			var out flow.Output[notes]
			if info.Status == flow.StatusFailed { // killed before the retry
				out, err = retry(t, a, "s")
			} else {
				out, err = resume(t.Context(), a, "s")
			}
			if err != nil || out.Status != flow.StatusFinished || out.Custom.Count != 3 || f.runs["two"] != 1 || f.runs["one"] > 3 {
				t.Fatalf("append %d: %v %+v, ran %v", n, err, out, f.runs)
			}
		})
		if !fired {
			break
		}
	}
}

// A retry does not run these again: a denied effect, an effect of class reconcile, a wait,
// an effect before the last one.
func TestWhatARetryDoesNotRun(t *testing.T) {
	n := 0
	fails := func(context.Context) (int, error) { n++; return 0, errors.New("no") }
	for name, test := range map[string]struct {
		turn func(ctx context.Context, tn *flow.Turn[notes]) error
		want error
		runs int
	}{
		"denied": {func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "x", Review: &flow.Question{Expires: 1, Lapse: event.LapseDeny}}, fails)
			return err
		}, flow.ErrDenied, 0},
		"wait": {func(ctx context.Context, tn *flow.Turn[notes]) error {
			w, err := tn.NewWait(ctx, "", 1)
			if err == nil {
				_, err = flow.Await[int](ctx, tn, w)
			}
			return err
		}, flow.ErrExpired, 0},
		"earlier": {func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "x"}, fails)
			if _, err := flow.Do(ctx, tn, flow.Effect{Name: "y"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
				return err
			}
			return err
		}, nil, 1},
		"reconcile": {func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "x", Class: event.EffectReconcile}, fails)
			return err
		}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n = 0
				a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: test.turn}
				defer a.Log.Close()
				_, err := a.Run(t.Context(), "s", flow.Text("go"))
				if errors.As(err, new(*flow.Hibernated)) {
					time.Sleep(time.Second)
					_, err = resume(t.Context(), a, "s")
				}
				if !errors.As(err, new(*flow.TurnError)) {
					t.Fatal(err)
				}
				_, err = again(t.Context(), a, "s")
				refused := errors.As(err, new(*flow.InputError))
				if err == nil || test.want != nil && !errors.Is(err, test.want) || n != test.runs || refused != (name == "reconcile") {
					t.Fatalf("%v, ran %d", err, n)
				}
				info, err := flow.Info(t.Context(), a.Log, "s")
				if err != nil || info.Status != flow.StatusFailed {
					t.Fatal(info.Status, err)
				}
			})
		})
	}
}

// releasing is a store in which the release of a session waits.
type releasing struct {
	eventlog.Store
	eventlog.Leaser
	waits  chan struct{}   // closed when the release waits
	free   context.Context // ends when it may go on
	end    context.CancelFunc
	leased atomic.Int64
	early  atomic.Bool // a head_moved came before the release
}

func (s *releasing) Unwrap() eventlog.Store { return s.Store }

func (s *releasing) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	for i := range events {
		switch events[i].Type.Name() {
		case event.RunReleased:
			select {
			case <-s.waits:
			default:
				close(s.waits)
			}
			<-s.free.Done()
		case event.HeadMoved:
			select {
			case <-s.waits:
				if s.free.Err() == nil {
					s.early.Store(true)
					s.end()
				}
			default: // of the turn that fails
			}
		}
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

// Leased counts the questions whether the runner is alive. After some it may release the session.
func (s *releasing) Leased(ctx context.Context, name string) (bool, error) {
	held, err := s.Leaser.Leased(ctx, name)
	if s.leased.Add(1) == 5 {
		s.end()
	}
	return held, err
}

// A retry that is sent before the runner of the failed turn has released the session runs all the
// same, also if nobody waits for it.
func TestARetryBeforeTheRelease(t *testing.T) {
	for _, only := range []bool{false, true} {
		m := memory.New()
		leaser, _ := eventlog.As[eventlog.Leaser](eventlog.Store(m))
		store := &releasing{Store: m, Leaser: leaser, waits: make(chan struct{})}
		store.free, store.end = context.WithCancel(t.Context())
		log := eventlog.Open(store)
		f := &failing{down: true}
		a := f.agent(log)
		in := flow.Text("go")
		in.ID = "one"
		h, err := a.Send(t.Context(), "s", in)
		if err != nil {
			t.Fatal(err)
		}
		h.Detach()
		<-store.waits
		f.down = false
		in.PostOnly = only
		h, err = a.Send(t.Context(), "s", in)
		if err != nil {
			t.Fatal(err)
		}
		h.Detach()
		if only {
			if h, err = a.Resume(t.Context(), flow.Ref{Session: "s"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Wait(t.Context()); err != nil || store.early.Load() {
			t.Fatalf("%v, moved the head under a runner: %v", err, store.early.Load())
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

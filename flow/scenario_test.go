package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// modelFunc is a model that is a function.
type modelFunc func(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error)

func (f modelFunc) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	return f(ctx, r, emit)
}

// answerWith calls the tool "pay" for each order in the last message of the user, then
// says the results.
func answerWith(calls *atomic.Int64) flow.Model {
	return modelFunc(func(_ context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
		calls.Add(1)
		last := r.Messages[len(r.Messages)-1].Message
		m := event.Message{Role: event.Assistant, Provider: "test", Model: "m", StopReason: "stop", Usage: event.Usage{InputTokens: 10, OutputTokens: 2}}
		if last.Role == event.User {
			for i, order := range strings.Fields(last.Text()) {
				m.Parts = append(m.Parts, event.ToolCall(fmt.Sprintf("c%d-%d", len(r.Messages), i), "pay", jsontext.Value(fmt.Sprintf(`{"order":%q}`, order))))
			}
			return flow.Response{Message: m, Cost: event.Dollar / 100}, nil
		}
		var said []string
		for _, x := range r.Messages {
			for _, p := range x.Message.ToolResults() {
				said = append(said, p.Content[0].Text)
			}
		}
		emit(eventlog.Delta{Kind: event.TextPart, Text: "done: "})
		m.Parts = []event.Part{event.Text("done: " + strings.Join(said, ", "))}
		return flow.Response{Message: m}, nil
	})
}

// shop is an agent whose tool counts its runs by key.
type shop struct {
	log   *eventlog.Log
	calls atomic.Int64
	mu    sync.Mutex
	ran   map[string]int
	agent flow.Agent[notes]
}

func newShop(t *testing.T, review func(context.Context, event.Part) (*flow.Question, error)) *shop {
	t.Helper()
	s := &shop{log: eventlog.Open(memory.New()), ran: map[string]int{}}
	t.Cleanup(func() { s.log.Close() })
	s.agent = flow.Agent[notes]{Name: "shop", Log: s.log, Turn: flow.Chat[notes](answerWith(&s.calls), flow.Request{System: "Be kind."}, s.tool(review))}
	return s
}

func (s *shop) tool(review func(context.Context, event.Part) (*flow.Question, error)) flow.ToolSpec {
	return flow.ToolSpec{Name: "pay", Review: review, Class: event.EffectUnsafeOnce, Run: func(ctx context.Context, c event.Part) ([]event.Part, error) {
		run, ok := flow.FromContext(ctx)
		if !ok {
			return nil, errors.New("no effect")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ran[run.Key]++
		return []event.Part{event.Text("paid " + string(c.Arguments))}, nil
	}}
}

func (s *shop) runs() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, count := range s.ran {
		n += count
	}
	return n
}

func open(t *testing.T, s *shop, session string) []projection.OpenApproval {
	t.Helper()
	p, err := projection.LoadPending(t.Context(), s.log, session)
	if err != nil {
		t.Fatal(err)
	}
	return p.Approvals
}

func TestReviewsOfABatch(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	ctx := t.Context()
	_, err := s.agent.Run(ctx, "s", flow.Text("A1 B2"))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) || len(pause.Reviews) != 2 || s.runs() != 0 {
		t.Fatalf("%v, ran %d", err, s.runs())
	}
	head, _ := s.log.Head(ctx, "s")
	_, err = connect(ctx, &s.agent, "s")
	var again *flow.Hibernated
	if after, _ := s.log.Head(ctx, "s"); !errors.As(err, &again) || again.Ref != pause.Ref || after != head {
		t.Fatalf("a start without answers: %v, %v", err, again)
	}
	reviews := open(t, s, "s")
	one := answerTo(reviews[0], event.Approved)
	one.Arguments = jsontext.Value(`{"order":"A9"}`)
	wrong := one
	wrong.Review.ArgumentsDigest = reviews[1].ArgumentsDigest
	for _, c := range []struct {
		a    flow.Answer
		want error
	}{{wrong, flow.ErrMismatch}, {answerTo(projection.OpenApproval{InterruptID: "x"}, event.Approved), flow.ErrNotOpen}, {one, nil}, {one, flow.ErrAnswered}} {
		if _, err := flow.Decide(ctx, s.log, "s", c.a); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Fatalf("%+v: %v, want %v", c.a, err, c.want)
		}
	}
	if _, err := connect(ctx, &s.agent, "s"); !errors.As(err, &again) || len(again.Reviews) != 1 {
		t.Fatalf("one of two answered: %v", err)
	}
	no := answerTo(reviews[1], event.Denied)
	no.Reason = "too dear"
	c, err := connectWith(ctx, &s.agent, "s", no)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Output(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := `done: paid {"order":"A9"}, a person denied it: too dear`; out.Message.Text() != want || s.runs() != 1 || s.calls.Load() != 2 {
		t.Fatalf("%q, ran %d, asked %d", out.Message.Text(), s.runs(), s.calls.Load())
	}
	if _, err := resumeAt(ctx, &s.agent, flow.Ref{Session: "s", Snapshot: pause.Ref.Snapshot}); !errors.Is(err, flow.ErrConsumed) {
		t.Fatalf("a consumed hibernation: %v", err)
	}
}

func TestAnAnswerInPlaceOfAnEffect(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	ctx := t.Context()
	s.agent.Run(ctx, "s", flow.Text("A1"))
	a := answerTo(open(t, s, "s")[0], event.Answered)
	a.Value = "paid by hand"
	c, err := connectWith(ctx, &s.agent, "s", a)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Output(ctx)
	if err != nil || out.Message.Text() != "done: paid by hand" || s.runs() != 0 {
		t.Fatalf("%v %+v", err, out.Message)
	}
}

func TestUnsafeOnceNeedsAReview(t *testing.T) {
	s := newShop(t, nil)
	if _, err := s.agent.Run(t.Context(), "s", flow.Text("A1")); !errors.Is(err, flow.ErrStart) || !strings.Contains(err.Error(), "needs a review") || s.runs() != 0 {
		t.Fatal(err)
	}
}

// interrupted stops the agent while effect "slow" runs, and returns the session.
func TestAnInterruptedEffectByClass(t *testing.T) {
	for class, want := range map[event.EffectClass]error{event.EffectPure: nil, event.EffectIdempotent: nil, event.EffectDedupe: nil,
		event.EffectReconcile: flow.ErrNeedsReconcile, event.EffectUnsafeOnce: flow.ErrNeedsReconcile} {
		t.Run(string(class), func(t *testing.T) {
			log := eventlog.Open(memory.New())
			defer log.Close()
			var runs atomic.Int64
			keys := map[string]bool{}
			var hang atomic.Bool
			hang.Store(true)
			begun := make(chan struct{}, 8)
			review := &flow.Question{Prompt: "sure?"}
			if class != event.EffectUnsafeOnce {
				review = nil
			}
			a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
				v, err := flow.Do(ctx, tn, flow.Effect{Name: "slow", Class: class, Review: review}, func(ctx context.Context) (int, error) {
					runs.Add(1)
					run, _ := flow.FromContext(ctx)
					keys[run.Key] = true
					begun <- struct{}{}
					if hang.Load() {
						<-ctx.Done()
						return 0, ctx.Err()
					}
					return 5, nil
				})
				if err != nil {
					return err
				}
				return tn.Update(func(n *notes) error { n.Count = v; return nil })
			}}
			ctx, stop := context.WithCancel(t.Context())
			c, err := connect(ctx, a, "s")
			if err != nil {
				t.Fatal(err)
			}
			c.SendText("go")
			if review != nil {
				for range c.Receive() {
				}
				p, _ := projection.LoadPending(ctx, log, "s")
				if c, err = connectWith(ctx, a, "s", answerTo(p.Approvals[0], event.Approved)); err != nil {
					t.Fatal(err)
				}
			}
			<-begun
			stop()
			<-c.Done()
			hang.Store(false)
			info, err := flow.Info(t.Context(), log, "s")
			if err != nil || info.Status != flow.StatusExpired || info.Runner != "" {
				t.Fatalf("%+v %v", info, err)
			}
			out, err := resume(t.Context(), a, "s")
			if want != nil {
				if !errors.Is(err, want) || runs.Load() != 1 {
					t.Fatalf("%v, ran %d", err, runs.Load())
				}
				if _, err := flow.Reconcile(t.Context(), log, "s", info.Effects[0].Key, flow.Outcome{Result: 5, By: "me"}); err != nil {
					t.Fatal(err)
				}
				if out, err = resume(t.Context(), a, "s"); runs.Load() != 1 {
					t.Fatal("ran again")
				}
			}
			if err != nil || out.Custom.Count != 5 || len(keys) != 1 {
				t.Fatalf("%v %+v, keys %v", err, out, keys)
			}
		})
	}
}

func TestAFailedTurnIsUndoneAndRetried(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	ran := 0
	fail := true
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		v, err := flow.Do(ctx, tn, flow.Effect{Name: "paid"}, func(context.Context) (int, error) { ran++; return ran, nil })
		if err != nil {
			return err
		}
		tn.Update(func(n *notes) error { n.Count += v; return nil })
		if err := tn.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("so far")}}); err != nil {
			return err
		}
		if fail {
			panic("boom")
		}
		return nil
	}}
	out, err := a.Run(t.Context(), "s", flow.Text("hi"))
	var failed *flow.TurnError
	if !errors.As(err, &failed) || failed.Code != "panic" || out.Status != flow.StatusFailed || len(out.Messages) != 0 || out.Custom.Count != 0 {
		t.Fatalf("%v %+v", err, out)
	}
	fail = false
	out, err = again(t.Context(), a, "s")
	if err != nil || ran != 1 || out.Custom.Count != 1 || len(out.Messages) != 2 {
		t.Fatalf("%v ran %d %+v", err, ran, out)
	}
	if out, err = again(t.Context(), a, "s"); err != nil || ran != 1 || len(out.Messages) != 2 {
		t.Fatalf("the turn ended, and its input is sent again: %v %+v", err, out)
	}
}

func TestAWaitSleepsAndResolves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := eventlog.Open(memory.New())
		defer log.Close()
		tokens := make(chan string, 1)
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			w, err := tn.NewWait(ctx, "signal", time.Hour)
			if err != nil {
				return err
			}
			if _, err := flow.Do(ctx, tn, flow.Effect{Name: "give"}, func(context.Context) (int, error) { tokens <- w.Token; return 0, nil }); err != nil {
				return err
			}
			v, err := flow.Await[int](ctx, tn, w)
			if errors.Is(err, flow.ErrExpired) {
				v, err = -1, nil
			}
			if err != nil {
				return err
			}
			if err := tn.Sleep(ctx, 30*time.Minute); err != nil {
				return err
			}
			return tn.Update(func(n *notes) error { n.Count += v; return nil })
		}}
		for i, resolve := range []bool{true, false} {
			c, err := connect(t.Context(), a, "s")
			if err != nil {
				t.Fatal(err)
			}
			c.SendText("go")
			ref, err := flow.ParseToken(<-tokens, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resolve {
				if _, err := flow.Resolve(t.Context(), log, ref.Session, ref.Wait, 7, "me"); err != nil {
					t.Fatal(err)
				}
				if _, err := flow.Resolve(t.Context(), log, ref.Session, ref.Wait, 8, "me"); !errors.Is(err, flow.ErrAnswered) {
					t.Fatal(err)
				}
			}
			for ended := false; !ended; time.Sleep(time.Hour) {
				for chunk, err := range c.Receive() {
					ended = chunk.EndTurn != nil
					var pause *flow.Hibernated
					if err != nil && !errors.As(err, &pause) {
						t.Fatal(err)
					}
				}
				if info, err := flow.Info(t.Context(), log, "s"); err != nil || !ended && info.Status != flow.StatusWaiting {
					t.Fatal(info.Status, err)
				}
			}
			out, err := c.Output(t.Context())
			if err != nil || out.Custom.Count != []int{7, 6}[i] {
				t.Fatalf("%v %+v", err, out)
			}
		}
	})
}

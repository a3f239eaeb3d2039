package flow_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

// agentOf is an agent over a new log.
func agentOf(t *testing.T, turn func(ctx context.Context, tn *flow.Turn[notes]) error) *flow.Agent[notes] {
	return &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: turn}
}

func paused(t *testing.T, err error) *flow.Hibernated {
	t.Helper()
	var h *flow.Hibernated
	if !errors.As(err, &h) {
		t.Fatal(err)
	}
	return h
}

func TestAnAnswerForOtherArgumentsIsVoid(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
	r := paused(t, err).Reviews[0]
	void := event.ApprovalResolution{InterruptID: r.InterruptID, EffectID: "other", ArgumentsDigest: r.ArgumentsDigest, Decision: event.Approved}
	if _, err := s.log.Append(t.Context(), "s", eventlog.Any(), event.New(void)); err != nil {
		t.Fatal(err)
	}
	if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(r, event.Denied)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t.Context(), &s.agent, "s"); err != nil || s.runs() != 0 {
		t.Fatalf("%v, ran %d", err, s.runs())
	}
}

func TestAReviewThatExpiredIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, func(context.Context, event.Part) (*flow.Question, error) {
			return &flow.Question{Expires: time.Hour}, nil
		})
		ran := time.Now()
		_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
		first := paused(t, err)
		time.Sleep(time.Until(ran.Add(time.Hour))) // the last instant
		head, _ := s.log.Head(t.Context(), "s")
		_, err = resume(t.Context(), &s.agent, "s")
		if after, _ := s.log.Head(t.Context(), "s"); paused(t, err).Ref != first.Ref || after != head {
			t.Fatalf("at the last instant: %v", err)
		}
		time.Sleep(time.Second)
		_, err = resume(t.Context(), &s.agent, "s")
		second := paused(t, err)
		if len(second.Reviews) != 1 || second.Reviews[0].InterruptID == first.Reviews[0].InterruptID {
			t.Fatalf("%+v", second.Reviews)
		}
		if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(second.Reviews[0], event.Approved)); err != nil {
			t.Fatal(err)
		}
		if _, err := resume(t.Context(), &s.agent, "s"); err != nil || s.runs() != 1 {
			t.Fatalf("%v, ran %d", err, s.runs())
		}
	})
}

func TestTheTimeOfAHibernationIsNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, ask("Pay?"))
		s.agent.Options.Limits.Time = time.Hour
		_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
		time.Sleep(24 * time.Hour)
		if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(paused(t, err).Reviews[0], event.Approved)); err != nil {
			t.Fatal(err)
		}
		if out, err := resume(t.Context(), &s.agent, "s"); err != nil || out.StopReason == "limit" {
			t.Fatalf("%v %q", err, out.StopReason)
		}
	})
}

func TestAnAbortInAReplayKeepsEachMessageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *flow.Agent[notes]
		execution := 0
		a = agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
			execution++
			if err := tn.Add(said("once")); err != nil {
				return err
			}
			if err := tn.Update(func(n *notes) error { n.Count++; return nil }); err != nil {
				return err
			}
			if execution == 2 {
				if _, err := flow.Abort(ctx, a.Log, "s", event.Abort{}); err != nil {
					return err
				}
				synctest.Wait()
			}
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(context.Context) (int, error) { return 1, nil })
			if err == nil {
				err = tn.Sleep(ctx, time.Hour)
			}
			return err
		})
		_, err := a.Run(t.Context(), "s", flow.Text("go"))
		paused(t, err)
		time.Sleep(2 * time.Hour)
		out, err := resume(t.Context(), a, "s")
		if !errors.Is(err, flow.ErrAborted) || out.Status != flow.StatusAborted || len(out.Messages) != 2 || out.Custom.Count != 1 {
			t.Fatalf("%v %+v", err, out)
		}
	})
}

func TestATurnAnswersItsCallsByItself(t *testing.T) {
	m := modelFunc(func(context.Context, *flow.Request, func(eventlog.Delta)) (flow.Response, error) {
		return flow.Response{Message: event.Message{Parts: []event.Part{event.ToolCall("c1", "x", jsontext.Value("{}"))}}}, nil
	})
	a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
		if _, err := tn.Model(ctx, m, flow.Request{}); err != nil {
			return err
		}
		return tn.Add(event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c1", "x", event.Text("by hand"))}})
	})
	out, err := a.Run(t.Context(), "s", flow.Text("go"))
	if err != nil || len(out.Messages) != 3 {
		t.Fatalf("%v %+v", err, out.Messages)
	}
}

func TestAnEndedContextThatTheTurnIgnores(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
		flow.Do(ctx, tn, flow.Effect{Name: "slow"}, func(ctx context.Context) (int, error) {
			stop()
			<-ctx.Done()
			return 0, ctx.Err()
		})
		return nil
	})
	_, err := a.Run(ctx, "s", flow.Text("go"))
	time.Sleep(time.Millisecond)
	for info, err := flow.Info(t.Context(), a.Log, "s"); info.Status != flow.StatusExpired; info, err = flow.Info(t.Context(), a.Log, "s") {
		if err != nil || info.Status != flow.StatusRunning {
			t.Fatal(info.Status, err)
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestAPanicInAnUpdate(t *testing.T) {
	a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(ctx context.Context) (int, error) {
			return 1, flow.Update(ctx, func(*notes) error { panic("boom") })
		})
		return err
	})
	var failed *flow.EffectError
	if _, err := a.Run(t.Context(), "s", flow.Text("go")); !errors.As(err, &failed) || failed.Code != "panic" {
		t.Fatal(err)
	}
	a.Turn = func(ctx context.Context, tn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "one", Retry: flow.Retry{Attempts: 2, If: func(error) bool { panic("boom") }}},
			func(ctx context.Context) (int, error) { return 0, errors.New("again?") })
		return err
	}
	if _, err := a.Run(t.Context(), "s", flow.Text("go")); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Fatal(err)
	}
}

func TestAChangeInsideAnEffect(t *testing.T) {
	for name, change := range map[string]func(tn *flow.Turn[notes]) error{
		"message":  func(tn *flow.Turn[notes]) error { return tn.Add(said("lost")) },
		"state":    func(tn *flow.Turn[notes]) error { return tn.Update(func(n *notes) error { n.Count++; return nil }) },
		"artifact": func(tn *flow.Turn[notes]) error { return tn.SetArtifact(t.Context(), event.Artifact{Name: "x"}, nil) },
	} {
		a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(context.Context) (int, error) { return 1, change(tn) })
			return err
		})
		if _, err := a.Run(t.Context(), "s", flow.Text("go")); !errors.Is(err, flow.ErrNestedEffect) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServeContinuesAKilledTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := memory.New()
		defer data.Close()
		var hang atomic.Bool
		hang.Store(true)
		turn := func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(ctx context.Context) (int, error) {
				if hang.Load() {
					<-ctx.Done()
				}
				return 1, ctx.Err()
			})
			return err
		}
		first, second := data.Handle(), eventlog.Open(data.Handle())
		defer second.Close()
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(first), Turn: turn}
		ctx, stop := context.WithCancel(t.Context())
		c, err := connect(ctx, a, "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SendText("go"); err != nil {
			t.Fatal(err)
		}
		b := &flow.Agent[notes]{Name: "a", Log: second, Turn: turn}
		served, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		go func() {
			time.Sleep(time.Minute)
			hang.Store(false)
			first.Close() // killed
			stop()
			<-c.Done()
			a.Log.Close()
		}()
		if err := b.Serve(served); err != nil {
			t.Fatal(err)
		}
		if info, err := flow.Info(t.Context(), second, "s"); err != nil || info.Status != flow.StatusFinished {
			t.Fatal(info.Status, err)
		}
	})
}

func TestAnInputAfterTheEnd(t *testing.T) {
	a := agentOf(t, func(context.Context, *flow.Turn[notes]) error { return nil })
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := a.Send(ctx, "s", flow.Text("late")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestEachWaitHibernates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "x", Retry: flow.Retry{Attempts: 2, First: time.Second}}, func(ctx context.Context) (int, error) {
				if run, _ := flow.FromContext(ctx); run.Attempt == 1 {
					return 0, errors.New("again")
				}
				return 1, nil
			})
			return err
		})
		a.Options.InProcess = -time.Hour
		_, err := a.Run(t.Context(), "s", flow.Text("go"))
		paused(t, err)
		time.Sleep(time.Minute)
		if _, err := resume(t.Context(), a, "s"); err != nil {
			t.Fatal(err)
		}
	})
}

// hookStore calls a function before an append.
type hookStore struct {
	*memory.Store
	before func([]event.Event)
}

func (s *hookStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	s.before(events)
	return s.Store.Append(ctx, session, expect, events, durable)
}

func TestAnAnswerInTheLastInstantCounts(t *testing.T) {
	for name, review := range map[string]*flow.Question{"wait": nil, "deny": {Expires: time.Hour, Lapse: event.LapseDeny}, "ask anew": {Expires: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := memory.New()
				defer data.Close()
				other := eventlog.Open(data.Handle())
				defer other.Close()
				late := func([]event.Event) {}
				log := eventlog.Open(&hookStore{data.Handle(), func(events []event.Event) { late(events) }})
				defer log.Close()
				a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
					var v int
					var err error
					if review != nil {
						v, err = flow.Do(ctx, tn, flow.Effect{Name: "x", Review: review}, func(context.Context) (int, error) { return 7, nil })
					} else {
						w, failed := tn.NewWait(ctx, "", time.Hour)
						if failed != nil {
							return failed
						}
						v, err = flow.Await[int](ctx, tn, w)
					}
					if err != nil {
						return err
					}
					return tn.Update(func(n *notes) error { n.Count = v; return nil })
				}}
				begun := time.Now()
				_, err := a.Run(t.Context(), "s", flow.Text("go"))
				h := paused(t, err)
				time.Sleep(time.Until(begun.Add(time.Hour)))
				now := time.Now() // the clock of the runner is ahead
				a.Options.Now = func() time.Time { return now.Add(time.Second) }
				late = func(events []event.Event) {
					for _, e := range events {
						switch e.Type.Name() {
						case event.WaitResolved, event.EffectIntended, event.ApprovalCanceled:
							late = func([]event.Event) {}
							var err error
							if review == nil {
								_, err = flow.Resolve(context.Background(), other, "s", h.Waits[0].WaitID, 7, "me")
							} else {
								_, err = flow.Decide(context.Background(), other, "s", answerTo(h.Reviews[0], event.Approved))
							}
							if err != nil {
								t.Error(err)
							}
							return
						}
					}
				}
				out, err := resume(t.Context(), a, "s")
				if err != nil || out.Custom.Count != 7 {
					t.Fatalf("%v %+v", err, out.Custom)
				}
			})
		})
	}
}

func TestAnApprovalAllowsOneAttempt(t *testing.T) {
	n := 0
	a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "x", Class: event.EffectUnsafeOnce, Review: &flow.Question{}, Retry: flow.Retry{Attempts: 2, First: 1}},
			func(context.Context) (int, error) { n++; return 0, errors.New("no") })
		return err
	})
	_, err := a.Run(t.Context(), "s", flow.Text("go"))
	if _, err := flow.Decide(t.Context(), a.Log, "s", answerTo(paused(t, err).Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t.Context(), a, "s"); err == nil || n != 1 {
		t.Fatalf("%v, ran %d", err, n)
	}
}

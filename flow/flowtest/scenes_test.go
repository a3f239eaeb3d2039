package flowtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
)

// turnFunc is a turn function. Each effect that runs calls ran.
type turnFunc func(ctx context.Context, t *flow.Turn[shop], ran func()) error

// scene is a recording with something that interrupts or changes a run.
type scene struct {
	name string
	turn turnFunc
	// drive records the session with an agent.
	drive func(t *testing.T, s *stage)
	// turns is the number of turns that the replay runs; 1 if 0.
	turns int
	open  bool
}

// do is an effect that returns its argument.
func do(ctx context.Context, t *flow.Turn[shop], ran func(), name string, review *flow.Question) (string, error) {
	return flow.Do(ctx, t, flow.Effect{Name: name, Review: review, Class: event.EffectPure}, func(ctx context.Context) (string, error) {
		ran()
		return name + " done", flow.Update(ctx, func(s *shop) error { s.Visits++; return nil })
	})
}

// say reports the state of the turn.
func say(t *flow.Turn[shop], what ...any) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	text := fmt.Sprint(append(what, s, t.NewID(), t.NewID(), t.Now().UnixNano(), t.Index(), t.SnapshotID())...)
	return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(text)}})
}

// steps is a turn with three effects.
func steps(ctx context.Context, t *flow.Turn[shop], ran func()) error {
	for _, name := range []string{"one", "two", "three"} {
		v, err := do(ctx, t, ran, name, nil)
		if err != nil {
			return err
		}
		if err := say(t, v); err != nil {
			return err
		}
	}
	return nil
}

// reviewed is a turn with a batch of reviewed effects and a reviewed tool.
func reviewed(ctx context.Context, t *flow.Turn[shop], ran func()) error {
	var calls []flow.Call[int]
	for i := range 3 {
		calls = append(calls, flow.Call[int]{Effect: flow.Effect{Name: fmt.Sprint("pay ", i), Arguments: i, Review: &flow.Question{Prompt: "Pay?", Detail: i}},
			Do: func(context.Context) (int, error) { ran(); return 10 + i, nil }})
	}
	results, err := flow.Batch(ctx, t, 0, calls...)
	if err != nil {
		return err
	}
	if err := say(t, results); err != nil {
		return err
	}
	tool := flow.Tool("find", "", func(_ context.Context, o order) (string, error) { ran(); return "found " + o.ID, nil })
	tool.Review = func(context.Context, event.Part) (*flow.Question, error) { return &flow.Question{Prompt: "Find?"}, nil }
	call := event.ToolCall("c1", "find", jsontext.Value(`{"id":"A1"}`))
	if err := t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{call}}); err != nil {
		return err
	}
	return t.Tools(ctx, []flow.ToolSpec{tool}, []event.Part{call})
}

func lapsing(lapse event.Lapse) turnFunc {
	return func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		v, err := do(ctx, t, ran, "pay", &flow.Question{Prompt: "Pay?", Expires: time.Nanosecond, Lapse: lapse})
		if err != nil && !errors.Is(err, flow.ErrDenied) {
			return err
		}
		return say(t, v, err)
	}
}

// waiting is a turn with waits.
func waiting(ctx context.Context, t *flow.Turn[shop], ran func()) error {
	p, err := t.NewWait(ctx, "signal", 0)
	if err != nil {
		return err
	}
	token, err := do(ctx, t, ran, "send "+p.Token, nil)
	if err != nil {
		return err
	}
	v, err := flow.Await[string](ctx, t, p)
	if err != nil {
		return err
	}
	if err := t.Sleep(ctx, time.Millisecond); err != nil {
		return err
	}
	late, err := t.NewWait(ctx, "late", time.Millisecond)
	if err != nil {
		return err
	}
	_, expired := flow.Await[string](ctx, t, late)
	return say(t, token, v, errors.Is(expired, flow.ErrExpired))
}

var scenes = []scene{
	{name: "reviews", turn: reviewed, drive: func(t *testing.T, s *stage) {
		h := s.paused("Pay.")
		approved, denied, answered := answerTo(h.Reviews[0], event.Approved), answerTo(h.Reviews[1], event.Denied), answerTo(h.Reviews[2], event.Answered)
		denied.Reason, answered.Value = "no", 99
		_, err := flow.Decide(t.Context(), s.log, session, approved, denied, answered)
		s.must(err)
		h = s.paused()
		other := answerTo(h.Reviews[0], event.Approved)
		other.Arguments = jsontext.Value(`{"id":"A2"}`)
		_, err = flow.Decide(t.Context(), s.log, session, other)
		s.must(err)
		s.must(s.run())
	}},
	{name: "a review that lapses as denied", turn: lapsing(event.LapseDeny), drive: func(_ *testing.T, s *stage) { s.must(s.run("Pay.")) }},
	{name: "a review that lapses and fails", turn: lapsing(event.LapseFail), drive: func(t *testing.T, s *stage) {
		if err := s.run("Pay."); !errors.Is(err, flow.ErrExpired) {
			t.Fatal(err)
		}
	}},
	{name: "a review that is asked twice", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		v, err := do(ctx, t, ran, "pay", &flow.Question{Prompt: "Pay?", Expires: 50 * time.Millisecond})
		return errors.Join(err, say(t, v))
	}, drive: func(t *testing.T, s *stage) {
		s.paused("Pay.")
		for s.paused().Reviews[0].Seq < 10 { // until the first one has expired
		}
		var h *flow.Hibernated
		for answered := false; !answered; {
			h = s.paused()
			_, err := flow.Decide(t.Context(), s.log, session, answerTo(h.Reviews[0], event.Approved))
			answered = err == nil
		}
		s.must(s.run())
	}},
	{name: "an unanswered review", turn: reviewed, open: true, drive: func(_ *testing.T, s *stage) { s.paused("Pay.") }},
	{name: "waits", turn: waiting, drive: func(t *testing.T, s *stage) {
		h := s.paused("Wait.")
		_, err := flow.Resolve(t.Context(), s.log, session, h.Waits[0].WaitID, "signaled", "me")
		s.must(err)
		s.must(s.run())
	}},
	{name: "an abort of a running effect", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		v, err := do(ctx, t, ran, "one", nil)
		if err != nil {
			return err
		}
		_, err = flow.Do(ctx, t, flow.Effect{Name: "long"}, func(ctx context.Context) (int, error) {
			ran()
			r, _ := flow.FromContext(ctx)
			if _, err := flow.Abort(ctx, ctx.Value(logKey{}).(*eventlog.Log), r.Session, event.Abort{Reason: "enough"}); err != nil {
				return 0, err
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		return errors.Join(err, say(t, v))
	}, drive: func(t *testing.T, s *stage) {
		if _, err := s.agent.Run(context.WithValue(t.Context(), logKey{}, s.log), session, flow.Text("Go.")); !errors.Is(err, flow.ErrAborted) {
			t.Error(err)
		}
	}},
	{name: "an abort of a hibernated turn", turn: reviewed, drive: func(t *testing.T, s *stage) {
		s.paused("Pay.")
		_, err := flow.Abort(t.Context(), s.log, session, event.Abort{Reason: "enough"})
		s.must(err)
		s.paused("Again.")
	}, turns: 2, open: true},
	{name: "inputs that steer and that wait", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		log, live := ctx.Value(logKey{}).(*eventlog.Log)
		if _, err := flow.Do(ctx, t, flow.Effect{Name: "hear"}, func(ctx context.Context) (int, error) {
			ran()
			if !live || t.Index() > 0 {
				return 0, nil
			}
			hint, later := flow.Text("It is A1."), flow.Text("Thanks.")
			hint.ID, hint.Steer, later.ID = "hint", true, "later"
			hint.PostOnly, later.PostOnly = true, true
			poster := &flow.Agent[shop]{Name: "shop", Log: log}
			_, err := poster.Send(ctx, session, hint)
			_, err2 := poster.Send(ctx, session, later)
			return 0, errors.Join(err, err2)
		}); err != nil {
			return err
		}
		m := flowtest.Script{flowtest.Say("I see.")}
		a, err := t.Model(ctx, m, flow.Request{})
		return errors.Join(err, say(t, a.Text()))
	}, drive: func(t *testing.T, s *stage) {
		_, err := s.agent.Run(context.WithValue(t.Context(), logKey{}, s.log), session, flow.Text("Where is it?"))
		s.must(err)
	}, turns: 2},
	{name: "a failed turn and the next one", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		if err := steps(ctx, t, ran); err != nil || t.Input().Messages[0].Text() != "Fail." {
			return err
		}
		return errors.New("it broke")
	}, drive: func(t *testing.T, s *stage) {
		s.must(s.run("Hello."))
		if err := s.run("Fail."); err == nil {
			t.Fatal("the turn did not fail")
		}
		s.must(s.run("And now?"))
	}, turns: 3},
	{name: "compactions", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		m := always(func() (event.Message, error) { ran(); return said("Short."), nil })
		if t.Index() == 2 {
			if err := t.Compact(ctx, m, flow.Request{}, 1); err != nil {
				return err
			}
		}
		a, err := t.Model(ctx, m, flow.Request{})
		return errors.Join(err, say(t, a.Text()))
	}, drive: func(_ *testing.T, s *stage) { s.must(s.run("1", "2", "3", "4")) }, turns: 4},
	{name: "artifacts and a replaced history", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		if err := t.SetArtifact(ctx, event.Artifact{Name: "bill"}, []byte("1250 cents")); err != nil {
			return err
		}
		if err := t.SetMessages(event.Message{Role: event.User, Parts: []event.Part{event.Text("Only this.")}}); err != nil {
			return err
		}
		return steps(ctx, t, ran)
	}, drive: func(_ *testing.T, s *stage) { s.must(s.run("1", "2")) }, turns: 2},
	{name: "checkpoints", turn: steps, drive: func(t *testing.T, s *stage) {
		s.agent.Options.Checkpoint = flow.BeforeEachEffect
		s.paused("Go.")
		for range 2 {
			s.paused()
		}
		s.must(s.run())
	}},
	{name: "a start from a token", turn: steps, drive: func(t *testing.T, s *stage) {
		s.agent.Options.Checkpoint = flow.BeforeEachEffect
		h := s.paused("Go.")
		s.agent.Options.Checkpoint = 0
		_, err := resumeAt(t.Context(), s.agent, h.Ref)
		s.must(err)
	}},
	{name: "a rewind to an earlier turn", turn: steps, drive: func(t *testing.T, s *stage) {
		out, err := s.agent.Run(t.Context(), session, flow.Text("1"))
		s.must(err)
		s.must(s.run("2"))
		_, err = resumeAt(t.Context(), s.agent, out.Ref)
		s.must(err)
		s.must(s.run("3"))
	}, turns: 3},
	{name: "a beginning with content", turn: steps, drive: func(t *testing.T, s *stage) {
		_, err := s.agent.Begin(t.Context(), flow.Content[shop]{Session: session, Custom: shop{Paid: 7}, Messages: []event.Message{
			{Role: event.User, Parts: []event.Part{event.Text("Earlier.")}}}})
		s.must(err)
		s.must(s.run("1"))
	}},
	{name: "a message of another program", turn: steps, drive: func(t *testing.T, s *stage) {
		s.must(s.run("1"))
		_, err := s.log.Append(t.Context(), session, eventlog.Any(), event.AssistantMessage("I am the cron job."))
		s.must(err)
		s.must(s.run("2"))
	}, turns: 2},
	{name: "a limit", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		m := always(func() (event.Message, error) { return said("More."), nil })
		for {
			if _, err := t.Model(ctx, m, flow.Request{}); err != nil {
				return err
			}
		}
	}, drive: func(_ *testing.T, s *stage) {
		s.agent.Options.Limits.Calls = 2
		s.must(s.run("Go."))
	}},
	{name: "a change that is guarded", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		patched, err := t.Patched("more")
		if err != nil {
			return err
		}
		return errors.Join(steps(ctx, t, ran), say(t, patched))
	}, drive: func(_ *testing.T, s *stage) { s.must(s.run("1")) }},
	{name: "attempts", turn: func(ctx context.Context, t *flow.Turn[shop], ran func()) error {
		v, err := flow.Do(ctx, t, flow.Effect{Name: "try", Retry: flow.Retry{Attempts: 3, First: time.Microsecond}}, func(ctx context.Context) (int, error) {
			ran()
			r, _ := flow.FromContext(ctx)
			if r.Attempt < 3 {
				return 0, errors.New("busy")
			}
			return r.Attempt, nil
		})
		_, failed := flow.Do(ctx, t, flow.Effect{Name: "fail"}, func(context.Context) (int, error) { ran(); return 0, errors.New("no") })
		return errors.Join(err, say(t, v, failed))
	}, drive: func(_ *testing.T, s *stage) { s.must(s.run("1")) }},
}

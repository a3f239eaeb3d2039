package flowtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
)

// A fork replays its own turns. The turns of its parent are history.
func TestForksReplay(t *testing.T) {
	s := newStage(t, steps)
	s.must(s.run("1", "2"))
	_, err := fork.At(t.Context(), s.log, session, fork.Head(), fork.Options{ID: "branch"})
	s.must(err)
	_, err = s.agent.Run(t.Context(), "branch", flow.Text("3"))
	s.must(err)
	if r := s.replayed(steps, "branch"); r.Turns != 1 || len(texts(t, r.Log, "branch")) != len(texts(t, s.log, "branch")) {
		t.Errorf("%+v", r)
	}
	copied, err := fork.Copy(t.Context(), s.log, session)
	s.must(err)
	_, err = s.agent.Run(t.Context(), copied.ID, flow.Text("3"))
	s.must(err)
	if r := s.replayed(steps, copied.ID); r.Turns != 1 {
		t.Errorf("%+v", r)
	}
}

// A fork inside a turn replays the whole turn.
func TestAForkInsideATurnReplays(t *testing.T) {
	turn := func(ctx context.Context, x *flow.Turn[shop], ran func()) error {
		v, err := do(ctx, x, ran, "find", nil)
		if err != nil {
			return err
		}
		add := func(text string) error {
			return x.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(text + x.NewID() + x.Now().String())}})
		}
		if err := add(v); err != nil {
			return err
		}
		v, err = do(ctx, x, ran, "pay", &flow.Question{Prompt: "Pay?"})
		return errors.Join(err, add(v))
	}
	s := newStage(t, turn)
	s.paused("Go.")
	_, err := fork.At(t.Context(), s.log, session, fork.Head(), fork.Options{ID: "branch", Force: true})
	s.must(err)
	var h *flow.Hibernated
	if _, err := resume(t.Context(), s.agent, "branch"); !errors.As(err, &h) {
		t.Fatal(err)
	}
	_, err = flow.Decide(t.Context(), s.log, "branch", answerTo(h.Reviews[0], event.Approved))
	s.must(err)
	_, err = resume(t.Context(), s.agent, "branch")
	s.must(err)
	if r := s.replayed(turn, "branch"); r.Turns != 1 || r.Open {
		t.Errorf("%+v", r)
	}
}

package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/memory"
)

func TestForkAndCopyOfAHibernatedTurn(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	ctx := t.Context()
	s.agent.Run(ctx, "s", flow.Text("A1"))
	first := open(t, s, "s")[0]
	child, err := fork.At(ctx, s.log, "s", fork.Head(), fork.Options{ID: "f"})
	if err != nil {
		t.Fatal(err)
	}
	_ = child
	if _, err := fork.Copy(ctx, s.log, "s", fork.CopyOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"f", "c"} {
		_, err := resume(ctx, &s.agent, id)
		var pause *flow.Hibernated
		if !errors.As(err, &pause) || len(pause.Reviews) != 1 || pause.Reviews[0].InterruptID == first.InterruptID || pause.Reviews[0].EffectID == first.EffectID {
			t.Fatalf("%s: %v %+v", id, err, pause)
		}
		if _, err := flow.Decide(ctx, s.log, id, answerTo(first, event.Approved)); !errors.Is(err, flow.ErrNotOpen) {
			t.Fatalf("%s: the answer of the original: %v", id, err)
		}
	}
	if s.runs() != 0 || s.calls.Load() != 1 {
		t.Fatalf("ran %d, asked %d", s.runs(), s.calls.Load())
	}
}

// The messages before a hibernation are in the log once, also in a fork and in a copy.
func TestForksOfAHibernationKeepItsMessagesOnce(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		if err := t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("I ask.")}}); err != nil {
			return err
		}
		_, err := flow.Do(ctx, t, flow.Effect{Name: "pay", Review: &flow.Question{Prompt: "Pay?"}}, func(context.Context) (int, error) { return 1, nil })
		return err
	}}
	ctx := t.Context()
	var pause *flow.Hibernated
	if _, err := a.Run(ctx, "s", flow.Text("Pay.")); !errors.As(err, &pause) {
		t.Fatal(err)
	}
	if _, err := fork.At(ctx, log, "s", fork.Head(), fork.Options{ID: "f", Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Copy(ctx, log, "s", fork.CopyOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"f", "c"} {
		out, err := resume(ctx, a, id)
		if !errors.As(err, &pause) || len(out.Messages) != 2 {
			t.Errorf("%s: %v, %d messages", id, err, len(out.Messages))
		}
	}
}

package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/store/memory"
)

// syncing is a store that notes which appends wait for the disk.
type syncing struct {
	*memory.Store
	noted []string
}

func (s *syncing) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	what := "durable"
	switch {
	case engine.Unsynced(ctx):
		what = "unsynced"
	case !durable:
		what = "by the policy"
	}
	for i := range events {
		switch events[i].Type.Name() {
		case event.EffectIntended:
			p, _, err := event.Decode[event.EffectIntent](&events[i])
			if err != nil {
				return err
			}
			s.noted = append(s.noted, fmt.Sprintf("intent %s %d: %s", p.Name, p.Attempt, what))
		case event.EffectCompleted, event.TurnStarted, event.TurnCompleted, event.RunClaimed:
			s.noted = append(s.noted, fmt.Sprintf("%s: %s", events[i].Type.Name(), what))
		}
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

// The intent of an effect that may run again waits for no disk. Every other event does, and so
// do the intents of the other classes.
func TestIntentsThatWaitForNoDisk(t *testing.T) {
	store := &syncing{Store: memory.New()}
	log := eventlog.Open(store)
	defer log.Close()
	fail := true
	effects := []flow.Effect{
		{Name: "pure", Class: event.EffectPure}, {Name: "again", Retry: flow.Retry{Attempts: 2, First: 1}}, {Name: "dedupe", Class: event.EffectDedupe},
		{Name: "reconcile", Class: event.EffectReconcile}, {Name: "reviewed", Review: &flow.Question{Prompt: "go on?"}},
	}
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		for _, e := range effects {
			_, err := flow.Do(ctx, tn, e, func(context.Context) (int, error) {
				if e.Name == "again" && fail {
					fail = false
					return 0, fmt.Errorf("not yet")
				}
				return 1, nil
			})
			if err != nil {
				return err
			}
		}
		both := []flow.Call[int]{{Effect: effects[0], Do: one}, {Effect: effects[2], Do: one}}
		_, err := flow.Batch(ctx, tn, 0, both...)
		return err
	}}
	h, err := a.Send(t.Context(), "s", flow.Text("go"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Wait(t.Context())
	var pause *flow.Hibernated
	if !errors.As(err, &pause) {
		t.Fatal(err)
	}
	for _, r := range pause.Reviews {
		if _, err := flow.Decide(t.Context(), log, "s", answerTo(r, event.Approved)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	intents := slices.DeleteFunc(slices.Clone(store.noted), func(s string) bool { return !strings.HasPrefix(s, "intent ") })
	want := []string{"intent pure 1: unsynced", "intent again 1: unsynced", "intent again 2: unsynced", "intent dedupe 1: durable",
		"intent reconcile 1: durable", "intent reviewed 1: durable", "intent pure 1: durable", "intent dedupe 1: durable"}
	if !slices.Equal(intents, want) {
		t.Errorf("got %q\nwant %q", intents, want)
	}
	for _, s := range store.noted {
		if !strings.HasPrefix(s, "intent ") && !strings.HasSuffix(s, ": durable") {
			t.Error(s)
		}
	}
}

func one(context.Context) (int, error) { return 1, nil }

package flowtest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

// household is an agent with a child whose effect needs a review.
func household(mode event.ChildMode, prompt string, ran func()) (top, child *flow.Agent[shop]) {
	child = &flow.Agent[shop]{Name: "child", Turn: func(ctx context.Context, t *flow.Turn[shop]) error {
		m := always(func() (event.Message, error) { ran(); return said("I pay."), nil })
		if _, err := t.Model(ctx, m, flow.Request{System: prompt}); err != nil {
			return err
		}
		v, err := do(ctx, t, ran, "pay", &flow.Question{Prompt: "Pay?"})
		return errors.Join(err, t.SetArtifact(ctx, event.Artifact{Name: "receipt"}, []byte("paid")), say(t, v))
	}}
	top = &flow.Agent[shop]{Name: "top", Turn: func(ctx context.Context, t *flow.Turn[shop]) error {
		v, err := flow.Do(ctx, t, flow.Effect{Name: "delegate"}, func(ctx context.Context) (string, error) {
			out, err := flow.RunChild(ctx, child, t.Input(), flow.ChildOptions{Mode: mode})
			if err != nil {
				return "", err
			}
			return out.Message.Text(), nil
		})
		return errors.Join(err, say(t, v, len(t.Artifacts())))
	}}
	return top, child
}

// payBill runs a household until the review of its child, approves the review, and runs the
// household to its end.
func payBill(ctx context.Context, a *flow.Agent[shop]) error {
	_, err := a.Run(ctx, session, flow.Text("The bill."))
	var h *flow.Hibernated
	if !errors.As(err, &h) {
		return err
	}
	if _, err := flow.Decide(ctx, a.Log, session, answerTo(h.Reviews[0], event.Approved)); err != nil {
		return err
	}
	_, err = resume(ctx, a, session)
	return err
}

// The effect that ran a child has its recorded result, and the session of the child is
// replayed with its own agent.
func TestChildrenReplay(t *testing.T) {
	for _, mode := range []event.ChildMode{event.ChildFresh, event.ChildFork} {
		t.Run(string(mode), func(t *testing.T) {
			ran := 0
			count := func() { ran++ }
			top, child := household(mode, "Be kind.", count)
			path := filepath.Join(t.TempDir(), "family.jsonl")
			children := func(c *flow.Agent[shop]) flowtest.Options {
				return flowtest.Options{Children: []flowtest.Child{flowtest.ChildOf(c)}}
			}
			flowtest.Record(t, top, path, session, payBill, children(child))
			if ran != 2 {
				t.Fatalf("%d effects ran", ran)
			}
			if r := flowtest.Replay(t, top, path, children(child)); r.Turns != 2 || len(r.Skipped) != 0 || r.Unchecked != 0 {
				t.Errorf("%+v", r)
			}
			if r := flowtest.Replay(t, top, path); r.Turns != 1 || len(r.Skipped) != 1 {
				t.Errorf("without the agent of the child: %+v", r)
			}
			_, changed := household(mode, "Be brief.", count)
			fake := &fakeTB{TB: t}
			flowtest.Replay(fake, top, path, children(changed))
			if errs := strings.Join(fake.errors, "\n"); !strings.Contains(errs, "+   Be brief.") || strings.Contains(errs, session) {
				t.Errorf("another prompt of the child: %s", errs)
			}
			if ran != 2 {
				t.Errorf("effects ran in a replay")
			}
		})
	}
}

// family records a household, and returns its agents and its file.
func family(t *testing.T) (top, child *flow.Agent[shop], path string) {
	top, child = household(event.ChildFresh, "Be kind.", func() {})
	path = filepath.Join(t.TempDir(), "new", "family.jsonl")
	flowtest.Record(t, top, path, session, payBill, flowtest.Options{Children: []flowtest.Child{flowtest.ChildOf(child)}})
	return top, child, path
}

// A recording without the session of a child says how to get it.
func TestARecordingWithoutItsChild(t *testing.T) {
	top, child, path := family(t)
	log := eventlog.Open(memory.New())
	defer log.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Import(t.Context(), log, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	for s, err := range log.Sessions(t.Context()) {
		if err == nil && s.ID != session {
			err = erase.Remove(t.Context(), log, s.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = flowtest.Run(t.Context(), top, log, session, flowtest.Options{Children: []flowtest.Child{flowtest.ChildOf(child)}})
	if !errors.Is(err, flowtest.ErrNotServed) || !strings.Contains(err.Error(), "logtool export --below") {
		t.Error(err)
	}
	if r, err := flowtest.Run(t.Context(), top, log, session); err != nil || len(r.Skipped) != 1 {
		t.Errorf("without the agent of the child: %+v, %v", r, err)
	}
}

// A recording whose session is a child of its child is refused.
func TestARecordingOfItsOwnGrandchild(t *testing.T) {
	log, loop := eventlog.Open(memory.New()), eventlog.Open(memory.New())
	defer log.Close()
	defer loop.Close()
	leaf := &flow.Agent[shop]{Name: "leaf", Turn: func(context.Context, *flow.Turn[shop]) error { return nil }}
	top := &flow.Agent[shop]{Name: "top", Log: log, Turn: func(ctx context.Context, t *flow.Turn[shop]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "delegate"}, func(ctx context.Context) (int, error) {
			_, err := flow.RunChild(ctx, leaf, t.Input(), flow.ChildOptions{})
			return 0, err
		})
		return err
	}}
	if _, err := top.Run(t.Context(), session, flow.Text("Go.")); err != nil {
		t.Fatal(err)
	}
	for id, child := range map[string]string{session: "low", "low": session} {
		var events []event.Event
		for e, err := range log.Read(t.Context(), session, eventlog.All()) {
			if err != nil {
				t.Fatal(err)
			}
			copied := event.Event{ID: e.ID, Type: e.Type, Data: e.Data}
			if c, ok, _ := event.Decode[event.Child](&e); ok {
				c.ChildSessionID, c.Agent = child, top.Name
				copied = event.New(c)
			}
			if events = append(events, copied); e.More() > 0 {
				continue
			}
			if _, err := loop.Append(t.Context(), id, eventlog.Any(), events...); err != nil {
				t.Fatal(err)
			}
			events = nil
		}
	}
	var out bytes.Buffer
	if err := transfer.Export(t.Context(), loop, &out, "low", session); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "loop.jsonl")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	fake, o := &fatalTB{fakeTB: fakeTB{TB: t}}, flowtest.Options{Children: []flowtest.Child{flowtest.ChildOf(top)}}
	func() {
		defer func() { _ = recover() }()
		flowtest.Replay(fake, top, path, o)
	}()
	if errs := strings.Join(fake.errors, "\n"); !strings.Contains(errs, "it has no session") {
		t.Errorf("the errors are %q", errs)
	}
	if _, err := flowtest.Run(t.Context(), top, loop, session, o); !errors.Is(err, flowtest.ErrNotServed) || !strings.Contains(err.Error(), "its own parent") {
		t.Error(err)
	}
}

// fatalTB is a fakeTB whose Fatalf panics.
type fatalTB struct{ fakeTB }

func (f *fatalTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic("the test ended")
}

package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// Detach returns the reference of the turn at once, in whatever state the turn is, and the
// reference leads to the status of the turn.
func TestDetachAlwaysHasAReference(t *testing.T) {
	for range 50 {
		log, gate := openLog(t), make(chan struct{})
		begun := make(chan struct{}, 2)
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "wait"}, func(ctx context.Context) (int, error) {
				begun <- struct{}{}
				<-gate
				if tn.Input().Messages[0].Text() == "fail" {
					return 0, errors.New("no")
				}
				return 1, nil
			})
			return err
		}}
		ctx, stop := context.WithCancel(t.Context())
		send := func(text string) (*flow.Handle[notes], flow.Ref) {
			h, err := a.Send(ctx, "s", flow.Text(text))
			if err != nil {
				t.Fatal(err)
			}
			ref := h.Detach()
			if ref.Session != "s" || ref.Snapshot == "" || ref != h.Ref() {
				t.Fatalf("%s: %+v", text, ref)
			}
			return h, ref
		}
		status := func(ref flow.Ref, want flow.Status) {
			t.Helper()
			if s, err := a.Snapshot(t.Context(), ref); err != nil || s.Status != want || (s.Err != nil) != (want == flow.StatusFailed) {
				t.Fatalf("%v %s %v, want %s", err, s.Status, s.Err, want)
			}
		}
		_, first := send("go")
		<-begun
		failing, failed := send("fail")
		last, pending := send("go")
		status(first, flow.StatusRunning)
		status(failed, flow.StatusNew)
		status(pending, flow.StatusNew)
		stop() // the runner is detached
		close(gate)
		if _, err := failing.Wait(t.Context()); !errors.As(err, new(*flow.TurnError)) {
			t.Fatal(err)
		}
		if _, err := last.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		status(first, flow.StatusFinished)
		status(failed, flow.StatusFailed)
		status(pending, flow.StatusFinished)
	}
}

// The reference of an input that went into a running turn leads to that turn, and the reference
// of a session whose inputs wait is the one of the first of them.
func TestReferencesOfOtherInputs(t *testing.T) {
	gate := make(chan struct{})
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: twice(echo(gate))}
	h, err := a.Send(t.Context(), "s", flow.Text("one"))
	if err != nil {
		t.Fatal(err)
	}
	hint := flow.Text("two")
	hint.Steer = true
	steering, err := a.Send(t.Context(), "s", hint)
	if err != nil {
		t.Fatal(err)
	}
	close(gate)
	out, err := h.Wait(t.Context())
	if err != nil || out.Text() != "one|two" {
		t.Fatal(out.Text(), err)
	}
	if s, err := a.Snapshot(t.Context(), steering.Ref()); err != nil || s.Status != flow.StatusFinished || len(s.Messages) != 4 {
		t.Fatalf("%v %+v", err, s)
	}
	post := flow.Text("three")
	post.PostOnly = true
	posted, err := a.Send(t.Context(), "s", post)
	if err != nil {
		t.Fatal(err)
	}
	resumed, err := a.Resume(t.Context(), flow.Ref{Session: "s"})
	if err != nil || resumed.Ref() != posted.Ref() || resumed.Detach().Snapshot == "" {
		t.Fatalf("%v %+v, want %+v", err, resumed.Ref(), posted.Ref())
	}
	if _, err := resumed.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := a.Snapshot(t.Context(), resumed.Ref()); err != nil || s.Status != flow.StatusFinished {
		t.Fatalf("%v %s", err, s.Status)
	}
	if _, err := a.Resume(t.Context(), flow.Ref{Session: "s", Wait: "w"}); !errors.Is(err, flow.ErrStart) {
		t.Fatal(err)
	}
}

// The message of the output has the snapshot, beside the members of its provider, and a handle
// of another process has it too. The log and the next session do not have it.
func TestTheSnapshotInTheMessage(t *testing.T) {
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(_ context.Context, tn *flow.Turn[notes]) error {
		return tn.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("hi")}, Extra: []byte(`{"n":1.0}`)})
	}}
	post := flow.Text("go")
	post.PostOnly = true
	posted, err := (&flow.Agent[notes]{Name: "a", Log: a.Log}).Send(t.Context(), "s", post)
	if err != nil {
		t.Fatal(err)
	}
	h, err := a.Resume(t.Context(), flow.Ref{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*flow.Handle[notes]{h, posted} {
		out, err := h.Wait(t.Context())
		want := fmt.Sprintf(`{"n":1.0,"snapshot_id":%q}`, posted.Ref().Snapshot)
		if err != nil || string(out.Message.Extra) != want || out.Ref != posted.Ref() || !json.Valid(out.Message.Extra) {
			t.Fatalf("%v %s, want %s", err, out.Message.Extra, want)
		}
		if last := out.Messages[len(out.Messages)-1]; string(last.Extra) != `{"n":1.0}` {
			t.Fatalf("%s", last.Extra)
		}
	}
}

// A runner that has nothing to do, since the turn of the input has ended, leaves the handle with
// the end of that turn.
func TestAnInputThatHasEnded(t *testing.T) {
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(_ context.Context, tn *flow.Turn[notes]) error {
		tn.Stop("enough")
		return nil
	}}
	in := flow.Text("go")
	in.ID = "i"
	if _, err := a.Run(t.Context(), "s", in); err != nil {
		t.Fatal(err)
	}
	h, err := a.Send(t.Context(), "s", in)
	if err != nil {
		t.Fatal(err)
	}
	var end *flow.TurnEnd
	for c, err := range h.Receive() {
		if err != nil {
			t.Fatal(err)
		}
		end = c.EndTurn
	}
	if end == nil || end.StopReason != "enough" {
		t.Errorf("%+v", end)
	}
	if out, err := h.Wait(t.Context()); err != nil || out.StopReason != "enough" {
		t.Errorf("%v %q", err, out.StopReason)
	}
}

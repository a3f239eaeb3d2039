package flow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// An input is stored while the session hibernates. Its sender is told that it waits, and gets
// its turn after the answer.
func TestAnInputToAHibernatedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, ask("Pay?"))
		var pause *flow.Hibernated
		if _, err := s.agent.Run(t.Context(), "s", flow.Text("A1")); !errors.As(err, &pause) || pause.Queued {
			t.Fatal(err)
		}
		h, err := s.agent.Send(t.Context(), "s", flow.Text("never mind"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context()); !errors.As(err, &pause) || !pause.Queued {
			t.Fatalf("%v %+v", err, pause)
		}
		info, err := flow.Info(t.Context(), s.log, "s")
		if err != nil || len(info.Inbox) != 1 || info.Inbox[0].InputID != h.Input {
			t.Fatalf("%v %+v", err, info.Inbox)
		}
		go func() {
			time.Sleep(time.Hour)
			if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(pause.Reviews[0], event.Approved)); err != nil {
				t.Error(err)
			}
		}()
		if _, err := h.Wait(t.Context()); !errors.As(err, &pause) || pause.Queued {
			t.Fatal(err)
		}
		if turn, err := h.Turn(t.Context()); err != nil || turn != pause.Turn {
			t.Fatal(turn, err)
		}
	})
}

// An input that is sent again after its turn failed tries the same turn again, with the same
// keys, while no later turn is in the session.
func TestAnInputIsSentAgain(t *testing.T) {
	var keys []string
	fail := true
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		for _, name := range []string{"charge", "mail"} {
			if _, err := flow.Do(ctx, tn, flow.Effect{Name: name, Class: event.EffectDedupe}, func(ctx context.Context) (int, error) {
				r, _ := flow.FromContext(ctx)
				keys = append(keys, r.Key)
				if name == "mail" && fail {
					return 0, errors.New("down")
				}
				return 1, nil
			}); err != nil {
				return err
			}
		}
		return nil
	}}
	in := flow.Text("buy")
	in.ID = "order-17"
	var failed *flow.TurnError
	if _, err := a.Run(t.Context(), "s", in); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	fail = false
	h, err := a.Send(t.Context(), "s", in)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := h.Wait(t.Context()); err != nil || out.Status != flow.StatusFinished {
		t.Fatal(err)
	}
	turn, err := h.Turn(t.Context())
	if err != nil || turn != failed.Turn || len(keys) != 3 || keys[1] != keys[2] {
		t.Fatalf("%v %v, keys %v", turn, err, keys)
	}
	if _, err := a.Run(t.Context(), "s", in); err != nil || len(keys) != 3 {
		t.Fatalf("a third time: %v, keys %v", err, keys)
	}
	fail = true
	in.ID = "order-18"
	if _, err := a.Run(t.Context(), "s", in); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	fail = false
	if _, err := a.Run(t.Context(), "s", flow.Text("another")); err != nil {
		t.Fatal(err)
	}
	var refused *flow.InputError
	head, _ := a.Log.Head(t.Context(), "s")
	if _, err := a.Run(t.Context(), "s", in); !errors.As(err, &refused) || refused.Turn != failed.Turn || refused.Input != in.ID {
		t.Fatal(err)
	}
	if after, _ := a.Log.Head(t.Context(), "s"); after != head {
		t.Fatal("a refused input is stored")
	}
}

// Run returns after its runner has ended, and its output has the session.
func TestRunReturnsAfterItsRunner(t *testing.T) {
	for range 50 {
		n := 0
		ctx, stop := context.WithCancel(t.Context())
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "x"}, func(ctx context.Context) (int, error) {
				if n++; n > 1 {
					return 1, nil
				}
				stop()
				<-ctx.Done()
				return 0, ctx.Err()
			})
			return err
		}}
		out, err := a.Run(ctx, "s", flow.Text("x"))
		if !errors.Is(err, context.Canceled) || out.Session != "s" {
			t.Fatalf("%v %+v", err, out)
		}
		if _, err = resume(t.Context(), a, "s"); err != nil || n != 2 {
			t.Fatal(err, n)
		}
		a.Log.Close()
	}
}

// The reference of an input exists at once, also while it waits, and after Detach.
func TestARefOfAnInputThatWaits(t *testing.T) {
	gate := make(chan struct{})
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: twice(echo(gate))}
	var handles []*flow.Handle[notes]
	for _, text := range []string{"one", "two"} {
		h, err := a.Send(t.Context(), "s", flow.Text(text))
		if err != nil {
			t.Fatal(err)
		}
		if ref := h.Detach(); ref.Session != "s" || ref.Snapshot == "" || ref != h.Ref() {
			t.Fatalf("%+v", ref)
		}
		handles = append(handles, h)
	}
	close(gate)
	for _, h := range handles {
		if _, err := h.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, err := a.Snapshot(t.Context(), h.Ref())
		if err != nil || s.Status != flow.StatusFinished {
			t.Fatalf("%v %v", s.Status, err)
		}
	}
	for s, err := range projection.Snapshots(t.Context(), a.Log, "s", false) {
		if err != nil || s.Snapshot.SnapshotID != handles[0].Ref().Snapshot && s.Snapshot.SnapshotID != handles[1].Ref().Snapshot {
			t.Fatalf("%v %+v", err, s.Snapshot)
		}
	}
}

// A webhook begins a session by posting. Another process serves it.
func TestAWebhookBeginsASession(t *testing.T) {
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: twice(echo(nil))}
	webhook := &flow.Agent[struct{}]{Name: "a", Log: a.Log}
	in := flow.Text("hello")
	in.PostOnly = true
	h, err := webhook.Send(t.Context(), "s", in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- a.Serve(ctx) }()
	if out, err := h.Wait(t.Context()); err != nil || out.Text() != "hello" {
		t.Fatalf("%v %q", err, out.Text())
	}
	stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if _, err := webhook.Resume(t.Context(), flow.Ref{Session: "s"}); !errors.Is(err, flow.ErrStart) {
		t.Fatal(err)
	}
}

// A handle tells how the turn ended that another process ran: with its error, or its status.
func TestEndsOfTurnsThatOthersRan(t *testing.T) {
	begun := make(chan struct{})
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		if tn.Session() == "fail" {
			return errors.New("no stock")
		}
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "wait"}, func(ctx context.Context) (int, error) {
			close(begun)
			<-ctx.Done()
			return 0, ctx.Err()
		})
		return err
	}}
	webhook := &flow.Agent[struct{}]{Name: "a", Log: a.Log}
	post := func(session string) *flow.Handle[struct{}] {
		in := flow.Text(session)
		in.PostOnly = true
		h, err := webhook.Send(t.Context(), session, in)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	failing, aborted := post("fail"), post("abort")
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- a.Serve(ctx) }()

	var failed *flow.TurnError
	out, err := failing.Wait(t.Context())
	if !errors.As(err, &failed) || failed.Code != "failed" || failed.Err.Error() != "no stock" || out.StopReason != "failed" {
		t.Errorf("%v %+v", err, out)
	}
	<-begun
	if _, err := aborted.Abort(t.Context(), "me", "enough"); err != nil {
		t.Error(err)
	}
	var end *flow.TurnEnd
	for chunk, err := range aborted.Receive() {
		if err != nil {
			t.Error(err)
		}
		end = chunk.EndTurn
	}
	turn, err := aborted.Turn(t.Context())
	if err != nil || end == nil || end.Turn != turn || end.Status != event.TurnStatusAborted || end.StopReason != "aborted" {
		t.Errorf("%v %+v, want turn %s", err, end, turn)
	}
	if out, err := aborted.Wait(t.Context()); !errors.Is(err, flow.ErrAborted) || out.Status != flow.StatusAborted || out.StopReason != "aborted" {
		t.Errorf("%v %+v", err, out)
	}
	stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

// After the end of a turn, the next input begins a turn of its own, and its handle gets the
// chunks, however long the release of the session takes.
func TestChunksOfTheNextInput(t *testing.T) {
	slow := func(_ context.Context, _ string, e *event.Event) error {
		if e.Type.Name() == event.RunReleased {
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}
	l := eventlog.Open(memory.New(), eventlog.Options{Hook: slow})
	defer l.Close()
	a := &flow.Agent[notes]{Name: "a", Log: l, Turn: twice(echo(nil))}
	for _, text := range []string{"one", "two", "three"} {
		h, err := a.Send(t.Context(), "s", flow.Text(text))
		if err != nil {
			t.Fatal(err)
		}
		messages := 0
		for chunk, err := range h.Receive() {
			if err != nil {
				t.Fatal(err)
			}
			if chunk.Message != nil {
				messages++
			}
		}
		if messages == 0 {
			t.Errorf("%s: no message", text)
		}
	}
}

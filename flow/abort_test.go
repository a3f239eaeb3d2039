package flow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: twice(echo(make(chan struct{})))}
		defer a.Log.Close()
		c := start(t, a)
		c.SendText("go")
		synctest.Wait()
		before, err := c.last().Abort(t.Context(), "me", "enough")
		if err != nil || before != flow.StatusRunning {
			t.Fatal(before, err)
		}
		var end *flow.TurnEnd
		for chunk, err := range c.Receive() {
			if err != nil {
				t.Fatal(err)
			}
			end = chunk.EndTurn
		}
		if end == nil || end.Status != event.TurnStatusAborted || end.StopReason != "aborted" {
			t.Fatalf("%+v", end)
		}
		if before, err := c.last().Abort(t.Context(), "me", "again"); err != nil || before != flow.StatusAborted {
			t.Fatal(before, err)
		}
		out, err := c.Output(t.Context())
		if !errors.Is(err, flow.ErrAborted) || out.Status != flow.StatusAborted || len(out.Messages) != 1 {
			t.Fatalf("%v, %+v", err, out)
		}
	})
}

func TestAbortOfAHibernatedTurn(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	s.agent.Run(t.Context(), "s", flow.Text("A1"))
	before, err := flow.Abort(t.Context(), s.log, "s", event.Abort{By: "me", Reason: "no"})
	if err != nil || before != flow.StatusHibernated {
		t.Fatal(before, err)
	}
	out, err := s.agent.Run(t.Context(), "s", flow.Text("nothing"))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) || s.runs() != 0 {
		t.Fatal(err)
	}
	if m := out.Messages[2].ToolResults(); len(m) != 1 || !m[0].Interrupted {
		t.Fatalf("the open call: %+v", out.Messages)
	}
}

func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: twice(echo(gate))}
		defer a.Log.Close()
		ctx, stop := context.WithCancel(t.Context())
		c, err := connect(ctx, a, "s")
		if err != nil {
			t.Fatal(err)
		}
		c.SendText("go")
		synctest.Wait()
		ref := c.last().Detach()
		if ref.Snapshot == "" {
			t.Fatal(ref)
		}
		stop()
		for range c.Receive() {
			t.Fatal("a chunk after Detach")
		}
		s, err := a.Snapshot(t.Context(), ref)
		if err != nil || s.Status != flow.StatusRunning {
			t.Fatalf("%+v %v", s.Status, err)
		}
		close(gate)
		<-c.Done()
		s, err = a.Snapshot(t.Context(), ref)
		if err != nil || s.Status != flow.StatusFinished || s.StopReason != "stop" || len(s.Messages) != 3 {
			t.Fatalf("%+v %v", s, err)
		}
	})
}

package flow_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

func TestAReconciledToolCallTellsTheModel(t *testing.T) {
	for want, o := range map[string]flow.Outcome{
		"done: paid":     {Result: "paid"},
		"done: declined": {Err: errors.New("declined")},
		"done: ran":      {DidNotRun: true},
	} {
		log := eventlog.Open(memory.New())
		defer log.Close()
		var calls, runs atomic.Int64
		begun := make(chan struct{})
		tool := flow.Tool{Name: "pay", Class: event.EffectReconcile, Run: func(ctx context.Context, _ event.Part) ([]event.Part, error) {
			if runs.Add(1) == 1 {
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []event.Part{event.Text("ran")}, nil
		}}
		a := &flow.Agent[notes]{Name: "shop", Log: log, Turn: flow.Chat[notes](answerWith(&calls), flow.Request{}, tool)}
		ctx, stop := context.WithCancel(t.Context())
		c, err := a.Start(ctx, flow.Session("s"))
		if err != nil {
			t.Fatal(err)
		}
		c.SendText("A1")
		<-begun
		stop()
		<-c.Done()
		info, err := flow.Info(t.Context(), log, "s")
		if err != nil || len(info.Effects) != 1 {
			t.Fatalf("%v %+v", err, info.Effects)
		}
		if _, err := flow.Reconcile(t.Context(), log, "s", info.Effects[0].Key, o); err != nil {
			t.Fatal(err)
		}
		out, err := a.Run(t.Context(), flow.Session("s"))
		if err != nil || out.Message.Text() != want {
			t.Errorf("%v: %+v, want %q", err, out.Message, want)
		}
	}
}

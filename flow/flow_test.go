package flow_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

type notes struct{ Count int }

func TestATurnRunsItsEffectsOnce(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	ran := 0
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		v, err := flow.Do(ctx, t, flow.Effect{Name: "one", Arguments: 7}, func(ctx context.Context) (string, error) {
			ran++
			return fmt.Sprint("v", ran), flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
		})
		if err != nil {
			return err
		}
		if err := t.Update(func(n *notes) error { n.Count += 10; return nil }); err != nil {
			return err
		}
		return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("said " + v)}})
	}}
	for i := range 3 {
		out, err := a.Run(t.Context(), "s", flow.Text("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if ran != i+1 || out.Custom.Count != 11*(i+1) || out.Message.Text() != fmt.Sprint("said v", i+1) || out.Status != flow.StatusFinished {
			t.Fatalf("%d: ran %d, %+v", i, ran, out)
		}
	}
	for e, err := range log.Read(t.Context(), "s", eventlog.All()) {
		t.Log(e.Seq, e.Type, string(e.Data), err)
	}
}

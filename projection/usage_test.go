package projection_test

import (
	"math"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// A turn's usage is that of its answers; in a fork too, whose parent had them.
func TestATurnThatAForkEndsIsNotCountedAgain(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		start := event.New(event.TurnStart{})
		used := event.Usage{OutputTokens: 5}
		g.append("s", start)
		g.append("s", event.New(event.StepStart{TurnID: start.ID}))
		g.append("s", event.New(event.StepCompletion{TurnID: start.ID, Usage: used}))
		_, err := fork.At(bg, g.log, "s", fork.Head(), fork.Options{ID: "f", Force: true})
		g.allow(err)
		end := event.TurnCompletion{TurnID: start.ID, Status: event.TurnStatusCompleted, Usage: used}
		g.append("f", event.New(end))
		for name, want := range map[string]int64{"s": 5, "f": 0} {
			cost, err := projection.LoadCost(bg, g.log, name)
			g.allow(err)
			run, err := projection.LoadRuns(bg, g.log, name)
			g.allow(err)
			same(t, "output of "+name, []int64{want, want}, []int64{cost.Own.Usage.OutputTokens, run.Totals.Own.Usage.OutputTokens})
		}
	})
}

// The pieces of an answer that have one response id count once, redacted or not.
func TestARedactedAnswerCountsOnce(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		for range 2 {
			m := event.Message{Role: event.Assistant, ResponseID: "r", Usage: event.Usage{OutputTokens: 5}, Parts: []event.Part{event.Text("so")}}
			g.append("s", event.New(m))
		}
		for _, seqs := range [][]int64{nil, {1}, {2}} {
			if seqs != nil {
				_, err := erase.Redact(bg, g.log, "s", seqs, erase.RedactOptions{Reason: "test"})
				g.allow(err)
			}
			cost, err := projection.LoadCost(bg, g.log, "s")
			g.allow(err)
			same(t, "output", int64(5), cost.Own.Usage.OutputTokens)
		}
	})
}

// Sums that no number can hold are the largest one, and never less than what they
// are of: also those that a snapshot holds.
func TestSumsDoNotOverflow(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		const most = math.MaxInt64
		for range 3 {
			e := event.New(event.Message{Role: event.Assistant, Usage: event.Usage{InputTokens: most, OutputTokens: 1},
				Parts: []event.Part{event.Text("so")}})
			e.Cost = most
			g.append("s", e)
		}
		want := projection.Spend{Cost: most, Usage: event.Usage{InputTokens: most, OutputTokens: 3}, Responses: 3}
		for range 2 {
			usage, err := projection.Load(bg, g.log, "s", projection.Usage)
			g.allow(err)
			cost, err := projection.LoadCost(bg, g.log, "s")
			g.allow(err)
			run, err := projection.LoadRuns(bg, g.log, "s")
			g.allow(err)
			same(t, "sums", []projection.Spend{want, want, want}, []projection.Spend{usage.State.Total, cost.Own, run.Totals.Own})
			v, err := projection.Resume(bg, g.log, "s", projection.Session)
			g.allow(err)
			_, _, err = v.Snapshot(bg, projection.Request{Body: true})
			g.allow(err)
		}
	})
}

package stats_test

import (
	"math"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/erase"
)

// A turn's usage is the usage of its answers, also in a fork whose parent has the
// answers.
func TestATurnThatAForkEndsIsNotCountedAgain(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		start := event.New(event.TurnStart{})
		used := event.Usage{OutputTokens: 5}
		g.Append("s", start)
		g.Append("s", event.New(event.StepStart{TurnID: start.ID}))
		g.Append("s", event.New(event.StepCompletion{TurnID: start.ID, Usage: used}))
		_, err := fork.At(garden.Bg, g.Log, "s", fork.Head(), fork.Options{ID: "f", Force: true})
		g.Allow(err)
		end := event.TurnCompletion{TurnID: start.ID, Status: event.TurnStatusCompleted, Usage: used}
		g.Append("f", event.New(end))
		for name, want := range map[string]int64{"s": 5, "f": 0} {
			cost, err := stats.LoadCost(garden.Bg, g.Log, name)
			g.Allow(err)
			run, err := runlog.Load(garden.Bg, g.Log, name)
			g.Allow(err)
			garden.Same(t, "output of "+name, []int64{want, want}, []int64{cost.Own.Usage.OutputTokens, run.Totals.Own.Usage.OutputTokens})
		}
	})
}

// The pieces of an answer that have one response id count once, redacted or not.
func TestARedactedAnswerCountsOnce(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		for range 2 {
			m := event.Message{Role: event.Assistant, ResponseID: "r", Usage: event.Usage{OutputTokens: 5}, Parts: []event.Part{event.Text("so")}}
			g.Append("s", event.New(m))
		}
		for _, seqs := range [][]int64{nil, {1}, {2}} {
			if seqs != nil {
				_, err := erase.Redact(garden.Bg, g.Log, "s", seqs, erase.RedactOptions{Reason: "test"})
				g.Allow(err)
			}
			cost, err := stats.LoadCost(garden.Bg, g.Log, "s")
			g.Allow(err)
			garden.Same(t, "output", int64(5), cost.Own.Usage.OutputTokens)
		}
	})
}

// A sum that overflows is the largest number, and never less than its parts, also
// from a snapshot.
func TestSumsDoNotOverflow(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		const most = math.MaxInt64
		for range 3 {
			e := event.New(event.Message{Role: event.Assistant, Usage: event.Usage{InputTokens: most, OutputTokens: 1},
				Parts: []event.Part{event.Text("so")}})
			e.Cost = most
			g.Append("s", e)
		}
		want := projection.Spend{Cost: most, Usage: event.Usage{InputTokens: most, OutputTokens: 3}, Responses: 3}
		for range 2 {
			usage, err := projection.Load(garden.Bg, g.Log, "s", projection.Usage())
			g.Allow(err)
			cost, err := stats.LoadCost(garden.Bg, g.Log, "s")
			g.Allow(err)
			run, err := runlog.Load(garden.Bg, g.Log, "s")
			g.Allow(err)
			garden.Same(t, "sums", []projection.Spend{want, want, want}, []projection.Spend{usage.State.Total, cost.Own, run.Totals.Own})
			v, err := projection.Resume(garden.Bg, g.Log, "s", projection.Session())
			g.Allow(err)
			_, _, err = v.Snapshot(garden.Bg, projection.Request{Body: true})
			g.Allow(err)
		}
	})
}

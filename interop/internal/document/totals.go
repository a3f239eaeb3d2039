package document

import (
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// usage is the usage that an event records.
type usage struct {
	seq   int64
	usage event.Usage
	cost  event.Cost
}

// total is the rest of a total, after a node.
type total struct {
	after        int64
	model, agent string
	counts       [5]int64
	cost         event.Cost
}

func totalOf(n *node, step *event.StepCompletion, cost event.Cost) total {
	u := &step.Usage
	return total{n.seq, step.Model, step.Agent, [5]int64{
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens,
	}, cost}
}

// addTotals adds a step_completed with the part of the totals that the events of
// the active path do not account for. It adds none if an event with usage was
// redacted: the part is unknown then.
func (a *adding) addTotals() error {
	if a.s.usageErased {
		return nil
	}
	rest, ok := a.doc.Totals.less(a.s.activeTotals())
	if !ok || !a.s.trail.Holds(a.last) {
		return nil
	}
	step := event.StepCompletion{Model: rest.Model, Agent: rest.Agent, Usage: rest.Usage}
	known := totalOf(a.s.tree.at(a.last), &step, rest.Cost)
	if a.s.totals[known] {
		return nil
	}
	e, err := a.doc.Rec.Event(0, step)
	if err != nil {
		return err
	}
	a.s.totals[known] = true
	a.s.add(sessions.Key{Part: totalsPart}, &Item{At: a.time(time.Time{}), Cost: rest.Cost}, e, step)
	return nil
}

// activeTotals is the usage on the active path.
func (s *session) activeTotals() (sum Totals) {
	for _, u := range s.usages {
		if s.trail.Holds(u.seq) {
			sum.Usage = sum.Usage.Add(u.usage)
			sum.Cost = sum.Cost.Add(u.cost)
		}
	}
	return sum
}

// less is t without b, never below zero; ok is false if nothing remains.
func (t *Totals) less(b Totals) (rest Totals, ok bool) {
	rest = Totals{Model: t.Model, Agent: t.Agent, Cost: max(0, t.Cost-b.Cost), Usage: event.Usage{
		InputTokens:      max(0, t.Usage.InputTokens-b.Usage.InputTokens),
		OutputTokens:     max(0, t.Usage.OutputTokens-b.Usage.OutputTokens),
		CacheReadTokens:  max(0, t.Usage.CacheReadTokens-b.Usage.CacheReadTokens),
		CacheWriteTokens: max(0, t.Usage.CacheWriteTokens-b.Usage.CacheWriteTokens),
		ReasoningTokens:  max(0, t.Usage.ReasoningTokens-b.Usage.ReasoningTokens),
	}}
	return rest, !rest.isZero()
}

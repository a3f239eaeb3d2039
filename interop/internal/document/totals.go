package document

import (
	"time"

	"github.com/convlog/convlog/event"
)

// usage is the usage that an event records.
type usage struct {
	seq   int64
	usage event.Usage
	cost  event.Cost
}

// addTotals adds a step_completed with the part of the totals that the events of
// the active path do not account for. It adds none if an event with usage was
// redacted: the part is unknown then.
func (a *adding) addTotals() error {
	if a.s.usageErased {
		return nil
	}
	rest, ok := a.doc.Totals.less(a.s.activeTotals())
	if !ok || !a.s.trail.Holds(a.last.seq) {
		return nil
	}
	step := event.StepCompletion{Model: rest.Model, Agent: rest.Agent, Usage: rest.Usage}
	e, err := a.doc.Rec.Event(0, step)
	if err != nil {
		return err
	}
	key := a.last.chain.then(event.DigestOf(e.Data)).key(a.s.ID)
	if _, ok := a.s.Find(key); !ok {
		a.s.add(key, &Item{At: a.time(time.Time{}), Cost: rest.Cost}, e, step)
	}
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

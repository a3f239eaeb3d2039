// Package estimate adds estimates of costs to the charges of a session.
package estimate

import (
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Func estimates the cost of an answer. It is false if the answer has no estimate.
type Func func(model string, at time.Time, u event.Usage) (event.Cost, bool)

// Estimator estimates the costs of the unpriced answers of one session.
type Estimator struct {
	// Cost estimates the cost of an answer; nil estimates nothing.
	Cost Func

	answers map[string]event.Cost // the estimates of the newest answers
	order   []string              // their ids, the newest last; an id may repeat
}

// newestAnswers is how many answers an Estimator keeps: more than a projection.Meter can charge
// again.
const newestAnswers = 128

// keep keeps the estimate of an answer.
func (x *Estimator) keep(id string, cost event.Cost) {
	if x.answers == nil {
		x.answers = map[string]event.Cost{}
	}
	x.answers[id] = cost
	if x.order = append(x.order, id); len(x.order) < 4*newestAnswers {
		return
	}
	newest := map[string]event.Cost{}
	first := len(x.order)
	for ; first > 0 && len(newest) < newestAnswers; first-- {
		if cost, ok := x.answers[x.order[first-1]]; ok {
			newest[x.order[first-1]] = cost
		}
	}
	x.answers, x.order = newest, slices.Clone(x.order[first:])
}

// Add adds the change of the estimate to the charge of an event. A later piece of an
// answer corrects the estimate of the earlier pieces, and a cost takes it back.
func (x *Estimator) Add(e *event.Event, c *projection.Charge) {
	a := &c.Response
	if x.Cost == nil || a.ID == "" {
		return
	}
	before, estimated := x.answers[a.ID]
	if estimated && c.Responses > 0 { // a new answer of the same id
		before, estimated = 0, false
	}
	if estimated {
		c.Estimate, c.Estimated = -before, -1
		delete(x.answers, a.ID)
	}
	if a.Priced || a.Usage.IsZero() {
		return
	}
	cost, known := x.Cost(c.Model, e.Timestamp, a.Usage)
	if !known {
		return
	}
	x.keep(a.ID, cost)
	c.Estimate, c.Estimated = c.Estimate.Add(cost), c.Estimated+1
}

// WithoutDebt is a spend for display. A cost that follows an answer on another day, or in
// another turn, takes the estimate of the answer back there: no estimate is below zero.
func WithoutDebt(s projection.Spend) projection.Spend {
	s.Estimate, s.Estimated = max(s.Estimate, 0), max(s.Estimated, 0)
	return s
}

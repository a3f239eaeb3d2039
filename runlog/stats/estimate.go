package stats

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
)

// estimator estimates the costs of the unpriced answers of one session. Without prices
// it estimates none.
type estimator struct {
	prices  *prices.Table
	answers map[string]event.Cost // the estimates of answers
}

// estimate adds the change of the estimate to the charge of an event. A later piece of an
// answer corrects the estimate of the earlier pieces, and a cost takes it back.
func (x *estimator) estimate(e *event.Event, c *projection.Charge) {
	a := &c.Response
	if x.prices == nil || a.ID == "" {
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
	cost, known := x.prices.Cost(c.Model, e.Timestamp, a.Usage)
	if !known {
		return
	}
	if x.answers == nil {
		x.answers = map[string]event.Cost{}
	}
	x.answers[a.ID] = cost
	c.Estimate, c.Estimated = c.Estimate.Add(cost), c.Estimated+1
}

// withoutDebt is a spend for display. A cost that follows an answer on another day, or in
// another turn, takes the estimate of the answer back there: no estimate is below zero.
func withoutDebt(s projection.Spend) projection.Spend {
	s.Estimate, s.Estimated = max(s.Estimate, 0), max(s.Estimated, 0)
	return s
}

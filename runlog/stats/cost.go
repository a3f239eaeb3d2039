package stats

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/internal/estimate"
	"github.com/convlog/convlog/runlog/internal/turns"
)

// CostReport is the spend of a session in several splits. projection.Usage describes
// how tokens are counted.
type CostReport struct {
	Session string `json:"session"`
	// Own is the spend of the session's own events, orphaned events included. It
	// leaves out the prefix that a fork shares, and inherited events of a copy.
	// Orphaned is the part of Own off the active path.
	Own      projection.Spend `json:"own"`
	Orphaned projection.Spend `json:"orphaned,omitzero"`
	// Path is the spend on the active path, and Inherited the part of it that is
	// inherited. Do not add Path over sessions: forks share events.
	Path      projection.Spend `json:"path"`
	Inherited projection.Spend `json:"inherited,omitzero"`
	// ByModel and ByAgent split Own. The empty name is spend without a model or
	// agent.
	ByModel map[string]projection.Spend `json:"by_model,omitzero"`
	ByAgent map[string]projection.Spend `json:"by_agent,omitzero"`
	// Turns split Own by turn, in order. They leave out the spend outside of any
	// turn.
	Turns []TurnSpend `json:"turns,omitzero"`
	// Reported is the cost of the session and its sub-agents as the program computed it; 0
	// if the log does not have it.
	Reported event.Cost `json:"reported,omitzero"`
}

// TurnSpend is the spend of a turn.
type TurnSpend struct {
	// TurnID is the id of the turn_started event. It is zero if a user message begins
	// the turn.
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	Index  int       `json:"index"`
	// Seq is the seq of the turn's first event.
	Seq int64 `json:"seq"`
	// Orphaned reports that no spend of the turn is on the active path.
	Orphaned         bool `json:"orphaned,omitzero"`
	projection.Spend `json:",inline"`
}

// CostOptions configure LoadCost and LoadTreeCost. The zero value estimates nothing.
type CostOptions struct {
	// Prices estimate the costs of unpriced answers; see projection.Spend.Estimate.
	Prices *prices.Table
	// NoTurns leaves out CostReport.Turns. Without them, the memory of LoadCost does not
	// grow with the session.
	NoTurns bool
}

// LoadCost reads a session and returns its costs. At most one CostOptions is used. Load
// lists the errors.
func LoadCost(ctx context.Context, log *eventlog.Log, session string, opts ...CostOptions) (CostReport, error) {
	var o CostOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	path, err := log.Path(ctx, session, 0)
	if err != nil {
		return CostReport{}, fmt.Errorf("cost of session %q: %w", session, err)
	}
	c := costs{report: CostReport{Session: session}, path: turns.NewPath(path), noTurns: o.NoTurns}
	c.guess.Cost, c.guessPath.Cost = costOf(o.Prices), costOf(o.Prices)
	for e, err := range log.Read(ctx, session, eventlog.Between(0, path[len(path)-1].To).Transient()) {
		if err == nil {
			err = c.read(e.Effective())
		}
		if err != nil {
			return CostReport{}, fmt.Errorf("cost of session %q: %w", session, err)
		}
	}
	return c.done(), nil
}

// costOf estimates with a table; nil if there is none.
func costOf(table *prices.Table) estimate.Func {
	if table == nil {
		return nil
	}
	return table.Cost
}

// costs folds a lineage once, oldest event first.
type costs struct {
	report CostReport
	path   turns.Path

	noTurns   bool
	counted   projection.Meter // of the own events
	guess     estimate.Estimator
	all       projection.Meter // of the active path
	guessPath estimate.Estimator
	turns     turns.Finder
	byTurn    map[*turns.Turn]*TurnSpend
}

func (c *costs) read(e *event.Event) error {
	inherited := e.SessionID != c.report.Session || e.Inherited()
	onPath := c.path.Has(e.Seq)
	at, err := c.turn(e)
	if err != nil {
		return err
	}
	if cost, ok := estimate.Reported(e); ok && !inherited {
		c.report.Reported = cost
	}
	err = c.counted.Read(e, inherited, func(x projection.Charge) {
		c.guess.Add(e, &x)
		c.addOwn(x)
		if !onPath {
			c.report.Orphaned = c.report.Orphaned.Add(x.Spend)
		}
		c.charge(at, x.Spend, onPath)
	})
	if err != nil || !onPath {
		return err
	}
	return c.all.Read(e, false, func(x projection.Charge) {
		c.guessPath.Add(e, &x)
		c.report.Path = c.report.Path.Add(x.Spend)
		if inherited {
			c.report.Inherited = c.report.Inherited.Add(x.Spend)
		}
	})
}

// turn returns the turn of an event; nil outside of any turn.
func (c *costs) turn(e *event.Event) (*turns.Turn, error) {
	if c.noTurns {
		return nil, nil
	}
	ended, err := c.turns.Next(e)
	at := c.turns.Turn()
	if ended {
		c.turns.End(e.Seq)
	}
	return at, err
}

// addOwn adds a charge to the own spend, and to its splits.
func (c *costs) addOwn(x projection.Charge) {
	r := &c.report
	r.Own = r.Own.Add(x.Spend)
	r.ByModel = addSpend(r.ByModel, x.Model, x.Spend)
	r.ByAgent = addSpend(r.ByAgent, x.Agent, x.Spend)
}

// addSpend adds a spend to the one of a name. A sum of nothing has no name.
func addSpend(to map[string]projection.Spend, name string, s projection.Spend) map[string]projection.Spend {
	if to == nil {
		to = map[string]projection.Spend{}
	}
	if to[name] = to[name].Add(s); to[name].IsZero() {
		delete(to, name)
	}
	return to
}

// charge adds spend to a turn; nil is outside of any turn.
func (c *costs) charge(t *turns.Turn, s projection.Spend, onPath bool) {
	if t == nil {
		return
	}
	x := c.byTurn[t]
	if in := c.byTurn[t.Input]; x == nil && in != nil && !(onPath && in.Orphaned) {
		x = in // the exchange becomes the turn
		delete(c.byTurn, t.Input)
	}
	if x == nil {
		if c.byTurn == nil {
			c.byTurn = map[*turns.Turn]*TurnSpend{}
		}
		x = &TurnSpend{Orphaned: true}
	}
	c.byTurn[t] = x
	x.TurnID, x.Index, x.Seq = t.ID, t.Index, t.Start
	x.Spend = x.Add(s)
	x.Orphaned = x.Orphaned && !onPath
}

func (c *costs) done() CostReport {
	r := c.report
	r.Orphaned, r.Inherited = estimate.WithoutDebt(r.Orphaned), estimate.WithoutDebt(r.Inherited)
	for _, split := range []map[string]projection.Spend{r.ByModel, r.ByAgent} {
		for name, s := range split {
			split[name] = estimate.WithoutDebt(s)
		}
	}
	for _, t := range c.byTurn {
		t.Spend = estimate.WithoutDebt(t.Spend)
		r.Turns = append(r.Turns, *t)
	}
	slices.SortFunc(r.Turns, func(a, b TurnSpend) int { return cmp.Compare(a.Seq, b.Seq) })
	return r
}

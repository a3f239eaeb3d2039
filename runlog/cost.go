package runlog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
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

// LoadCost reads a session and returns its costs. Load lists the errors.
func LoadCost(ctx context.Context, log *eventlog.Log, session string) (CostReport, error) {
	path, err := log.Path(ctx, session, 0)
	if err != nil {
		return CostReport{}, fmt.Errorf("cost of session %q: %w", session, err)
	}
	c := costs{report: CostReport{Session: session}, path: pathCursor{path}}
	for e, err := range log.Read(ctx, session, eventlog.Between(0, path[len(path)-1].To)) {
		if err == nil {
			err = c.read(e.Effective())
		}
		if err != nil {
			return CostReport{}, fmt.Errorf("cost of session %q: %w", session, err)
		}
	}
	return c.done(), nil
}

// costs folds a lineage once, oldest event first.
type costs struct {
	report CostReport
	path   pathCursor

	own     projection.UsageState
	counted projection.Meter // of the own events
	all     projection.Meter // of the active path
	turns   turnFinder
	byTurn  map[*foundTurn]*TurnSpend
}

func (c *costs) read(e *event.Event) error {
	inherited := e.SessionID != c.report.Session || e.Inherited()
	onPath := c.path.has(e.Seq)
	ended, err := c.turns.next(e)
	if err != nil {
		return err
	}
	at := c.turns.turn
	if ended {
		c.turns.end(e.Seq)
	}
	if err := projection.Usage().Apply(&c.own, e); err != nil {
		return err
	}
	err = c.counted.Read(e, inherited, func(x projection.Charge) {
		if !onPath {
			c.report.Orphaned = c.report.Orphaned.Add(x.Spend)
		}
		c.charge(at, x.Spend, onPath)
	})
	if err != nil || !onPath {
		return err
	}
	return c.all.Read(e, false, func(x projection.Charge) {
		c.report.Path = c.report.Path.Add(x.Spend)
		if inherited {
			c.report.Inherited = c.report.Inherited.Add(x.Spend)
		}
	})
}

// charge adds spend to a turn; nil is outside of any turn.
func (c *costs) charge(t *foundTurn, s projection.Spend, onPath bool) {
	if t == nil {
		return
	}
	x := c.byTurn[t]
	if in := c.byTurn[t.input]; x == nil && in != nil && !(onPath && in.Orphaned) {
		x = in // the exchange becomes the turn
		delete(c.byTurn, t.input)
	}
	if x == nil {
		if c.byTurn == nil {
			c.byTurn = map[*foundTurn]*TurnSpend{}
		}
		x = &TurnSpend{Orphaned: true}
	}
	c.byTurn[t] = x
	x.TurnID, x.Index, x.Seq = t.id, t.index, t.start
	x.Spend = x.Add(s)
	x.Orphaned = x.Orphaned && !onPath
}

func (c *costs) done() CostReport {
	r := c.report
	r.Own, r.ByModel, r.ByAgent = c.own.Total, c.own.ByModel, c.own.ByAgent
	for _, t := range c.byTurn {
		r.Turns = append(r.Turns, *t)
	}
	slices.SortFunc(r.Turns, func(a, b TurnSpend) int { return cmp.Compare(a.Seq, b.Seq) })
	return r
}

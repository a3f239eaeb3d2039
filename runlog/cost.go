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

// CostReport is what a session has spent, seen from several sides. How tokens
// are counted is said at Usage.
type CostReport struct {
	Session string `json:"session"`
	// Own is what the session's own events cost, orphaned ones included; neither
	// a fork's shared prefix nor what a copy inherited. Orphaned is the part of
	// it that is not on the active path.
	Own      projection.Spend `json:"own"`
	Orphaned projection.Spend `json:"orphaned,omitzero"`
	// Path is what is on the active path, with the part of it that is Inherited:
	// a view of its own, never to be added up over sessions.
	Path      projection.Spend `json:"path"`
	Inherited projection.Spend `json:"inherited,omitzero"`
	// ByModel and ByAgent split Own; the empty name is what names none.
	ByModel map[string]projection.Spend `json:"by_model,omitzero"`
	ByAgent map[string]projection.Spend `json:"by_agent,omitzero"`
	// Turns split Own, in order; the part of it outside of any turn is not among
	// them.
	Turns []TurnSpend `json:"turns,omitzero"`
}

// TurnSpend is what a turn spent.
type TurnSpend struct {
	// TurnID is that of the turn_started; zero where a turn begins with a message
	// of the user's.
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	Index  int       `json:"index"`
	// Seq is that of the event it begins with.
	Seq int64 `json:"seq"`
	// Orphaned says that nothing it spent is on the active path.
	Orphaned         bool `json:"orphaned,omitzero"`
	projection.Spend `json:",inline"`
}

// LoadCost reads a session and reports what it has spent. See Load for the
// errors.
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

// costs reads a lineage once, oldest first.
type costs struct {
	report CostReport
	path   pathCursor

	own   projection.UsageState
	mine  projection.Meter // of what the session counts
	all   projection.Meter // of the whole path
	turns turnFinder
	spent map[*foundTurn]*TurnSpend
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
	err = c.mine.Read(e, inherited, func(x projection.Charge) {
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

// charge counts for a turn; nil is none.
func (c *costs) charge(t *foundTurn, s projection.Spend, onPath bool) {
	if t == nil {
		return
	}
	x := c.spent[t]
	if in := c.spent[t.input]; x == nil && in != nil && !(onPath && in.Orphaned) {
		x = in // the exchange becomes the turn that took it over
		delete(c.spent, t.input)
	}
	if x == nil {
		if c.spent == nil {
			c.spent = map[*foundTurn]*TurnSpend{}
		}
		x = &TurnSpend{Orphaned: true}
	}
	c.spent[t] = x
	x.TurnID, x.Index, x.Seq = t.id, t.index, t.start
	x.Spend = x.Add(s)
	x.Orphaned = x.Orphaned && !onPath
}

func (c *costs) done() CostReport {
	r := c.report
	r.Own, r.ByModel, r.ByAgent = c.own.Total, c.own.ByModel, c.own.ByAgent
	for _, t := range c.spent {
		r.Turns = append(r.Turns, *t)
	}
	slices.SortFunc(r.Turns, func(a, b TurnSpend) int { return cmp.Compare(a.Seq, b.Seq) })
	return r
}

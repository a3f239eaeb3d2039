package answers

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/upkeep/verify"
)

// StateNames are the names of StateSet.
func StateNames() []string { return append([]string{projection.Session().Name}, projection.Names()...) }

// StateSet is the set of projections with that name. "session" is the set of a resumed session;
// any other set has one projection. The error of another name is projection.ErrUnknownProjection.
func StateSet(name string) (projection.Set, error) {
	if name == projection.Session().Name {
		return projection.Session(), nil
	}
	part, err := projection.ByName(name)
	if err != nil {
		return projection.Set{}, err
	}
	return projection.Of("", part), nil
}

// State is the state of the set's only projection, or an object with the states of all its
// projections.
func State(l *projection.Loaded, set projection.Set) (jsontext.Value, error) {
	states := map[string]jsontext.Value{}
	for _, part := range set.Parts {
		name := part.ProjectionName()
		state, err := projection.StateJSON(l, name)
		if err != nil || len(set.Parts) == 1 {
			return state, err
		}
		states[name] = state
	}
	return json.Marshal(states, json.Deterministic(true))
}

// Message is a message of a history.
type Message struct {
	Seq     int64         `json:"seq,omitzero"`
	Seqs    []int64       `json:"seqs,omitzero"`
	Context string        `json:"context,omitzero"`
	Made    string        `json:"made,omitzero"`
	Message event.Message `json:"message"`
}

// NewMessage is the JSON of an entry of a history.
func NewMessage(e *projection.Entry) Message {
	return Message{e.Seq, e.Seqs, e.Context, e.Made, e.Message}
}

// Cost is the cost of a session, and of the sessions below it.
type Cost struct {
	stats.CostReport `json:",inline"`
	Tree             stats.TreeCost `json:"tree"`
}

// LoadCost reads the cost of a session.
func LoadCost(ctx context.Context, log *eventlog.Log, session string, opts stats.CostOptions) (c Cost, err error) {
	if c.CostReport, err = stats.LoadCost(ctx, log, session, opts); err != nil {
		return c, err
	}
	c.Tree, err = stats.LoadTreeCost(ctx, log, session, opts)
	return c, err
}

// Check is the result of a check of a session. Without a session, it has the defects of the store.
type Check struct {
	Session string            `json:"session"`
	Events  int64             `json:"events"`
	Defects []eventlog.Defect `json:"defects"`
	// Notes are no damage: for example torn tails.
	Notes []eventlog.Defect `json:"notes,omitzero"`
	// MoreDefects and MoreNotes count defects and notes that are not listed.
	MoreDefects int64 `json:"more_defects,omitzero"`
	MoreNotes   int64 `json:"more_notes,omitzero"`
	// Snapshots counts the states that were compared with a replay.
	Snapshots checkedSnapshots `json:"snapshots,omitzero"`
}

type checkedSnapshots struct {
	Checked int64 `json:"checked"`
	Skipped int64 `json:"skipped"`
}

// Damage is the number of defects.
func (c *Check) Damage() int64 { return int64(len(c.Defects)) + c.MoreDefects }

// NewCheck is the JSON of a report, and of the error of the session that ended its check.
func NewCheck(session string, report *verify.Report, err error) Check {
	c := Check{Session: session, Events: report.Events, Defects: report.Defects, Notes: report.Notes,
		MoreDefects: report.MoreDefects, MoreNotes: report.MoreNotes, Snapshots: checkedSnapshots{report.Checked, report.Skipped}}
	if err != nil {
		c.Defects = append(c.Defects, listing.Unreadable(session, err))
	}
	if c.Defects == nil {
		c.Defects = []eventlog.Defect{}
	}
	return c
}

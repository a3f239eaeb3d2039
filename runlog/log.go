package runlog

import (
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// Log is a run as a list of turns, for evaluation and offline analysis: inputs,
// outputs, tool calls and costs.
type Log struct {
	SessionID string     `json:"session"`
	Title     string     `json:"title,omitzero"`
	AgentID   string     `json:"agent_id,omitzero"`
	StartTime time.Time  `json:"started"`
	EndTime   time.Time  `json:"ended"`
	Status    OpStatus   `json:"status"`
	Turns     []LogTurn  `json:"turns"`
	ChildRuns []LogChild `json:"child_runs,omitzero"`
	// TotalCost is the cost of the session itself, and TreeCost the cost of the
	// session and its children. Unpriced and TreeUnpriced count the answers with
	// tokens and without a cost; both costs leave them out. The estimates are of some
	// of them; see projection.Spend.Estimate.
	TotalCost     event.Cost  `json:"total_cost"`
	Unpriced      int         `json:"unpriced,omitzero"`
	Estimate      event.Cost  `json:"estimate,omitzero"`
	Estimated     int         `json:"estimated,omitzero"`
	TreeCost      event.Cost  `json:"tree_cost"`
	TreeUnpriced  int         `json:"tree_unpriced,omitzero"`
	TreeEstimate  event.Cost  `json:"tree_estimate,omitzero"`
	TreeEstimated int         `json:"tree_estimated,omitzero"`
	Usage         event.Usage `json:"usage,omitzero"`
	// Reported is the cost of the session and its sub-agents as the program computed it.
	Reported event.Cost `json:"reported,omitzero"`
}

// LogTurn is a turn of a Log.
type LogTurn struct {
	TurnID    string           `json:"turn_id,omitzero"`
	Index     int              `json:"index"`
	Seq       int64            `json:"seq"`
	Timestamp time.Time        `json:"time"`
	Orphaned  bool             `json:"orphaned,omitzero"`
	Status    event.TurnStatus `json:"status,omitzero"`
	Error     string           `json:"error,omitzero"`
	Input     []event.Message  `json:"input"` // of the user
	Context   []event.Message  `json:"context,omitzero"`
	Output    *event.Message   `json:"output,omitzero"`
	Calls     []LogCall        `json:"tool_calls,omitzero"`
	Cost      event.Cost       `json:"cost"`
	Unpriced  int              `json:"unpriced,omitzero"` // answers without a cost
	Estimate  event.Cost       `json:"estimate,omitzero"`
	Estimated int              `json:"estimated,omitzero"` // of the unpriced answers
	Usage     event.Usage      `json:"usage,omitzero"`
}

// LogCall is a tool call and its result.
type LogCall struct {
	CallID    string         `json:"call_id"`
	Name      string         `json:"name"`
	Status    OpStatus       `json:"status"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Result    jsontext.Value `json:"result,omitzero"`
	Error     string         `json:"error,omitzero"`
	Attempts  []Attempt      `json:"attempts,omitzero"`
	Reviews   []Review       `json:"reviews,omitzero"`
}

// LogChild is a child run of a Log.
type LogChild struct {
	ChildID   string           `json:"child_id"`
	SessionID string           `json:"session,omitzero"`
	AgentID   string           `json:"agent_id,omitzero"`
	Mode      event.ChildMode  `json:"mode,omitzero"`
	Status    event.ChildState `json:"status"`
	Summary   string           `json:"summary,omitzero"`
	Run       *Log             `json:"run,omitzero"`
}

// Log returns the run as a Log, with orphaned turns and ops if orphaned is set.
func (r *Run) Log(orphaned bool) *Log {
	l := &Log{SessionID: r.Session, Title: r.Title, AgentID: r.Agent, StartTime: r.Started, EndTime: r.Ended, Status: r.Status,
		Turns: []LogTurn{}, Usage: r.Totals.Own.Usage, Reported: r.Totals.Reported}
	l.TotalCost, l.Unpriced, l.Estimate, l.Estimated = costs(r.Totals.Own)
	l.TreeCost, l.TreeUnpriced, l.TreeEstimate, l.TreeEstimated = costs(r.Totals.Tree)
	for _, t := range r.Turns {
		if orphaned || !t.Orphaned {
			l.Turns = append(l.Turns, t.log(orphaned))
		}
	}
	for op := range r.ops() {
		for _, c := range op.Children {
			child := LogChild{ChildID: c.ID, SessionID: c.SessionID, AgentID: c.Agent, Mode: c.Mode, Status: c.State, Summary: c.Summary}
			if c.Run != nil {
				child.Run = c.Run.Log(orphaned)
			}
			l.ChildRuns = append(l.ChildRuns, child)
		}
	}
	return l
}

func costs(s projection.Spend) (cost event.Cost, unpriced int, estimate event.Cost, estimated int) {
	return s.Cost, s.Unpriced, s.Estimate, s.Estimated
}

func (t *Turn) log(orphaned bool) LogTurn {
	l := LogTurn{Index: t.Index, Seq: t.From, Timestamp: t.Started, Orphaned: t.Orphaned, Status: t.Status, Error: t.Error,
		Input: t.Input, Context: t.Context, Output: t.Output, Usage: t.Spend.Usage}
	l.Cost, l.Unpriced, l.Estimate, l.Estimated = costs(t.Spend)
	if !t.ID.IsZero() {
		l.TurnID = t.ID.String()
	}
	if l.Input == nil {
		l.Input = []event.Message{}
	}
	for _, op := range t.Ops {
		if op.Kind == ToolOp && (orphaned || !op.Orphaned) {
			l.Calls = append(l.Calls, LogCall{CallID: op.ID, Name: op.Name, Status: op.Status, Arguments: op.Request,
				Result: op.Response, Error: op.Error, Attempts: op.Attempts, Reviews: op.Reviews})
		}
	}
	return l
}

// WriteJSON writes the log as indented JSON.
func (l *Log) WriteJSON(w io.Writer) error {
	return rawjson.WriteIndented(w, l)
}

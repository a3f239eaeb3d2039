package runlog

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// opTreeVersion is the version of the format of an op tree and of its file.
const opTreeVersion = 1

// OpTreeFile is the content of an op tree file. Times are milliseconds since 1970.
type OpTreeFile struct {
	Version   int    `json:"version"`
	Reason    string `json:"reason,omitzero"`
	SessionID string `json:"sessionId"`
	OriginID  string `json:"originId"`
	Timestamp int64  `json:"timestamp"`
	Snapshot  struct {
		Version int           `json:"version"`
		OpTree  OpTreeSession `json:"opTree"`
	} `json:"snapshot"`
}

// OpTreeSession is a session of an op tree.
type OpTreeSession struct {
	ID           string `json:"id"`
	AgentID      string `json:"agentId,omitzero"`
	SessionTitle string `json:"sessionTitle,omitzero"`
	StartedAt    int64  `json:"startedAt,omitzero"`
	EndedAt      int64  `json:"endedAt,omitzero"`
	Success      *bool  `json:"success,omitzero"`
	Error        string `json:"error,omitzero"`
	// State is the state of a child, as its parent recorded it, and InterruptIDs the reviews
	// that a blocked child waits for. The root has neither.
	State        event.ChildState `json:"state,omitzero"`
	InterruptIDs []string         `json:"interruptIds,omitzero"`
	Turns        []OpTreeTurn     `json:"turns"`
	Totals       Totals           `json:"totals"`
}

// OpTreeTurn is a turn of an op tree. The system turn has the ops outside of other
// turns.
type OpTreeTurn struct {
	ID         string        `json:"id,omitzero"`
	Index      int           `json:"index"`
	System     bool          `json:"system,omitzero"`
	Label      string        `json:"label,omitzero"`
	Orphaned   bool          `json:"orphaned,omitzero"`
	Status     string        `json:"status,omitzero"`
	StartedAt  int64         `json:"startedAt,omitzero"`
	EndedAt    int64         `json:"endedAt,omitzero"`
	Ops        []OpTreeOp    `json:"ops"`
	Pauses     []*Pause      `json:"pauses,omitzero"`
	Logs       []OpTreeLog   `json:"logs,omitzero"`
	Accounting []OpTreeEntry `json:"accounting,omitzero"`
}

// OpTreeOp is an op of an op tree, with the sessions of its children.
type OpTreeOp struct {
	OpID          string          `json:"opId"`
	Kind          OpKind          `json:"kind"`
	Name          string          `json:"name,omitzero"`
	StartedAt     int64           `json:"startedAt"`
	EndedAt       int64           `json:"endedAt,omitzero"`
	Status        string          `json:"status,omitzero"` // absent while it is open
	Error         string          `json:"error,omitzero"`
	Orphaned      bool            `json:"orphaned,omitzero"`
	Request       *OpTreePayload  `json:"request,omitzero"`
	Response      *OpTreePayload  `json:"response,omitzero"`
	Attempts      []Attempt       `json:"attempts,omitzero"`
	Reviews       []Review        `json:"reviews,omitzero"`
	Pauses        []*Pause        `json:"pauses,omitzero"`
	Logs          []OpTreeLog     `json:"logs,omitzero"`
	Accounting    []OpTreeEntry   `json:"accounting,omitzero"`
	ChildSessions []OpTreeSession `json:"childSessions,omitzero"`
}

// OpTreePayload is a recorded request or response.
type OpTreePayload struct {
	Payload jsontext.Value `json:"payload"`
}

// OpTreeLog is a log line of an op tree.
type OpTreeLog struct {
	Timestamp int64          `json:"timestamp"`
	Type      event.Type     `json:"type"`
	Severity  string         `json:"severity,omitzero"`
	Message   string         `json:"message,omitzero"`
	Value     jsontext.Value `json:"value,omitzero"`
	Body      event.BlobRef  `json:"body,omitzero"`
}

// OpTreeEntry is an accounting entry of an op tree.
type OpTreeEntry struct {
	Timestamp int64      `json:"timestamp"`
	Seq       int64      `json:"seq"`
	Model     string     `json:"model,omitzero"`
	AgentID   string     `json:"agentId,omitzero"`
	CostUSD   event.Cost `json:"costUsd,omitzero"`
	// EstimateUSD is an estimate of a cost that is not recorded.
	EstimateUSD event.Cost  `json:"estimateUsd,omitzero"`
	Tokens      event.Usage `json:"tokens,omitzero"`
}

// OpTree returns the run as an op tree. Child sessions are in the op that ran them.
func (r *Run) OpTree() OpTreeSession {
	s := OpTreeSession{ID: r.Session, AgentID: r.Agent, SessionTitle: r.Title, StartedAt: millis(r.Started), EndedAt: millis(r.Ended),
		Error: r.Error, Turns: []OpTreeTurn{}, Totals: r.Totals}
	if r.Status != OpOpen {
		success := r.Status == OpOK
		s.Success = &success
	}
	if len(r.Ops)+len(r.Logs)+len(r.Accounting) > 0 {
		s.Turns = append(s.Turns, OpTreeTurn{System: true, Label: "session", StartedAt: s.StartedAt, EndedAt: s.EndedAt,
			Ops: treeOps(r.Ops), Logs: treeLogs(r.Logs), Accounting: treeEntries(r.Accounting)})
	}
	for _, t := range r.Turns {
		turn := OpTreeTurn{Index: t.Index, Orphaned: t.Orphaned, Status: string(t.Status), StartedAt: millis(t.Started),
			EndedAt: millis(t.Ended), Ops: treeOps(t.Ops), Pauses: t.Pauses, Logs: treeLogs(t.Logs), Accounting: treeEntries(t.Accounting)}
		if !t.ID.IsZero() {
			turn.ID = t.ID.String()
		}
		s.Turns = append(s.Turns, turn)
	}
	return s
}

func treeOps(ops []*Op) []OpTreeOp {
	nodes := make([]OpTreeOp, 0, len(ops))
	for _, op := range ops {
		n := OpTreeOp{OpID: op.ID, Kind: op.Kind, Name: op.Name, StartedAt: millis(op.Started), EndedAt: millis(op.Ended), Error: op.Error,
			Orphaned: op.Orphaned, Request: treePayload(op.Request), Response: treePayload(op.Response), Attempts: op.Attempts, Reviews: op.Reviews, Pauses: op.Pauses, Logs: treeLogs(op.Logs),
			Accounting: treeEntries(op.Accounting)}
		if op.Status != OpOpen {
			n.Status = string(op.Status)
		}
		for _, c := range op.Children {
			if c.Run != nil {
				child := c.Run.OpTree()
				child.State, child.InterruptIDs = c.State, c.InterruptIDs
				n.ChildSessions = append(n.ChildSessions, child)
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func treePayload(v jsontext.Value) *OpTreePayload {
	if len(v) == 0 {
		return nil
	}
	return &OpTreePayload{Payload: v}
}

func treeLogs(lines []LogLine) (logs []OpTreeLog) {
	for _, l := range lines {
		logs = append(logs, OpTreeLog{Timestamp: millis(l.Time), Type: l.Type, Severity: l.Level, Message: l.Text, Value: l.Value, Body: l.Body})
	}
	return logs
}

func treeEntries(list []Accounting) (entries []OpTreeEntry) {
	for _, a := range list {
		entries = append(entries, OpTreeEntry{Timestamp: millis(a.Time), Seq: a.Seq, Model: a.Model, AgentID: a.Agent,
			CostUSD: a.Spend.Cost, EstimateUSD: a.Spend.Estimate, Tokens: a.Spend.Usage})
	}
	return entries
}

func millis(t time.Time) int64 {
	if event.Dated(t).IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// OpTreeOptions configure Run.OpTreeFile.
type OpTreeOptions struct {
	// Reason says why the file is written, for example subagent_finish or final.
	Reason string
	// OriginID is the root session of the tree; the session of the run if empty.
	OriginID string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// OpTreeFile returns the content of the op tree file of a run.
func (r *Run) OpTreeFile(opts ...OpTreeOptions) *OpTreeFile {
	var o OpTreeOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &OpTreeFile{Version: opTreeVersion, Reason: o.Reason, SessionID: r.Session, OriginID: cmp.Or(o.OriginID, r.Session),
		Timestamp: o.Now().UnixMilli()}
	f.Snapshot.Version, f.Snapshot.OpTree = opTreeVersion, r.OpTree()
	return f
}

// WriteJSON writes the file as indented JSON, without compression.
func (f *OpTreeFile) WriteJSON(w io.Writer) error { return rawjson.WriteIndented(w, f) }

// Write writes the file as gzip-compressed JSON.
func (f *OpTreeFile) Write(w io.Writer) error {
	if w == nil {
		return fmt.Errorf("write op tree: %w: the writer", event.ErrNilArgument)
	}
	z := gzip.NewWriter(w)
	if err := json.MarshalWrite(z, f, json.Deterministic(true), jsontext.PreserveRawStrings(true)); err != nil {
		return err
	}
	return z.Close()
}

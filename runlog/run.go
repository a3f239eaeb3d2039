package runlog

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Run is a session as a tree: turns, their ops, and the runs of child sessions below
// the ops.
type Run struct {
	Session string              `json:"session"`
	Title   string              `json:"title,omitzero"`
	Agent   string              `json:"agent,omitzero"`
	Fork    projection.ForkInfo `json:"fork,omitzero"`
	// Status is the status of the last turn on the active path: failed, open while
	// the turn is open, and ok otherwise. Error is the error of this turn.
	Status  OpStatus  `json:"status"`
	Error   string    `json:"error,omitzero"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Turns are in the order they began, orphaned turns included.
	Turns []*Turn `json:"turns,omitzero"`
	// Ops, Logs and Accounting are the entries outside of any turn.
	Ops        []*Op        `json:"ops,omitzero"`
	Logs       []LogLine    `json:"logs,omitzero"`
	Accounting []Accounting `json:"accounting,omitzero"`
	Totals     Totals       `json:"totals"`
}

// Totals are the sums over a run.
type Totals struct {
	Turns int `json:"turns"`
	// Responses is the number of answers in Own, so the op tree, costs and statistics
	// count the same answers.
	Responses int `json:"responses"`
	Tools     int `json:"tools"`
	Failed    int `json:"failed"` // ops
	Children  int `json:"children"`
	// Own is the spend of the session itself. Tree is the spend of the session and of
	// all child sessions below it, each counted once.
	Own  projection.Spend `json:"own"`
	Tree projection.Spend `json:"tree"`
	// Reported is the cost of the session and its sub-agents as the program computed it; 0
	// if the log does not have it.
	Reported event.Cost `json:"reported,omitzero"`
}

// Turn is a turn of a run.
type Turn struct {
	// ID is the id of the turn_started event. It is zero if a user message begins the
	// turn.
	ID    ulid.ULID `json:"id,omitzero"`
	Index int       `json:"index"`
	Agent string    `json:"agent,omitzero"`
	// From and To are the seqs of the first and the last event.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Orphaned reports that the first event is not on the active path. Inherited
	// reports that the turn is in the prefix that a fork shares, or was copied.
	Orphaned  bool `json:"orphaned,omitzero"`
	Inherited bool `json:"inherited,omitzero"`
	// Status says how the turn ended, and is empty while it is open. A turn that a user
	// message begins is completed if the assistant answered and no op is open.
	Status     event.TurnStatus `json:"status,omitzero"`
	StopReason string           `json:"stop_reason,omitzero"`
	Error      string           `json:"error,omitzero"`
	// Ended is the time of the newest message or part of an operation. Later records of a
	// program do not extend the turn.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// TookMS is the time of the turn as the program measured it, in milliseconds; 0 if the
	// log does not have it.
	TookMS int64 `json:"took_ms,omitzero"`
	// Input is the messages of the user, or the text of the external input that the turn
	// answers, if there are none. Context is the messages of other roles and
	// the messages for which IsContext is true. Output is the last message of the
	// assistant.
	Input   []event.Message `json:"input,omitzero"`
	Context []event.Message `json:"context,omitzero"`
	Output  *event.Message  `json:"output,omitzero"`
	Ops     []*Op           `json:"ops,omitzero"`
	// Pauses are the hibernations that waited for no op.
	Pauses []*Pause  `json:"pauses,omitzero"`
	Logs   []LogLine `json:"logs,omitzero"`
	// Accounting is the costs in the turn that belong to no op.
	Accounting []Accounting     `json:"accounting,omitzero"`
	Spend      projection.Spend `json:"spend"`

	ends    []turnEnd
	effects bool // the turn has effects, and model calls are among them

	external     string // the text of the external input that the turn answers
	outputOnPath bool
}

// OpKind is the kind of an Op.
type OpKind string

// The kinds of ops.
const (
	LLMOp    OpKind = "llm"
	ToolOp   OpKind = "tool"
	SystemOp OpKind = "system"
)

// OpStatus is the status of an op or a run.
type OpStatus string

// The statuses of ops and runs.
const (
	OpOpen   OpStatus = "open"
	OpOK     OpStatus = "ok"
	OpFailed OpStatus = "failed"
)

// Op is one operation of a turn: a model call, a tool run, or another operation.
type Op struct {
	// ID is the call id of a tool, the key of an effect, or the id of the op's first
	// event.
	ID     string   `json:"id"`
	Kind   OpKind   `json:"kind"`
	Name   string   `json:"name,omitzero"`
	Status OpStatus `json:"status"`
	Error  string   `json:"error,omitzero"`
	Seq    int64    `json:"seq"`
	// Orphaned reports that the first event is not on the active path.
	Orphaned bool      `json:"orphaned,omitzero"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	// Request and Response are the recorded payloads. Of an llm op both are arrays:
	// Request has the payloads of the step or effect that began it, Response the
	// payloads of the messages and the completion.
	Request  jsontext.Value `json:"request,omitzero"`
	Response jsontext.Value `json:"response,omitzero"`
	// Attempts are the attempts of an effect before the last one, and Reviews the
	// questions about it. Pauses are the hibernations that waited for the op.
	Attempts []Attempt `json:"attempts,omitzero"`
	Reviews  []Review  `json:"reviews,omitzero"`
	Pauses   []*Pause  `json:"pauses,omitzero"`
	// By is the person who recorded the result of an effect whose outcome was unknown,
	// and Reason why.
	By         string       `json:"by,omitzero"`
	Reason     string       `json:"reason,omitzero"`
	Logs       []LogLine    `json:"logs,omitzero"`
	Accounting []Accounting `json:"accounting,omitzero"`
	Children   []*ChildOp   `json:"children,omitzero"`

	requests  []jsontext.Value
	responses []jsontext.Value
	effect    bool // an effect_intended began the op
	hasResult bool // an effect_completed has its result
	stepped   bool // of an llm op: its step has completed
	attempt   int  // the newest attempt of the effect
	attempted time.Time
	began     int64 // the seq of its effect_intended
}

// ChildOp is a child run of an op.
type ChildOp struct {
	ID        string          `json:"id"`
	SessionID string          `json:"session_id,omitzero"`
	Agent     string          `json:"agent,omitzero"`
	Mode      event.ChildMode `json:"mode,omitzero"`
	// State is empty if the parent has only merged the child.
	State event.ChildState `json:"state"`
	// InterruptIDs are the reviews that a blocked child waits for.
	InterruptIDs []string `json:"interrupt_ids,omitzero"`
	Task         string   `json:"task,omitzero"`
	Summary      string   `json:"summary,omitzero"`
	Error        string   `json:"error,omitzero"`
	Merged       bool     `json:"merged,omitzero"`
	// Inherited reports that the child belongs to the session that this session was
	// forked or copied from.
	Inherited bool `json:"inherited,omitzero"`
	// Run is the run of the child. It is nil if the child has no session or was
	// inherited, if the session is Missing, and if the run is Elsewhere in the tree.
	Run       *Run `json:"run,omitzero"`
	Missing   bool `json:"missing,omitzero"`
	Elsewhere bool `json:"elsewhere,omitzero"`
}

// LogLine is an event that is not part of an op's request or response: an op_logged
// event, or another event.
type LogLine struct {
	Seq   int64      `json:"seq"`
	Time  time.Time  `json:"time"`
	Type  event.Type `json:"type"`
	Level string     `json:"level,omitzero"`
	Text  string     `json:"text,omitzero"`
	// Value is the payload of the event. Of an op_logged event it is the payload's
	// value, and Body its body.
	Value jsontext.Value `json:"value,omitzero"`
	Body  event.BlobRef  `json:"body,omitzero"`
}

// Accounting is the cost of one event. Of an answer without tokens it has the count only.
type Accounting struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Model string    `json:"model,omitzero"`
	Agent string    `json:"agent,omitzero"`
	// Spend is the change by this event. A later piece of an answer corrects the
	// usage of earlier pieces, so tokens can be negative.
	Spend projection.Spend `json:"spend"`
}

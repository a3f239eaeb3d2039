package runlog

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Run is everything that happened in a session as a tree: turns, what they did,
// and the runs of children below that.
type Run struct {
	Session string              `json:"session"`
	Title   string              `json:"title,omitzero"`
	Agent   string              `json:"agent,omitzero"`
	Fork    projection.ForkInfo `json:"fork,omitzero"`
	// Status is failed if the last turn on the active path failed, open while
	// one is under way, and ok otherwise. Error is that turn's.
	Status  OpStatus  `json:"status"`
	Error   string    `json:"error,omitzero"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Turns come in the order they began in, orphaned ones too.
	Turns []*Turn `json:"turns,omitzero"`
	// Ops, Logs and Accounting are what lies outside of any turn.
	Ops        []*Op        `json:"ops,omitzero"`
	Logs       []LogLine    `json:"logs,omitzero"`
	Accounting []Accounting `json:"accounting,omitzero"`
	Totals     Totals       `json:"totals"`
}

// Totals sum up a run.
type Totals struct {
	Turns     int `json:"turns"`
	Responses int `json:"responses"`
	Tools     int `json:"tools"`
	Failed    int `json:"failed"` // ops
	Children  int `json:"children"`
	// Own is what the session spent by itself, Tree with the children's sessions
	// below it, each once.
	Own  projection.Spend `json:"own"`
	Tree projection.Spend `json:"tree"`
}

// Turn is a turn of a run.
type Turn struct {
	// ID is that of the turn_started; zero where a turn begins with a message of
	// the user's.
	ID    ulid.ULID `json:"id,omitzero"`
	Index int       `json:"index"`
	Agent string    `json:"agent,omitzero"`
	// From and To are the seqs of its first and last event.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Orphaned says that its beginning is not on the active path, Inherited that
	// it belongs to what a fork or a copy shares.
	Orphaned  bool `json:"orphaned,omitzero"`
	Inherited bool `json:"inherited,omitzero"`
	// Status is that of its turn_completed; without one, completed when the
	// assistant has answered and nothing is open, empty while it is open.
	Status     event.TurnStatus `json:"status,omitzero"`
	StopReason string           `json:"stop_reason,omitzero"`
	Error      string           `json:"error,omitzero"`
	Started    time.Time        `json:"started"`
	Ended      time.Time        `json:"ended"`
	// Input is what the user asked, Context what else the model was told: messages
	// of other roles, and those that IsContext tells. Output is the last thing
	// that the turn said.
	Input   []event.Message `json:"input,omitzero"`
	Context []event.Message `json:"context,omitzero"`
	Output  *event.Message  `json:"output,omitzero"`
	Ops     []*Op           `json:"ops,omitzero"`
	Logs    []LogLine       `json:"logs,omitzero"`
	// Accounting is what cost something and belongs to no op.
	Accounting []Accounting     `json:"accounting,omitzero"`
	Spend      projection.Spend `json:"spend"`
}

// OpKind says what an Op is.
type OpKind string

// The kinds of ops.
const (
	LLMOp    OpKind = "llm"
	ToolOp   OpKind = "tool"
	SystemOp OpKind = "system"
)

// OpStatus says how far an op is.
type OpStatus string

// The states of ops and runs.
const (
	OpOpen   OpStatus = "open"
	OpOK     OpStatus = "ok"
	OpFailed OpStatus = "failed"
)

// Op is something that a turn did: it asked a model, ran a tool, or something
// else.
type Op struct {
	// ID is the call id of a tool, the key of an effect, or the id of the event
	// that began it.
	ID     string   `json:"id"`
	Kind   OpKind   `json:"kind"`
	Name   string   `json:"name,omitzero"`
	Status OpStatus `json:"status"`
	Error  string   `json:"error,omitzero"`
	Seq    int64    `json:"seq"`
	// Orphaned says that its beginning is not on the active path.
	Orphaned bool      `json:"orphaned,omitzero"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	// Request and Response are as they were recorded, whole. Those of an llm op
	// are arrays of payloads: the step or effect that began it, and messages and
	// the completion.
	Request    jsontext.Value `json:"request,omitzero"`
	Response   jsontext.Value `json:"response,omitzero"`
	Logs       []LogLine      `json:"logs,omitzero"`
	Accounting []Accounting   `json:"accounting,omitzero"`
	Children   []*ChildOp     `json:"children,omitzero"`

	requests  []jsontext.Value
	responses []jsontext.Value
	effect    bool // begun by an effect_intended
}

// ChildOp is a child that an op ran.
type ChildOp struct {
	ID        string           `json:"id"`
	SessionID string           `json:"session_id,omitzero"`
	Agent     string           `json:"agent,omitzero"`
	Mode      event.ChildMode  `json:"mode,omitzero"`
	State     event.ChildState `json:"state"`
	Task      string           `json:"task,omitzero"`
	Summary   string           `json:"summary,omitzero"`
	Error     string           `json:"error,omitzero"`
	Merged    bool             `json:"merged,omitzero"`
	// Inherited says that the child is that of the session this one was forked
	// or copied from.
	Inherited bool `json:"inherited,omitzero"`
	// Run is what the child did; nil where it has no session, was inherited, or
	// is Missing, or Elsewhere in the tree.
	Run       *Run `json:"run,omitzero"`
	Missing   bool `json:"missing,omitzero"`
	Elsewhere bool `json:"elsewhere,omitzero"`
}

// LogLine is an event that is none of an op's own: an op_logged, or another
// that is noted for completeness.
type LogLine struct {
	Seq   int64      `json:"seq"`
	Time  time.Time  `json:"time"`
	Type  event.Type `json:"type"`
	Level string     `json:"level,omitzero"`
	Text  string     `json:"text,omitzero"`
	// Value is the event's payload; of an op_logged, its value.
	Value jsontext.Value `json:"value,omitzero"`
}

// Accounting is what one event cost.
type Accounting struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Model string    `json:"model,omitzero"`
	Agent string    `json:"agent,omitzero"`
	// Spend is what the event adds; a later piece of an answer corrects the usage
	// before it, and may take tokens away.
	Spend projection.Spend `json:"spend"`
}

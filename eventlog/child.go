package eventlog

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// ChildState is where a child run is in its life; each has an event type of
// its own.
type ChildState string

// The states of a child run.
const (
	ChildStateRequested  ChildState = "requested"
	ChildStateStarted    ChildState = "started"
	ChildStateProgressed ChildState = "progressed"
	ChildStateBlocked    ChildState = "blocked"
	ChildStateCompleted  ChildState = "completed"
	ChildStateFailed     ChildState = "failed"
	ChildStateCanceled   ChildState = "canceled"
	ChildStateMerged     ChildState = "merged"
)

// ChildMode says how a child's session came to be.
type ChildMode string

// The modes of children.
const (
	ChildFork    ChildMode = "fork"
	ChildHandoff ChildMode = "handoff"
	ChildFresh   ChildMode = "fresh"
)

// Child is the payload of the child_* types.
type Child struct {
	// State decides the event type. It is not part of the data.
	State ChildState `json:"-"`

	ChildID        string    `json:"child_id"`
	ChildSessionID string    `json:"child_session_id,omitzero"`
	ParentEventID  ulid.ULID `json:"parent_event_id,omitzero"`
	// CallID is the tool call that the child answers.
	CallID string    `json:"call_id,omitzero"`
	Agent  string    `json:"agent,omitzero"`
	Mode   ChildMode `json:"mode,omitzero"`
	// Task and Context are what the child was asked.
	Task            string `json:"task,omitzero"`
	Context         string `json:"context,omitzero"`
	SharedPrefixKey string `json:"shared_prefix_key,omitzero"`
	// Status and Message tell of progress, in the program's own words.
	Status      string   `json:"status,omitzero"`
	Message     string   `json:"message,omitzero"`
	Reason      string   `json:"reason,omitzero"`
	Error       string   `json:"error,omitzero"`
	Summary     string   `json:"summary,omitzero"`
	ArtifactIDs []string `json:"artifact_ids,omitzero"`
	EpisodeID   string   `json:"episode_id,omitzero"`
	Usage       Usage    `json:"usage,omitzero"`
	Note        string   `json:"note,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewChildRequested makes a child_requested. The child's id is required here
// and below.
func NewChildRequested(c Child) (Event, error) { return newChild(c, ChildStateRequested) }

// NewChildStarted makes a child_started.
func NewChildStarted(c Child) (Event, error) { return newChild(c, ChildStateStarted) }

// NewChildProgressed makes a child_progressed.
func NewChildProgressed(c Child) (Event, error) { return newChild(c, ChildStateProgressed) }

// NewChildBlocked makes a child_blocked.
func NewChildBlocked(c Child) (Event, error) { return newChild(c, ChildStateBlocked) }

// NewChildCompleted makes a child_completed.
func NewChildCompleted(c Child) (Event, error) { return newChild(c, ChildStateCompleted) }

// NewChildFailed makes a child_failed.
func NewChildFailed(c Child) (Event, error) { return newChild(c, ChildStateFailed) }

// NewChildCanceled makes a child_canceled.
func NewChildCanceled(c Child) (Event, error) { return newChild(c, ChildStateCanceled) }

// NewChildMerged makes a child_merged.
func NewChildMerged(c Child) (Event, error) { return newChild(c, ChildStateMerged) }

func newChild(c Child, state ChildState) (Event, error) {
	c.State = state
	return NewEvent(c)
}

// Child reads an event of any child_* type, State telling which; ok and err are
// as for Message.
func (e *Event) Child() (c Child, ok bool, err error) {
	c, ok, err = decode[Child](e, childTypes...)
	if ok {
		c.stateFrom(e.Type)
	}
	return c, ok, err
}

const childPrefix = "child_"

var childTypes = []Type{
	ChildRequested, ChildStarted, ChildProgressed, ChildBlocked, ChildCompleted, ChildFailed, ChildCanceled, ChildMerged,
}

func (c *Child) stateFrom(t Type) {
	c.State = ChildState(strings.TrimPrefix(string(t.Name()), childPrefix))
}

// EventType is the child_* type of the state.
func (c Child) EventType() Type { return Type(childPrefix + string(c.State)) }

func (c Child) check() error {
	if c.Mode != "" {
		if err := requireOneOf("mode", c.Mode, ChildFork, ChildHandoff, ChildFresh); err != nil {
			return err
		}
	}
	return firstError(
		requireOneOf("type", c.EventType(), childTypes...),
		require("child_id", c.ChildID),
		c.Usage.check(),
		requireExtra(c.Extra),
	)
}

func (c Child) needs() []Digest { return nil }

package event

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// ChildState is where a child run is in its life; each has an event type of
// its own.
type ChildState string

// The states of a child run.
const ChildRequested ChildState = "requested"
const ChildStarted ChildState = "started"
const ChildProgressed ChildState = "progressed"
const ChildBlocked ChildState = "blocked"
const ChildCompleted ChildState = "completed"
const ChildFailed ChildState = "failed"
const ChildCanceled ChildState = "canceled"
const ChildMerged ChildState = "merged"

// Ended reports whether the run is over.
func (s ChildState) Ended() bool {
	return s == ChildCompleted || s == ChildFailed || s == ChildCanceled
}

// Type is the type of the event that says so: child_started for ChildStarted.
func (s ChildState) Type() Type { return Type(childPrefix + string(s)) }

// ChildState is the state that a child_* type says the run is in; ok is false for any
// other type.
func (t Type) ChildState() (s ChildState, ok bool) {
	name, ok := strings.CutPrefix(string(t.Name()), childPrefix)
	return ChildState(name), ok && t.Known()
}

// ChildMode says how a child's session came to be. Readers take an unknown word for fresh.
type ChildMode string

// The modes of children.
const ChildFork ChildMode = "fork"
const ChildHandoff ChildMode = "handoff"
const ChildFresh ChildMode = "fresh"

var childModes = []ChildMode{"", ChildFork, ChildHandoff, ChildFresh}

// Known returns m, or ChildFresh if this program does not know the mode.
func (m ChildMode) Known() ChildMode { return knownWord(m, ChildFresh, childModes) }

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
	// InterruptID is the approval request that the child waits for, in child_blocked.
	InterruptID string `json:"interrupt_id,omitzero"`
	// Task and Context are the request to the child.
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

const childPrefix = "child_"

var childTypes = []Type{
	ChildRequested.Type(), ChildStarted.Type(), ChildProgressed.Type(), ChildBlocked.Type(),
	ChildCompleted.Type(), ChildFailed.Type(), ChildCanceled.Type(), ChildMerged.Type(),
}

func (c *Child) setType(t Type) {
	c.State = ChildState(strings.TrimPrefix(string(t.Name()), childPrefix))
}

// EventType is the child_* type of the state.
func (c Child) EventType() Type { return c.State.Type() }

// Validate applies the rules of Child that need no other event.
func (c Child) Validate() error {
	return firstError(
		requireOneOf("type", c.EventType(), childTypes...),
		require("child_id", c.ChildID),
		c.Usage.check(),
		requireExtra(c.Extra),
		requireWord("mode", c.Mode, childModes...),
	)
}

package projection

import (
	"time"

	"github.com/convlog/convlog/event"
)

// Triggers of snapshots. A program may use others.
const (
	TurnEnd          = "turn_end"
	ToolIterationEnd = "tool_iteration_end" // all calls of one answer have a result
	InvocationEnd    = "invocation_end"     // the session has nothing more to do
	AfterPrompt      = "after_prompt"
	BeforeEffect     = "before_effect"
	Review           = "review"
	Manual           = "manual"
)

// Opportunity is a moment at which a snapshot could be appended. LiveOptions.Policy
// decides on it.
type Opportunity struct {
	Trigger string
	// Index is the index that the snapshot would get, from 0. TurnIndex is the index
	// of the turn.
	Index     int
	TurnIndex int
	// Digest is the digest of the states. Previous is the digest of the set's newest
	// snapshot on the path, empty if there is none.
	Digest   event.Digest
	Previous event.Digest
	// Events counts the events of the path since the newest snapshot, without
	// snapshots. Age is the time since that snapshot. If there is no snapshot, both
	// start at the start of the path.
	Events int
	Age    time.Duration
	// Bytes is the size of the events that were appended to the path since the set's
	// newest body, without snapshots. BodyBytes is the size of the states in that
	// body, 0 if there is no body.
	Bytes     int64
	BodyBytes int64
	// AnyBytes and AnyBodyBytes are the same for the newest body on any branch. They
	// differ after a rewind to an event before that body, until the set is resumed.
	AnyBytes     int64
	AnyBodyBytes int64
	// Live has the states; see State.
	Live *Live
}

// PreviousStates loads the states of the set's newest snapshot on the path, to compare them
// with the states of Live. They are nil if there is no snapshot. Call it inside the policy.
func (o *Opportunity) PreviousStates() (States, error) {
	v := o.Live
	if v == nil || v.last.previous == 0 {
		return nil, nil
	}
	l, err := LoadSet(v.asking, v.log, v.Session, v.set, Options{At: v.last.previous})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Changed reports whether the states differ from the states of the set's newest snapshot
// on the path, or there is no such snapshot.
func (o *Opportunity) Changed() bool { return o.Previous == "" || o.Digest != o.Previous }

// growthFloor is the smallest size of a body for Grown.
const growthFloor = 64 << 10

// Grown reports whether the events of the path since the last body are larger than r
// times the body. A body smaller than 64 KiB counts as 64 KiB. After a rewind to an event
// before the newest body, the events since that body must also be larger than
// r/2 times that body: short branches get no body each. All bodies together are then at
// most a constant factor larger than the log, and a resume reads at most 1 + r times the
// state, and after such a rewind r/2 of the other state more.
func (o *Opportunity) Grown(r float64) bool {
	return float64(o.Bytes) > r*float64(max(o.BodyBytes, growthFloor)) && float64(o.AnyBytes) >= r/2*float64(o.AnyBodyBytes)
}

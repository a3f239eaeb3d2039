package projection

import (
	"slices"
	"time"

	"github.com/convlog/convlog/event"
)

// Trigger is the reason for an opportunity.
type Trigger string

// The triggers of this package. A program may use others.
const (
	TurnEnd          Trigger = "turn_end"
	ToolIterationEnd Trigger = "tool_iteration_end"
	InvocationEnd    Trigger = "invocation_end"
	AfterPrompt      Trigger = "after_prompt"
	BeforeEffect     Trigger = "before_effect"
	Review           Trigger = "review"
	SubagentFinish   Trigger = "subagent_finish"
	Final            Trigger = "final"
	ByCount          Trigger = "count"
	ByAge            Trigger = "age"
	ByGrowth         Trigger = "growth"
	Manual           Trigger = "manual"
)

// Opportunity is a moment at which a snapshot could be appended. A Policy decides on
// it.
type Opportunity struct {
	Trigger Trigger
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

// Policy decides on an opportunity. Snapshot calls it once for each opportunity.
type Policy func(o *Opportunity) bool

// Never declines all opportunities.
func Never() Policy { return func(*Opportunity) bool { return false } }

// Always accepts all opportunities.
func Always() Policy { return func(*Opportunity) bool { return true } }

// On accepts opportunities with one of the triggers.
func On(triggers ...Trigger) Policy {
	return func(o *Opportunity) bool { return slices.Contains(triggers, o.Trigger) }
}

// OnChange accepts opportunities with one of the triggers, or with any trigger if
// none is given, if the digest differs from the digest of the previous snapshot.
func OnChange(triggers ...Trigger) Policy {
	return func(o *Opportunity) bool {
		return (len(triggers) == 0 || slices.Contains(triggers, o.Trigger)) && (o.Previous == "" || o.Digest != o.Previous)
	}
}

// EveryN accepts if the path has n or more events since the last snapshot.
func EveryN(n int) Policy {
	return func(o *Opportunity) bool { return o.Events > 0 && o.Events >= n }
}

// MaxAge accepts if the last snapshot, or the start of the path, is older than d and
// an event came after it.
func MaxAge(d time.Duration) Policy {
	return func(o *Opportunity) bool { return o.Events > 0 && o.Age >= d }
}

// growthFloor is the smallest size of a body for Growth.
const growthFloor = 64 << 10

// Growth accepts if the events of the path since the last body are larger than r
// times the body. A body smaller than 64 KiB counts as 64 KiB. After a rewind to an event
// before the newest body, it also waits until the events since that body are larger than
// r/2 times that body: short branches get no body each. All bodies together are then at
// most a constant factor larger than the log, and a resume reads at most 1 + r times the
// state, and after such a rewind r/2 of the other state more.
func Growth(r float64) Policy {
	return func(o *Opportunity) bool {
		return float64(o.Bytes) > r*float64(max(o.BodyBytes, growthFloor)) && float64(o.AnyBytes) >= r/2*float64(o.AnyBodyBytes)
	}
}

// Any accepts if one of the policies accepts. It calls each of them. A nil policy
// declines.
func Any(policies ...Policy) Policy {
	return func(o *Opportunity) bool {
		yes := false
		for _, p := range policies {
			yes = p != nil && p(o) || yes
		}
		return yes
	}
}

// All accepts if all of the policies accept. It calls each of them. A nil policy
// declines.
func All(policies ...Policy) Policy {
	return func(o *Opportunity) bool {
		yes := len(policies) > 0
		for _, p := range policies {
			yes = p != nil && p(o) && yes
		}
		return yes
	}
}

package projection

import (
	"slices"
	"time"

	"github.com/convlog/convlog/event"
)

// Trigger says what gave the opportunity for a snapshot.
type Trigger string

// The triggers. Others may be used.
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

// Opportunity is what a policy decides on.
type Opportunity struct {
	Trigger Trigger
	// Index is that of the snapshot if it is taken, from 0; TurnIndex the turn.
	Index     int
	TurnIndex int
	// Digest is the state's, Previous that of the set's newest snapshot on the
	// path, empty if there is none.
	Digest   event.Digest
	Previous event.Digest
	// Events is how many events the path has, and Age how old it is, since the
	// newest snapshot, or from the path's start. Snapshots are not counted.
	Events int
	Age    time.Duration
	// Bytes is what was appended to the path since the set's newest body, without
	// snapshots, and BodyBytes the size of that body's states; 0 if there is none.
	Bytes     int64
	BodyBytes int64
	// Live gives the states; see State.
	Live *Live
}

// Policy decides whether an opportunity is taken. It is asked once for each.
type Policy func(o *Opportunity) bool

// Never takes none.
func Never() Policy { return func(*Opportunity) bool { return false } }

// Always takes every opportunity.
func Always() Policy { return func(*Opportunity) bool { return true } }

// On takes those of some triggers.
func On(triggers ...Trigger) Policy {
	return func(o *Opportunity) bool { return slices.Contains(triggers, o.Trigger) }
}

// OnChange takes those of some triggers, of any if none is named, where the
// state's content is not that of the snapshot before.
func OnChange(triggers ...Trigger) Policy {
	return func(o *Opportunity) bool {
		return (len(triggers) == 0 || slices.Contains(triggers, o.Trigger)) && (o.Previous == "" || o.Digest != o.Previous)
	}
}

// EveryN takes one when the path has n events or more since the last snapshot.
func EveryN(n int) Policy {
	return func(o *Opportunity) bool { return o.Events > 0 && o.Events >= n }
}

// MaxAge takes one when the last snapshot, or the path's start, is older than d
// and something came after it.
func MaxAge(d time.Duration) Policy {
	return func(o *Opportunity) bool { return o.Events > 0 && o.Age >= d }
}

// growthFloor is the least size that a body counts with in Growth.
const growthFloor = 64 << 10

// Growth takes one when what was appended to the path since the last body
// outweighs r times that body, which counts as 64 KiB at least. So all bodies
// together stay within a constant factor of the log, and a resume reads at most
// 1 + r times the state.
func Growth(r float64) Policy {
	return func(o *Opportunity) bool {
		return float64(o.Bytes) > r*float64(max(o.BodyBytes, growthFloor))
	}
}

// Any takes a snapshot if one of the policies does. It asks each of them; a nil
// policy takes none.
func Any(policies ...Policy) Policy {
	return func(o *Opportunity) bool {
		taken := false
		for _, p := range policies {
			taken = p != nil && p(o) || taken
		}
		return taken
	}
}

// All takes a snapshot if all of the policies do. It asks each of them; a nil policy
// takes none.
func All(policies ...Policy) Policy {
	return func(o *Opportunity) bool {
		taken := len(policies) > 0
		for _, p := range policies {
			taken = p != nil && p(o) && taken
		}
		return taken
	}
}

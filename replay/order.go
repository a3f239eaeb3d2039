package replay

import "fmt"

// OrderError is an event that does not fit into its sequence. Check the source of the
// stream.
type OrderError struct {
	// Session and Seq identify the event.
	Session string
	Seq     int64
	// Rule is the broken rule:
	//
	//   - "mixed_sessions": the event belongs to another lineage.
	//   - "gap": events before this one are missing.
	//   - "order": the event is a repeat, or comes too late.
	//   - "cycle": the event follows itself or a later event.
	//   - "fork_point": the event before a fork is not the event it was forked at.
	Rule string
	// Detail says how the event differs from the expected one.
	Detail string
}

const (
	ruleMixedSessions = "mixed_sessions"
	ruleGap           = "gap"
	ruleOrder         = "order"
	ruleCycle         = "cycle"
	ruleForkPoint     = "fork_point"
)

var ruleTexts = map[string]string{
	ruleMixedSessions: "sessions are mixed",
	ruleGap:           "events are missing",
	ruleOrder:         "events are out of order",
	ruleCycle:         "events form a cycle",
	ruleForkPoint:     "fork point does not match",
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("event %d of session %q: %s: %s", e.Seq, e.Session, ruleTexts[e.Rule], e.Detail)
}

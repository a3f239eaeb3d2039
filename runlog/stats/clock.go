package stats

import (
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/runlog/internal/turns"
)

// clock measures the turns of a session: the time that the program worked, and the time that
// it waited for a person.
type clock struct {
	turn *turns.Turn
	last time.Time // of the newest message or part of an operation in the turn; zero after a recorded time
	work time.Duration
	// rest is the part of a millisecond that no event has counted yet.
	rest time.Duration
	// waited says that the turn has waited: the time that a program measured can include it.
	waited bool
	// waiting are the open approvals and waits.
	waiting map[string]bool
}

// next measures from the event before to e, which is of turn at, in whole milliseconds of work. The
// work is less than zero if the program measured less than the times of the events.
func (c *clock) next(at *turns.Turn, e *event.Event) (work, waited time.Duration, err error) {
	if at != c.turn {
		*c = clock{turn: at, waiting: c.waiting}
	}
	if at == nil {
		return 0, 0, nil
	}
	if turns.IsWork(e) {
		passed := c.passed(event.Dated(e.Timestamp))
		if len(c.waiting) > 0 {
			waited, c.waited = passed, true
		} else {
			work = passed
		}
	}
	c.work += work
	if took, ok := turns.Recorded(e); ok && !c.waited {
		work += took - c.work
		c.work, c.last = 0, time.Time{}
	}
	exact := work + c.rest
	work = exact.Truncate(time.Millisecond)
	c.rest = exact - work
	return work, waited, c.wait(e)
}

// passed is the time since the last event.
func (c *clock) passed(at time.Time) (passed time.Duration) {
	if !c.last.IsZero() && at.After(c.last) {
		passed = at.Sub(c.last)
	}
	if at.After(c.last) {
		c.last = at
	}
	return passed
}

// wait notes a question to a person or a wait, and its end.
func (c *clock) wait(e *event.Event) error {
	var begins bool
	var key string
	switch e.Type.Name() {
	case event.ApprovalRequested, event.ApprovalResolved, event.ApprovalCanceled:
		p, err := event.DecodeKept[event.ApprovalRequest](e)
		if err != nil {
			return err
		}
		begins, key = e.Type.Name() == event.ApprovalRequested, "approval "+p.InterruptID
	case event.WaitStarted, event.WaitResolved:
		p, err := event.DecodeKept[event.Wait](e)
		if err != nil {
			return err
		}
		begins, key = e.Type.Name() == event.WaitStarted, "wait "+p.WaitID
	case event.TurnStarted:
		c.waiting = nil
		return nil
	default:
		return nil
	}
	if !begins {
		delete(c.waiting, key)
		return nil
	}
	if c.waiting == nil {
		c.waiting = map[string]bool{}
	}
	c.waiting[key] = true
	return nil
}

package fork

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Ancestor is a session that a fork reads its past through.
type Ancestor struct {
	Session string
	// Seq is up to where the fork reads it; 0 shares nothing.
	Seq int64
	// Child is the session that forked it, Fork what its session_forked says.
	Child string
	Fork  event.Fork
}

// LineageError says that what a fork shares with its parents cannot be read.
type LineageError struct {
	// Session is the fork, Seq its session_forked; 0 if the session itself is not
	// there.
	Session string
	Seq     int64
	// Err matches eventlog.ErrNotFound or is a *eventlog.CorruptError, or what else
	// kept the lineage from being looked at.
	Err error
}

func (e *LineageError) Error() string {
	return fmt.Sprintf("lineage of session %q: %v", e.Session, e.Err)
}

func (e *LineageError) Unwrap() error { return e.Err }

// Defect is the error among others that verifying a log finds.
func (e *LineageError) Defect() eventlog.Defect {
	return eventlog.Defect{Session: e.Session, Seq: e.Seq, Offset: -1, Rule: "fork", Detail: e.Err.Error()}
}

// Lineage lists the sessions that a session was forked from, its parent first.
// A session that is no fork has none. An ancestor that is gone is
// eventlog.ErrNotFound; one that no longer has the event up to which it is
// shared a *eventlog.CorruptError, as is a session that is its own ancestor
// (ErrCycle); each in a *LineageError. It reads two events of each.
func Lineage(ctx context.Context, log *eventlog.Log, session string) ([]Ancestor, error) {
	c := climb{log: log, session: session}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	return c.line, nil
}

// climb goes from a session to its parents.
type climb struct {
	log     *eventlog.Log
	session string
	known   func(session string) bool // that its lineage is sound; or nil
	line    []Ancestor
	// end is the fork that says up to where the sessions to come are shared.
	end event.Fork
}

// run goes up to a session that is no fork, or whose lineage is known.
func (c *climb) run(ctx context.Context) error {
	first, err := firstOwn(ctx, c.log, c.session)
	begin := first.Seq
	seen := map[string]bool{c.session: true}
	for err == nil && first.Type.Name() == event.SessionForked {
		var a Ancestor
		if a, err = ancestorOf(&first); err != nil {
			break
		}
		if seen[a.Session] {
			err = &eventlog.CorruptError{Session: a.Child, Offset: -1, Seq: first.Seq, Cause: ErrCycle}
			break
		}
		seen[a.Session] = true
		var done bool
		if first, done, err = c.up(ctx, a); done {
			break
		}
	}
	if err != nil {
		return &LineageError{Session: c.session, Seq: begin, Err: err}
	}
	return nil
}

// up goes on to an ancestor, and gives its first event.
func (c *climb) up(ctx context.Context, a Ancestor) (first event.Event, done bool, err error) {
	if len(c.line) == 0 || a.Seq < c.end.Seq {
		c.end = a.Fork
	}
	a.Seq = c.end.Seq // the nearer one may have been forked below its own events
	c.line = append(c.line, a)
	if first, err = firstOwn(ctx, c.log, a.Session); err != nil {
		return first, true, fmt.Errorf("parent of session %q: %w", a.Child, err)
	}
	done = c.known != nil && c.known(a.Session)
	within := eventlog.Between(a.Seq, a.Seq).Bare()
	if !done {
		within = within.Own()
	}
	if a.Seq > 0 && (done || a.Seq >= first.Seq) {
		err = checkShared(ctx, c.log, a.Session, &c.end, within)
	}
	return first, done, err
}

func ancestorOf(first *event.Event) (Ancestor, error) {
	f, _, err := event.Decode[event.Fork](first)
	return Ancestor{Session: f.Parent, Seq: f.Seq, Child: first.SessionID, Fork: f}, err
}

// firstOwn is the first event that a session itself holds.
func firstOwn(ctx context.Context, log *eventlog.Log, session string) (event.Event, error) {
	for e, err := range log.Read(ctx, session, eventlog.All().Own().Bare()) {
		return e, err
	}
	return event.Event{}, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
}

// checkShared makes sure that a session still has the event up to which it is
// shared.
func checkShared(ctx context.Context, log *eventlog.Log, session string, f *event.Fork, at eventlog.Range) error {
	for e, err := range log.Read(ctx, session, at) {
		if err == nil && (e.ID != f.EventID || e.Hash() != f.Hash) {
			break
		}
		return err
	}
	return &eventlog.CorruptError{Session: session, Offset: -1, Seq: f.Seq,
		Cause: fmt.Errorf("the event that was forked is not there: %w", eventlog.ErrEventNotFound)}
}

// segment is the part of a lineage that one session holds.
type segment struct {
	session  string
	from, to int64
}

// segments cuts a lineage of head seqs into what each session holds, oldest
// first.
func segments(line []Ancestor, session string, head int64) []segment {
	var parts []segment
	from := int64(1)
	for i := len(line) - 1; i >= 0; i-- {
		if to := line[i].Seq; to >= from {
			parts = append(parts, segment{line[i].Session, from, to})
			from = to + 1
		}
	}
	return append(parts, segment{session, from, head})
}

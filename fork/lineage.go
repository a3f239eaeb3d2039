package fork

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/eventlog"
)

// Ancestor is a session that a fork reads its past through.
type Ancestor struct {
	Session string
	// Seq is up to where the fork reads it; 0 shares nothing.
	Seq int64
	// Child is the session that forked it, Fork what its session_forked says.
	Child string
	Fork  eventlog.Fork
}

// Lineage lists the sessions that a session was forked from, its parent first.
// A session that is no fork has none. An ancestor that is gone is
// eventlog.ErrNotFound; one that no longer has the event that was forked a
// *eventlog.CorruptError, as is a session that is its own ancestor (ErrCycle).
// It reads two events of each.
func Lineage(ctx context.Context, log *eventlog.Log, session string) ([]Ancestor, error) {
	var line []Ancestor
	seen := map[string]bool{session: true}
	first, err := firstOwn(ctx, log, session)
	for err == nil && first.Type.Name() == eventlog.SessionForked {
		var a Ancestor
		if a, err = ancestorOf(&first); err != nil {
			break
		}
		if seen[a.Session] {
			err = &eventlog.CorruptError{Session: a.Child, Offset: -1, Seq: first.Seq, Cause: ErrCycle}
			break
		}
		seen[a.Session] = true
		point := a.Fork
		if n := len(line); n > 0 && line[n-1].Seq < a.Seq {
			a.Seq = line[n-1].Seq // the nearer one was forked below its own events
		}
		if first, err = firstOwn(ctx, log, a.Session); err != nil {
			err = fmt.Errorf("parent of session %q: %w", a.Child, err)
			break
		}
		if point.Seq >= first.Seq {
			err = checkForkPoint(ctx, log, &point)
		}
		line = append(line, a)
	}
	if err != nil {
		return nil, fmt.Errorf("lineage of session %q: %w", session, err)
	}
	return line, nil
}

func ancestorOf(first *eventlog.Event) (Ancestor, error) {
	f, _, err := first.Fork()
	return Ancestor{Session: f.Parent, Seq: f.Seq, Child: first.SessionID, Fork: f}, err
}

// firstOwn is the first event that a session itself holds.
func firstOwn(ctx context.Context, log *eventlog.Log, session string) (eventlog.Event, error) {
	for e, err := range log.Read(ctx, session, eventlog.All.Own().Bare()) {
		return e, err
	}
	return eventlog.Event{}, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
}

// checkForkPoint makes sure that a parent still has the event that was forked.
func checkForkPoint(ctx context.Context, log *eventlog.Log, f *eventlog.Fork) error {
	for e, err := range log.Read(ctx, f.Parent, eventlog.Between(f.Seq, f.Seq).Own().Bare()) {
		if err == nil && (e.ID != f.EventID || e.Hash() != f.Hash) {
			break
		}
		return err
	}
	return &eventlog.CorruptError{Session: f.Parent, Offset: -1, Seq: f.Seq,
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

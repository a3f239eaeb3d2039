package fork

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Branch is a branch within one session: the active path, or what a rewind
// left.
type Branch struct {
	// Active says that it is the active path.
	Active bool
	// Tip is its last event, Base the one it parts from, which is of a branch
	// listed before it; 0 is the empty path.
	Tip, Base int64
	// Own are the events that no branch listed before it has, oldest first.
	Own []event.Stretch
	// Counted is how many of Own count on a path only. On a branch that is not
	// active they are orphaned.
	Counted int64
	// Left is the head_moved that left it, and Label, Reason and Time are that
	// event's. The active path has none.
	Left          int64
	Label, Reason string
	Time          time.Time
}

// Branches lists the branches of a session's lineage, the active path first,
// then what was left last. Branches without orphaned events, such as those that
// were recovered, are not listed. It reads the lineage once.
func Branches(ctx context.Context, log *eventlog.Log, session string) ([]Branch, error) {
	head, err := log.Head(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("branches of session %q: %w", session, err)
	}
	s, err := shapeOf(ctx, log, session, head.Seq)
	if err != nil {
		return nil, fmt.Errorf("branches of session %q: %w", session, err)
	}
	own, counted, _ := s.take(head.Seq)
	branches := []Branch{{Active: true, Tip: head.Seq, Own: own, Counted: counted}}
	for _, m := range slices.Backward(s.moves) {
		own, counted, base := s.take(m.seq - 1)
		if counted > 0 {
			branches = append(branches, Branch{Tip: m.seq - 1, Base: base, Own: own, Counted: counted,
				Left: m.seq, Label: m.label, Reason: m.reason, Time: m.time})
		}
	}
	return branches, nil
}

// Orphaned reports whether an event at seq is on the branch and on none listed
// before it, and the branch is not active.
func (b *Branch) Orphaned(seq int64) bool {
	return !b.Active && slices.ContainsFunc(b.Own, func(s event.Stretch) bool { return s.From <= seq && seq <= s.To })
}

// newestOrphaned is the tip of what was left last and is still orphaned.
func newestOrphaned(ctx context.Context, log *eventlog.Log, session string, head int64) (int64, error) {
	s, err := shapeOf(ctx, log, session, head)
	if err != nil {
		return 0, err
	}
	s.take(head)
	for _, m := range slices.Backward(s.moves) {
		if _, counted, _ := s.take(m.seq - 1); counted > 0 {
			return m.seq - 1, nil
		}
	}
	return 0, ErrNothingOrphaned
}

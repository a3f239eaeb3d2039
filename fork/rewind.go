package fork

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Moved is a rewind or a recovery.
type Moved struct {
	Session string
	// Head is the head_moved event.
	Head event.Head
	// From is the seq of the head before the move. The path continues after the event
	// at seq To.
	From, To int64
	// Open are the calls without a result at To. In the history they are interrupted.
	Open []OpenCall
}

// Rewind moves the head of a session to p, which may also be on another branch. The
// events of the path after p are orphaned; they stay in the log. If another writer
// appends meanwhile, Rewind resolves p again.
//
// Errors: "no_move" if p is the head or no event of path scope comes after it,
// "inside_append" without Options.Force, and the errors of Resolve. Unlike a fork, a rewind
// may go to a point inside a turn.
func Rewind(ctx context.Context, log *eventlog.Log, session string, p Point, opts ...Options) (Moved, error) {
	o := one(opts)
	return moveHead(ctx, log, session, o, "rewind", func(event.Head) (int64, error) {
		e, err := Resolve(ctx, log, session, p)
		if err != nil {
			return 0, err
		}
		if e.More() > 0 && !o.Force {
			return 0, fmt.Errorf("event %d: %w", e.Seq, errInsideAppend)
		}
		return e.Seq, nil
	})
}

// Recover moves the head to the end of the branch that was left last and is still
// orphaned. Without such a branch it is "nothing_orphaned".
func Recover(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (Moved, error) {
	return moveHead(ctx, log, session, one(opts), "recover", func(head event.Head) (int64, error) {
		return newestOrphaned(ctx, log, session, head.Seq)
	})
}

// moveHead appends a head_moved to the seq that target gives. If the head moved
// meanwhile, it asks target again.
func moveHead(ctx context.Context, log *eventlog.Log, session string, o Options, verb string,
	target func(event.Head) (int64, error)) (Moved, error) {
	ctx = eventlog.WithMetadata(ctx, o.Metadata)
	for {
		moved, err := tryMove(ctx, log, session, o, target)
		if errors.Is(err, eventlog.ErrConflict) && o.Head.IsZero() && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return Moved{}, fmt.Errorf("%s session %q: %w", verb, session, err)
		}
		return moved, nil
	}
}

func tryMove(ctx context.Context, log *eventlog.Log, session string, o Options, target func(event.Head) (int64, error)) (Moved, error) {
	head, err := log.Head(ctx, session)
	if err != nil {
		return Moved{}, err
	}
	if !o.Head.IsZero() && head != o.Head {
		return Moved{}, &eventlog.ConflictError{Session: session, Expected: o.Head, Actual: head}
	}
	to, err := target(head)
	if err != nil {
		return Moved{}, err
	}
	if err := checkMove(ctx, log, session, head.Seq, to); err != nil {
		return Moved{}, err
	}
	found, err := findOpen(ctx, log, session, to)
	if err != nil {
		return Moved{}, err
	}
	moved, err := appendUntilKnown(ctx, log, session, eventlog.At(head), event.New(event.HeadMove{To: to, Label: o.Label, Reason: o.Reason}))
	return Moved{Session: session, Head: moved, From: head.Seq, To: to, Open: found.calls}, err
}

// checkMove refuses a move along the path over no event of path scope.
func checkMove(ctx context.Context, log *eventlog.Log, session string, head, to int64) error {
	for e, err := range pathBack(ctx, log, session, head) {
		if err != nil {
			return err
		}
		switch {
		case e.Seq == to:
			return errNoMove
		case e.Seq < to || e.Type.Scope() == event.PathScope:
			return nil
		}
	}
	if to == 0 {
		return errNoMove
	}
	return nil
}

package fork

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// RewindOptions configure Rewind and Recover.
type RewindOptions struct {
	// Label names what is left behind, Reason says why.
	Label, Reason string
	// Metadata is merged into that of the head_moved event.
	Metadata map[string]any
}

// Moved is a rewind or a recovery that was made.
type Moved struct {
	Session string
	// Head is the head_moved event.
	Head event.Head
	// From is the seq of the head before, To that of the event the path goes on
	// from.
	From, To int64
	// Open are calls that have no result at To: the model sees them as interrupted.
	Open []OpenCall
}

// Rewind goes back to p, or on to it: what is behind it on the path is
// orphaned and stays in the log. The head that moved is that of the session
// as it is when the event is written; where others append meanwhile, p is
// resolved anew.
//
// ErrNoMove: p is the head, or nothing that counts on a path is behind it.
// ErrInsideAppend and the errors of Resolve are as for At; a turn may be open.
func Rewind(ctx context.Context, log *eventlog.Log, session string, p Point, opts RewindOptions) (Moved, error) {
	return move(ctx, log, session, opts, "rewind", func(head event.Head) (int64, error) {
		e, err := Resolve(ctx, log, session, p)
		if err != nil {
			return 0, err
		}
		if e.More() > 0 {
			return 0, fmt.Errorf("event %d: %w", e.Seq, ErrInsideAppend)
		}
		return e.Seq, nil
	})
}

// Recover returns to what the newest rewind left that is still orphaned: to
// just before that head_moved. ErrNothingOrphaned: there is none.
func Recover(ctx context.Context, log *eventlog.Log, session string, opts RewindOptions) (Moved, error) {
	return move(ctx, log, session, opts, "recover", func(head event.Head) (int64, error) {
		return newestOrphaned(ctx, log, session, head.Seq)
	})
}

// RecoverTo goes to an orphaned event, or any other, by its seq, also to one
// inside an atomic append. ErrNoMove is as for Rewind.
func RecoverTo(ctx context.Context, log *eventlog.Log, session string, seq int64, opts RewindOptions) (Moved, error) {
	return move(ctx, log, session, opts, "recover", func(event.Head) (int64, error) {
		e, err := Resolve(ctx, log, session, AtSeq(seq))
		return e.Seq, err
	})
}

// move appends a head_moved to where target says, which is asked again when
// the head has moved meanwhile.
func move(ctx context.Context, log *eventlog.Log, session string, opts RewindOptions, verb string,
	target func(event.Head) (int64, error)) (Moved, error) {
	ctx = eventlog.WithMetadata(ctx, opts.Metadata)
	for {
		head, err := log.Head(ctx, session)
		var to int64
		if err == nil {
			to, err = target(head)
		}
		if err == nil {
			err = checkMove(ctx, log, session, head.Seq, to)
		}
		var open []OpenCall
		if err == nil {
			open, err = openCalls(ctx, log, session, to)
		}
		if err != nil {
			return Moved{}, fmt.Errorf("%s session %q: %w", verb, session, err)
		}
		e := event.New(event.HeadMove{To: to, Label: opts.Label, Reason: opts.Reason})
		moved, err := appendSurely(ctx, log, session, eventlog.At(head), e)
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return Moved{}, fmt.Errorf("%s session %q: %w", verb, session, err)
		}
		return Moved{Session: session, Head: moved, From: head.Seq, To: to, Open: open}, nil
	}
}

// checkMove refuses a move that changes nothing: to an event of the path that
// no path event is behind.
func checkMove(ctx context.Context, log *eventlog.Log, session string, head, to int64) error {
	for e, err := range backward(ctx, log, session, head) {
		if err != nil {
			return err
		}
		if e.Seq <= to {
			if e.Seq == to {
				return ErrNoMove
			}
			return nil
		}
		if e.Type.Scope() == event.PathScope {
			return nil
		}
	}
	if to == 0 {
		return ErrNoMove
	}
	return nil
}

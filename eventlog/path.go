package eventlog

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Stretch is a run of seqs, both ends included, on the active path.
type Stretch struct{ From, To int64 }

// ActivePath yields the events on the chain from the newest event back to the
// start, oldest first: what head_moved events left behind is not on it.
func (l *Log) ActivePath(ctx context.Context, session string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		path, err := l.Path(ctx, session)
		if err != nil {
			yield(Event{}, err)
			return
		}
		for _, s := range path {
			for e, err := range l.Read(ctx, session, Between(s.From, s.To)) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Path resolves the active path into stretches of seqs, oldest first. A
// head_moved event is itself on the path.
func (l *Log) Path(ctx context.Context, session string) ([]Stretch, error) {
	newest, err := l.newest(ctx, session)
	if err != nil {
		return nil, err
	}
	return l.pathTo(ctx, session, newest.Seq)
}

// PathAt is Path as it was, or would be, with the event at seq as the newest;
// the path at 0 is empty. A seq that the lineage does not have is
// ErrEventNotFound.
func (l *Log) PathAt(ctx context.Context, session string, seq int64) ([]Stretch, error) {
	newest, err := l.newest(ctx, session)
	if err != nil {
		return nil, err
	}
	if seq < 0 || seq > newest.Seq {
		return nil, fmt.Errorf("event %d of session %q: %w", seq, session, ErrEventNotFound)
	}
	return l.pathTo(ctx, session, seq)
}

// pathTo resolves the chain that ends with the event at seq.
func (l *Log) pathTo(ctx context.Context, session string, seq int64) ([]Stretch, error) {
	var path []Stretch
	for at := seq; at > 0; {
		move, to, err := l.moveBefore(ctx, session, at)
		if err != nil {
			return nil, err
		}
		path = append(path, Stretch{From: move, To: at})
		at = to
	}
	slices.Reverse(path)
	return path, nil
}

// moveBefore finds the newest head_moved at or before seq and where it moved
// to; without one, the stretch begins at 1 and nothing lies before it.
func (l *Log) moveBefore(ctx context.Context, session string, seq int64) (move, to int64, err error) {
	for e, err := range l.lineage(ctx, session, Between(0, seq).Backward()) {
		if err != nil {
			return 0, 0, err
		}
		if e.Type.Name() != HeadMoved {
			continue
		}
		m, _, err := e.HeadMove()
		if err != nil {
			return 0, 0, err
		}
		if m.To >= e.Seq || m.To < 0 {
			return 0, 0, &CorruptError{Session: session, Offset: -1, Seq: e.Seq,
				Cause: fmt.Errorf("head_moved to %d", m.To)}
		}
		return e.Seq, m.To, nil
	}
	return 1, 0, nil
}

package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// parse parses a stored line unless ctx has ended.
func parse(ctx context.Context, session string, seq int64, line []byte) (event.Event, error) {
	if err := context.Cause(ctx); err != nil {
		return event.Event{}, err
	}
	e, err := event.Parse(line, session)
	if err == nil && e.Seq != seq {
		err = fmt.Errorf("the row has the line of seq %d", e.Seq)
	}
	if errors.Is(err, event.ErrVersion) {
		return event.Event{}, fmt.Errorf("session %q, seq %d: %w", session, seq, err)
	}
	if err != nil {
		return event.Event{}, &eventlog.CorruptError{Session: session, Offset: -1, Seq: seq, Cause: err}
	}
	return e, nil
}

// seqsOf yields the seqs that r selects from count events that start at first.
func seqsOf(r eventlog.Span, first, count int64) iter.Seq[int64] {
	from, to := max(r.From, first), first+count-1
	if r.To > 0 {
		to = min(to, r.To)
	}
	return func(yield func(int64) bool) {
		n := to - from + 1
		if r.Limit > 0 {
			n = min(n, int64(r.Limit))
		}
		for i := range max(n, 0) {
			seq := from + i
			if r.Backward {
				seq = to - i
			}
			if !yield(seq) {
				return
			}
		}
	}
}

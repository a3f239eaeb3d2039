package transcript

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Options say what is read. The zero value reads the active path.
type Options struct {
	// All reads the whole session, and marks what is not on the active path.
	All bool
}

// Hold is how many entries are held back at most to put results under their calls,
// where a session is read from its beginning.
const Hold = 200

// Read yields the entries of a session, oldest first, a fork with what it shares.
// Pieces of one message are one entry. It holds a bounded number of events in
// memory. The entries are the caller's.
func Read(ctx context.Context, log *eventlog.Log, session string, opts ...Options) iter.Seq2[*Entry, error] {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	return func(yield func(*Entry, error) bool) {
		j := NewJoiner(func(x *Entry) error {
			if !yield(x, nil) {
				return errEnough
			}
			return nil
		})
		j.Hold, j.Fold, j.Recorded = Hold, true, true
		for x, err := range entries(ctx, log, session, o) {
			if err != nil {
				yield(nil, fmt.Errorf("read session %q: %w", session, err))
				return
			}
			if j.Add(x) != nil {
				return
			}
		}
		if j.Flush() != nil {
			return
		}
	}
}

// errNilLog reports a call without a log.
var errNilLog = errors.New("the log is nil: open one with eventlog.Open")

// errEnough ends a reading whose caller wants no more.
var errEnough = errors.New("enough")

// entries yields an entry for each event.
func entries(ctx context.Context, log *eventlog.Log, session string, o Options) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		if log == nil {
			yield(nil, errNilLog)
			return
		}
		if !o.All {
			for e, err := range log.Read(ctx, session, eventlog.All().OnPath()) {
				if !yield(NewEntry(&e, false), err) || err != nil {
					return
				}
			}
			return
		}
		path, err := log.Path(ctx, session)
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range log.Read(ctx, session, eventlog.Between(0, path[len(path)-1].To)) {
			for len(path) > 1 && path[0].To < e.Seq {
				path = path[1:]
			}
			orphaned := e.Type.Scope() == event.PathScope && (e.Seq < path[0].From || e.Seq > path[0].To)
			if !yield(NewEntry(&e, orphaned), err) || err != nil {
				return
			}
		}
	}
}

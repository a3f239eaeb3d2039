package transcript

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Window is the maximum number of entries that Read buffers while it waits for
// results.
const Window = 200

// Read yields the entries of a session, oldest first. A fork includes the events that
// it shares with its parent. Pieces of one message are one entry. If events include rewound
// events, Read marks them. The range must be in the order of the events.
//
// Read keeps a bounded number of events in memory. The caller owns the entries. After
// an error the sequence ends: a missing session is eventlog.ErrNotFound, and a nil
// log is an error.
func Read(ctx context.Context, log *eventlog.Log, session string, events eventlog.Range) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		j := NewJoiner(func(x *Entry) error {
			if !yield(x, nil) {
				return errEnough
			}
			return nil
		})
		j.Window, j.Fold, j.Completions = Window, true, true
		for x, err := range entries(ctx, log, session, events) {
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

// errEnough stops the joiner when the caller of Read breaks its loop.
var errEnough = errors.New("enough")

// entries yields one entry per event.
func entries(ctx context.Context, log *eventlog.Log, session string, events eventlog.Range) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		if log == nil {
			yield(nil, errNilLog)
			return
		}
		path, err := log.Path(ctx, session, 0)
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range log.Read(ctx, session, events) {
			if err != nil {
				yield(nil, err)
				return
			}
			for len(path) > 1 && path[0].To < e.Seq {
				path = path[1:]
			}
			if len(path) == 1 && path[0].To < e.Seq {
				return // another writer has appended it since
			}
			orphaned := e.Type.Scope() == event.PathScope && (e.Seq < path[0].From || e.Seq > path[0].To)
			if !yield(NewEntry(&e, orphaned), nil) {
				return
			}
		}
	}
}

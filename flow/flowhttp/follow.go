package flowhttp

import (
	"context"
	"iter"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// step is one thing that happened in a session: an event, or a piece of a message.
type step struct {
	event *event.Event
	delta *eventlog.Delta
}

// The bounds of a follower. A viewer that misses a piece gets the whole message at its end.
const (
	maxHeld   = 256  // pieces that wait for the events before their message
	maxStored = 1024 // ids of messages whose late pieces are dropped
)

// follow yields the events of a session from seq on, in order and without a gap, and the
// pieces of messages that this process streams. A piece comes after the events that were
// stored when its message began, and never after the event of its message. It ends as
// eventlog.Log.Watch does.
func follow(ctx context.Context, log *eventlog.Log, session string, from int64) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		f := follower{log: log, session: session, after: map[ulid.ULID]int64{}}
		deltas, events := make(chan eventlog.Delta, 64), make(chan watched)
		published := log.Deltas(ctx, session) // before the events: a piece of a message that is seen to begin is not missed
		go func() {
			for d := range published {
				select {
				case deltas <- d:
				default:
				}
			}
		}()
		go func() {
			for e, err := range log.Watch(ctx, session, from) {
				select {
				case events <- watched{e, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		for {
			select {
			case w := <-events:
				if w.err != nil {
					yield(step{}, w.err)
					return
				}
				if !yield(step{event: &w.event}, nil) {
					return
				}
				f.stored(&w.event)
			case d := <-deltas:
				f.hold(ctx, d)
			case <-ctx.Done():
				yield(step{}, context.Cause(ctx))
				return
			}
			for _, d := range f.ready() {
				if !yield(step{delta: &d}, nil) {
					return
				}
			}
		}
	}
}

type watched struct {
	event event.Event
	err   error
}

// follower orders pieces of messages among events.
type follower struct {
	log     *eventlog.Log
	session string
	seq     int64 // of the newest event
	held    []eventlog.Delta
	after   map[ulid.ULID]int64 // the head when the message began
	ended   []ulid.ULID         // the newest messages that are stored
}

// hold keeps a piece until the events before its message are known.
func (f *follower) hold(ctx context.Context, d eventlog.Delta) {
	if slices.Contains(f.ended, d.Message) || len(f.held) >= maxHeld {
		return
	}
	if _, ok := f.after[d.Message]; !ok {
		head, err := f.log.Head(ctx, f.session)
		if err != nil {
			return // Watch reports it
		}
		f.after[d.Message] = head.Seq
	}
	f.held = append(f.held, d)
}

// stored notes an event. The pieces of a stored message are void.
func (f *follower) stored(e *event.Event) {
	f.seq = e.Seq
	if e.Type.Name() != event.MessageAdded {
		return
	}
	delete(f.after, e.ID)
	f.held = slices.DeleteFunc(f.held, func(d eventlog.Delta) bool { return d.Message == e.ID })
	f.ended = append(f.ended, e.ID)
	if n := len(f.ended) - maxStored; n > 0 {
		f.ended = slices.Delete(f.ended, 0, n)
	}
	if len(f.after) > maxStored { // of calls that failed
		clear(f.after)
	}
}

// ready takes the pieces whose time has come.
func (f *follower) ready() (all []eventlog.Delta) {
	f.held = slices.DeleteFunc(f.held, func(d eventlog.Delta) bool {
		if f.after[d.Message] > f.seq {
			return false
		}
		all = append(all, d)
		return true
	})
	return all
}

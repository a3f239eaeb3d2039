package eventlog

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// Delta is a piece of a message that is being streamed. Deltas are ephemeral:
// watchers in this process may see them, a slow one misses some, and the log never
// stores one. The finished message is appended as an event.
type Delta struct {
	// Message is the id that the message's event will have.
	Message ulid.ULID
	// Part is the index of the part that grows.
	Part int
	// Kind is the part's type.
	Kind event.PartType
	// Text is added to the part.
	Text string
}

// deltaBuffer is how many deltas wait for a slow watcher before some are dropped.
const deltaBuffer = 256

// deltas are the streams of one session.
type deltas struct {
	mu      sync.Mutex
	streams []chan Delta
}

// Publish gives a delta to this process's watchers of the session. It never waits.
func (l *Log) Publish(session string, d Delta) {
	h := l.findHot(session)
	if h == nil {
		return
	}
	h.deltas.mu.Lock()
	defer h.deltas.mu.Unlock()
	for _, stream := range h.deltas.streams {
		select {
		case stream <- d:
		default:
		}
	}
}

// Deltas yields the deltas that are published for a session from the start of the
// iteration on, until ctx or the log ends.
func (l *Log) Deltas(ctx context.Context, session string) iter.Seq[Delta] {
	return func(yield func(Delta) bool) {
		h := l.acquire(session)
		defer l.release(h)
		stream := h.deltas.join()
		defer h.deltas.leave(stream)
		for {
			select {
			case d := <-stream:
				if !yield(d) {
					return
				}
			case <-ctx.Done():
				return
			case <-l.done:
				return
			}
		}
	}
}

func (ds *deltas) join() chan Delta {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	stream := make(chan Delta, deltaBuffer)
	ds.streams = append(ds.streams, stream)
	return stream
}

func (ds *deltas) leave(stream chan Delta) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.streams = slices.DeleteFunc(ds.streams, func(other chan Delta) bool { return other == stream })
}

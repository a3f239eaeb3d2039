package eventlog

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// Delta is a piece of a message while it streams. Deltas are ephemeral: only this
// process sees them, a slow reader misses some, and the log stores none. Append the
// finished message as an event.
type Delta struct {
	// Message is the id of the event that the message becomes.
	Message ulid.ULID `json:"message_id"`
	// Part is the index of the part that grows.
	Part int `json:"part"`
	// Kind is the part's type.
	Kind event.PartType `json:"kind"`
	// Attempt counts the attempts at the message, from 1. The deltas of earlier attempts are
	// void. 0 is unknown.
	Attempt int `json:"attempt,omitzero"`
	// Offset is the length of the part before Text, in bytes: a reader that missed deltas
	// sees a gap.
	Offset int `json:"offset,omitzero"`
	// Text is the text to add to the part.
	Text string `json:"text"`
}

// deltaBuffer is the number of deltas that wait for a slow reader.
const deltaBuffer = 256

// deltas are the streams of one session.
type deltas struct {
	mu      sync.Mutex
	streams []chan Delta
}

// Publish gives a delta to the readers of Deltas in this process. It never waits: a
// reader whose buffer is full misses the delta.
func (l *Log) Publish(session string, d Delta) {
	if l == nil {
		return
	}
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

// Deltas returns the deltas of a session that are published after the call. The sequence can
// be used once, and ends without an error when ctx ends or the log is closed. A caller that
// does not iterate over it has to end ctx.
func (l *Log) Deltas(ctx context.Context, session string) iter.Seq[Delta] {
	if l.usable(ctx) != nil {
		return func(func(Delta) bool) {}
	}
	h := l.acquire(session)
	stream := h.deltas.join()
	leave := sync.OnceFunc(func() {
		h.deltas.leave(stream)
		l.release(h)
	})
	stop := context.AfterFunc(ctx, leave)
	return func(yield func(Delta) bool) {
		defer leave()
		defer stop()
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

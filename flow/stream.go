package flow

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// stream is the queue of chunks between a runner and its client. put never waits: deltas
// that the client has not read are joined, and the oldest deltas and progress values of a
// client that reads too slowly are dropped.
type stream struct {
	mu     sync.Mutex
	queue  unread
	ready  chan struct{} // closed by put and end
	err    error
	ended  bool
	closed bool // the client reads no more
	muted  bool // the running turn is not the one that the client wants
	// last is the end of a turn. The client gets it when the session is released or another
	// turn begins: then its next input begins a turn of its own.
	last *item
}

// item is a chunk, or the error of a turn that failed.
type item struct {
	Chunk
	err error
}

func newStream() *stream { return &stream{ready: make(chan struct{})} }

func (s *stream) put(c Chunk) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ended || s.muted {
		return
	}
	s.queue.push(item{Chunk: c})
	s.wake()
}

// putPatch puts a change of the state. While an earlier one is unread, whole replaces both.
func (s *stream) putPatch(patch, whole func() (jsontext.Value, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ended || s.muted {
		return nil
	}
	if s.queue.dropPatch() {
		patch = whole
	}
	p, err := patch()
	if err != nil {
		return err
	}
	s.queue.push(item{Chunk: Chunk{Patch: p}})
	s.wake()
	return nil
}

// listen says whether the client wants the turn that begins.
func (s *stream) listen(wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell()
	s.muted = !wanted
}

// endTurn keeps the end of a turn, or the error of a turn that failed.
func (s *stream) endTurn(last item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && !s.ended && !s.muted {
		s.last = &last
	}
}

// tell queues the end of the last turn. The caller holds s.mu.
func (s *stream) tell() {
	if s.last == nil {
		return
	}
	s.queue.push(*s.last)
	s.last = nil
	s.wake()
}

// wake wakes the client. The caller holds s.mu.
func (s *stream) wake() {
	close(s.ready)
	s.ready = make(chan struct{})
}

// end ends the stream. err is nil if the runner ended normally.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.tell()
		s.ended, s.err = true, err
		s.wake()
	}
}

// close drops all chunks from now on.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queue, s.last = true, unread{}, nil
	s.wake()
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// next returns the next chunk; false at the end, and the error that ended the stream.
func (s *stream) next(ctx context.Context) (Chunk, bool, error) {
	for {
		s.mu.Lock()
		if c, ok := s.queue.pop(); ok {
			s.mu.Unlock()
			return c.Chunk, c.err == nil, c.err
		}
		err, over, ready := s.err, s.ended || s.closed, s.ready
		s.mu.Unlock()
		if over {
			return Chunk{}, false, err
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return Chunk{}, false, ctx.Err()
		}
	}
}

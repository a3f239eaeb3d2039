package flow

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Chunk is one thing that happened in a running turn; one field is set, besides Attempt.
// Deltas, progress and patches are not in the log: a client that reads the log instead
// sees their results.
type Chunk struct {
	// Delta is a piece of an answer.
	Delta *eventlog.Delta
	// Message is a message of the turn, and Artifact an artifact.
	Message  *event.Message
	Artifact *event.Artifact
	// Progress is a value of Turn.Progress or Progress.
	Progress any
	// Patch is a change of the custom state, a JSON Patch. The first patch of a turn
	// replaces the whole state.
	Patch jsontext.Value
	// Snapshot is the id of a snapshot that was made.
	Snapshot string
	// Attempt is the attempt of the call that a delta or progress belongs to. The deltas of
	// earlier attempts are void.
	Attempt int
	// EndTurn is the end of the turn.
	EndTurn *TurnEnd
}

// Text is the text of a delta of an answer's text, else empty.
func (c Chunk) Text() string {
	if c.Delta == nil || c.Delta.Kind != event.TextPart {
		return ""
	}
	return c.Delta.Text
}

// TurnEnd says how a turn ended.
type TurnEnd struct {
	Turn       ulid.ULID
	Status     event.TurnStatus
	StopReason string
	// Snapshot is the snapshot at the end of the turn, empty if the policy declined.
	Snapshot string
}

// stream is the queue of chunks between a runner and its client. put never waits: deltas
// that the client has not read are joined.
type stream struct {
	mu     sync.Mutex
	queue  []item
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
	if n := len(s.queue); n > 0 && s.queue[n-1].err == nil && s.queue[n-1].joins(&c) {
		d := *s.queue[n-1].Delta
		d.Text += c.Delta.Text
		s.queue[n-1].Delta = &d
		return
	}
	s.queue = append(s.queue, item{Chunk: c})
	s.wake()
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
	s.queue = append(s.queue, *s.last)
	s.last = nil
	s.wake()
}

// joins reports whether two chunks are pieces of one part.
func (c *Chunk) joins(next *Chunk) bool {
	a, b := c.Delta, next.Delta
	return a != nil && b != nil && c.Attempt == next.Attempt && a.Message == b.Message && a.Part == b.Part && a.Kind == b.Kind
}

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
	s.closed, s.queue, s.last = true, nil, nil
	s.wake()
}

// next returns the next chunk; false at the end, and the error that ended the stream.
func (s *stream) next(ctx context.Context) (Chunk, bool, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			c := s.queue[0]
			s.queue = s.queue[1:]
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

package eventlog

import (
	"fmt"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
)

// stagedEvents are the sealed events of a batch that is not written yet.
type stagedEvents struct {
	head   event.Head // of the newest staged event, or the session's
	events []event.Event
	ids    map[ulid.ULID]int64 // seqs of the events
	alone  bool                // the batch is one request
	buf    []byte              // the events' lines
	salt   [16]byte            // of the event being sealed
	fork   *event.Fork         // of a session that the batch creates as a fork
}

func (s *stagedEvents) begin(head event.Head, alone bool) {
	s.head, s.alone, s.fork = head, alone, nil
	s.events, s.buf = s.events[:0], s.buf[:0]
	clear(s.ids)
}

// add seals a line after prev and stages its event.
func (s *stagedEvents) add(l *line.Line, prev event.Hash, salt [16]byte) error {
	start := len(s.buf)
	s.buf = l.Append(s.buf, line.Hash(prev), salt)
	e, err := event.Parse(s.buf[start:len(s.buf):len(s.buf)], l.Session)
	if err != nil {
		return fmt.Errorf("read the sealed line: %w", err)
	}
	s.head = e.Head()
	if len(s.events) > 0 || l.More > 0 || !s.alone { // else no other id can repeat it
		if s.ids == nil {
			s.ids = map[ulid.ULID]int64{}
		}
		s.ids[e.ID] = e.Seq
	}
	s.events = append(s.events, e)
	return nil
}

// stagedMark is a point to go back to.
type stagedMark struct {
	head          event.Head
	events, bytes int
}

func (s *stagedEvents) mark() stagedMark { return stagedMark{s.head, len(s.events), len(s.buf)} }

// reset drops the events staged since a mark.
func (s *stagedEvents) reset(m stagedMark) {
	for _, e := range s.events[m.events:] {
		delete(s.ids, e.ID)
	}
	s.head, s.events, s.buf = m.head, s.events[:m.events], s.buf[:m.bytes]
	if m.events == 0 {
		s.fork = nil
	}
}

// between collects the staged events with seqs from..to.
func (s *stagedEvents) between(from, to int64) (events []event.Event) {
	for i := range s.events {
		if seq := s.events[i].Seq; from <= seq && seq <= to {
			events = append(events, s.events[i])
		}
	}
	return events
}

const (
	// minBuffer is the least that a buffer of lines grows by.
	minBuffer = 16 << 10
	// largeBuffer is the most that a session keeps between appends.
	largeBuffer = 64 << 10
)

// largeBuffers are buffers that no session uses at present.
var largeBuffers sync.Pool

// reserve makes room for lines of that many bytes.
func (s *stagedEvents) reserve(size int) {
	if size <= cap(s.buf)-len(s.buf) {
		return
	}
	if len(s.buf) == 0 && size > largeBuffer {
		if spare, ok := largeBuffers.Get().(*[]byte); ok {
			s.buf = *spare
		}
	}
	s.buf = slices.Grow(s.buf, max(size, minBuffer))
}

// release empties the batch after it was written. shared says that watchers keep
// the lines.
func (s *stagedEvents) release(shared bool) {
	switch {
	case shared:
		s.buf = s.buf[len(s.buf):]
	case cap(s.buf) > largeBuffer:
		spare := s.buf[:0]
		largeBuffers.Put(&spare)
		s.buf = nil
	}
	clear(s.events)
	s.events = s.events[:0]
	if cap(s.buf) > largeBuffer {
		s.buf = nil
	}
}

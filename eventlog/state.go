package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/sealed"
)

// sessionState is the leader's memory of a session between its appends, so that an
// append does not read the store.
type sessionState struct {
	log     *Log
	session string
	tail    tail         // the end of the stored session
	staged  stagedEvents // the batch that is not written yet
	calls   openCalls    // tool calls without a result
}

// tail describes the end of the stored session.
type tail struct {
	loaded bool
	fresh  bool // the current leader has loaded it
	behind bool // it was loaded, and other processes have appended since
	head   event.Head
	cut    *event.Cut // a torn tail that the next append must name
	// orphan is set if the parent of a fork is missing or ends before the fork point.
	// Nothing is appended to an unreadable session.
	orphan error
	recent recentIDs
}

// forget discards the memory of the session, except a cut that the next append must
// name.
func (st *sessionState) forget() {
	*st = sessionState{
		log: st.log, session: st.session, tail: tail{cut: st.tail.cut},
		staged: stagedEvents{events: st.staged.events[:0], ids: st.staged.ids, buf: st.staged.buf},
	}
}

// fallBehind discards the memory of the session, except its tail: the next load reads only
// the events after it.
func (st *sessionState) fallBehind() {
	known := st.tail
	known.loaded, known.fresh, known.behind = false, false, true
	st.forget()
	st.tail = known
}

// unstage drops the events that were staged after the mark, and the older calls that
// their validation found.
func (st *sessionState) unstage(m stagedMark) {
	st.staged.reset(m)
	st.calls.restart(m.head.Seq)
}

// seqOf is the seq of the event with that id, if it is staged or near the tail.
func (st *sessionState) seqOf(id ulid.ULID) (seq int64, ok bool) {
	if seq, ok = st.staged.ids[id]; !ok {
		seq, ok = st.tail.recent.seqs[id]
	}
	return seq, ok
}

// tailEvents is the number of events that load reads.
const tailEvents = 64

// load reads the session's tail, unless it is in memory.
func (st *sessionState) load(ctx context.Context) error {
	if st.tail.loaded {
		return nil
	}
	caughtUp, newest, err := st.catchUp(ctx)
	if caughtUp {
		return nil
	}
	st.forget()
	if err == nil && newest == nil {
		newest, err = st.readTail(ctx, 0)
	}
	if err != nil {
		return fmt.Errorf("read tail of session %q: %w", st.session, err)
	}
	for i := len(newest) - 1; i >= 0; i-- {
		st.tail.recent.add(newest[i].ID, newest[i].Seq)
	}
	if len(newest) > 0 {
		st.tail.head = newest[0].Head()
	}
	st.calls.restart(st.tail.head.Seq)
	if st.tail.orphan, err = st.checkParent(ctx, newest); err != nil {
		return fmt.Errorf("read tail of session %q: %w", st.session, err)
	}
	st.tail.loaded, st.tail.fresh = true, true
	return nil
}

// catchUp adds the events after a tail that is behind. It returns false if they do not
// follow the known head. If they are as many as load reads, it returns them, newest first.
func (st *sessionState) catchUp(ctx context.Context) (done bool, tail []event.Event, err error) {
	known := &st.tail
	if !known.behind || known.head.IsZero() || known.orphan != nil {
		return false, nil, nil
	}
	newer, err := st.readTail(ctx, known.head.Seq+1)
	if err != nil || len(newer) == 0 {
		return false, nil, err
	}
	if next := &newer[len(newer)-1]; next.Seq != known.head.Seq+1 || !next.Follows(known.head.Hash) {
		if len(newer) < tailEvents {
			newer = nil
		}
		return false, newer, nil
	}
	for i := len(newer) - 1; i >= 0; i-- {
		known.recent.add(newer[i].ID, newer[i].Seq)
	}
	known.head = newer[0].Head()
	st.calls.restart(known.head.Seq)
	known.loaded, known.fresh, known.behind = true, true, false
	return true, nil, nil
}

// readTail reads the newest events from a seq on, newest first. A missing session has no
// events.
func (st *sessionState) readTail(ctx context.Context, from int64) (newest []event.Event, err error) {
	for e, err := range st.log.store.Read(ctx, st.session, Span{From: from, Backward: true, Limit: tailEvents}) {
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		newest = append(newest, e)
	}
	return newest, nil
}

// checkParent returns orphan if the session is a fork whose parent is missing or too
// short. newest are the newest events of the session.
func (st *sessionState) checkParent(ctx context.Context, newest []event.Event) (orphan, err error) {
	if len(newest) == 0 {
		return nil, nil
	}
	first := newest[len(newest)-1]
	if len(newest) == tailEvents && first.Seq > 1 && first.Type != event.SessionForked {
		if first, err = st.log.firstEvent(ctx, st.session); err != nil {
			return nil, err
		}
	}
	f, forked, err := event.Decode[event.Fork](&first)
	if err != nil || !forked || f.Seq == 0 {
		return nil, err
	}
	parent, err := st.log.Head(ctx, f.Parent)
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("parent of session %q: %w", st.session, err), nil
	case err == nil && parent.Seq < f.Seq:
		return missingEvent(f.Parent, f.Seq), nil
	}
	return nil, err
}

// recentIDs is a map of the newest ids to their seqs.
type recentIDs struct {
	seqs  map[ulid.ULID]int64
	order []ulid.ULID // a ring once it is full
	next  int
}

// maxRecent is the number of ids in recentIDs.
const maxRecent = 1024

func (r *recentIDs) add(id ulid.ULID, seq int64) {
	if r.seqs == nil {
		r.seqs = map[ulid.ULID]int64{}
	}
	if len(r.order) < maxRecent {
		r.order = append(r.order, id)
	} else {
		delete(r.seqs, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % maxRecent
	}
	r.seqs[id] = seq
}

// stagedEvents are the finished events of a batch that is not written yet.
type stagedEvents struct {
	head   event.Head // of the newest staged event, or of the session if none is staged
	events []event.Event
	ids    map[ulid.ULID]int64 // seqs of the events
	single bool                // the batch is one request
	buf    []byte              // the events' lines
	salt   [16]byte            // of the event being sealed
	fork   *event.Fork         // of a session that the batch creates as a fork
}

// begin empties the batch. Its first event follows head.
func (s *stagedEvents) begin(head event.Head, single bool) {
	s.head, s.single, s.fork = head, single, nil
	s.events, s.buf = s.events[:0], s.buf[:0]
	clear(s.ids)
}

// add makes the line of an event that follows prev, and stages the event.
func (s *stagedEvents) add(l *line.Line, prev event.Hash, salt [16]byte) {
	s.buf = l.Append(s.buf, line.Hash(prev), salt)
	s.events = append(s.events, event.Event{})
	e := &s.events[len(s.events)-1]
	sealed.Fill(e, l)
	s.head = e.Head()
	if len(s.events) > 1 || l.More > 0 || !s.single { // else no other id can repeat it
		if s.ids == nil {
			s.ids = map[ulid.ULID]int64{}
		}
		s.ids[e.ID] = e.Seq
	}
}

// stagedMark is a point that reset returns to.
type stagedMark struct {
	head          event.Head
	events, bytes int
}

func (s *stagedEvents) mark() stagedMark { return stagedMark{s.head, len(s.events), len(s.buf)} }

// reset drops the events that were staged after the mark.
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
func (s *stagedEvents) between(from, to int64) []event.Event {
	events := make([]event.Event, 0, max(min(to-from+1, int64(len(s.events))), 0))
	for i := range s.events {
		if seq := s.events[i].Seq; from <= seq && seq <= to {
			events = append(events, s.events[i])
		}
	}
	return events
}

const (
	// minBuffer is the least growth of a buffer of lines, in bytes.
	minBuffer = 16 << 10
	// largeBuffer is the largest buffer that a session keeps between appends.
	largeBuffer = 64 << 10
	// manyEvents is the most events for which a session keeps room between appends.
	manyEvents = 128
)

// largeBuffers are free buffers.
var largeBuffers sync.Pool

// reserve makes room in the buffer for lines of size bytes.
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

// release empties the batch after it was written. If shared is true, watchers keep
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
	if cap(s.events) > manyEvents {
		s.events, s.ids = nil, nil
	}
	if cap(s.buf) > largeBuffer {
		s.buf = nil
	}
}

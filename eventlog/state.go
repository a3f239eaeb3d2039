package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// state is what the leader of a session's appends knows of it: the head, the
// calls that are pending on the active path, and the ids near the tail.
type state struct {
	loaded bool
	fresh  bool // loaded by the lead under way, not remembered from before
	head   Head
	cut    *Cut // a torn tail that the next append must name
	// orphan says that the parent of a fork is gone, or was cut below the fork
	// point: nothing is appended to what cannot be read.
	orphan error

	calls  calls
	recent recentIDs

	// The batch being staged.
	cur    Head
	events []Event
	ids    map[ulid.ULID]int64 // seqs
	lone   bool                // the batch is a single request
	buf    []byte
	salt   [16]byte // of the event being sealed
	fork   *Fork    // of a session that the batch creates as a fork
}

// The number of events near the tail whose ids are compared with new ones.
const recentWindow = 1024

// loadWindow is how many events are read when a session becomes hot.
const loadWindow = 64

// drop forgets what is known of the session, but for a cut that is owed.
func (st *state) drop() {
	*st = state{cut: st.cut, events: st.events[:0], ids: st.ids, buf: st.buf}
}

// begin starts staging a batch behind the head; lone says that it is a single
// request.
func (st *state) begin(lone bool) {
	st.lone = lone
	st.cur, st.fork = st.head, nil
	st.events, st.buf = st.events[:0], st.buf[:0]
	clear(st.ids)
}

func (st *state) stage(e Event) {
	if len(st.events) == 0 && e.More() == 0 && st.lone {
		st.events = append(st.events, e)
		return // there is none to compare its id with
	}
	if st.ids == nil {
		st.ids = map[ulid.ULID]int64{}
	}
	st.ids[e.ID] = e.Seq
	st.events = append(st.events, e)
}

// unstage forgets what one request staged, and what was learnt of calls on its
// way: they are searched anew when they matter.
func (st *state) unstage(cur Head, events, buffered int) {
	for _, e := range st.events[events:] {
		delete(st.ids, e.ID)
	}
	st.cur, st.events, st.buf = cur, st.events[:events], st.buf[:buffered]
	st.calls = calls{back: cur.Seq}
	if events == 0 {
		st.fork = nil
	}
}

const (
	// minBuffer is the least that a session's buffer of lines grows by.
	minBuffer = 16 << 10
	// largeBuffer is the most that it keeps between appends.
	largeBuffer = 64 << 10
)

// largeBuffers are those that no session uses at present.
var largeBuffers sync.Pool

// reserve makes room for lines of so many bytes.
func (st *state) reserve(size int) {
	if size <= cap(st.buf)-len(st.buf) {
		return
	}
	if len(st.buf) == 0 && size > largeBuffer {
		if spare, ok := largeBuffers.Get().(*[]byte); ok {
			st.buf = *spare
		}
	}
	st.buf = slices.Grow(st.buf, max(size, minBuffer))
}

// giveBack gives up a large buffer, whose lines nobody needs any more.
func (st *state) giveBack() {
	if cap(st.buf) > largeBuffer {
		spare := st.buf[:0]
		largeBuffers.Put(&spare)
		st.buf = nil
	}
}

// taken reports whether an event near the tail, or one of the batch, has id,
// and where.
func (st *state) taken(id ulid.ULID) (seq int64, ok bool) {
	if seq, ok = st.ids[id]; !ok {
		seq, ok = st.recent.seqs[id]
	}
	return seq, ok
}

// load reads the session's tail, if st has none.
func (l *Log) load(ctx context.Context, session string, st *state) error {
	if st.loaded {
		return nil
	}
	return l.reload(ctx, session, st)
}

func (l *Log) reload(ctx context.Context, session string, st *state) error {
	st.drop()
	tail, err := l.tail(ctx, session)
	if err != nil {
		return fmt.Errorf("read tail of session %q: %w", session, err)
	}
	for i := len(tail) - 1; i >= 0; i-- {
		st.recent.add(tail[i].ID, tail[i].Seq)
	}
	if len(tail) > 0 {
		st.head = tail[0].Head()
	}
	st.calls = calls{back: st.head.Seq}
	if st.orphan, err = l.orphaned(ctx, session, tail); err != nil {
		return fmt.Errorf("read tail of session %q: %w", session, err)
	}
	st.loaded, st.fresh = true, true
	return nil
}

// orphaned says, given the newest events of a session, why it cannot be read if it
// is a fork.
func (l *Log) orphaned(ctx context.Context, session string, tail []Event) (orphan, err error) {
	if len(tail) == 0 {
		return nil, nil
	}
	first := tail[len(tail)-1]
	if len(tail) == loadWindow && first.Seq > 1 && first.Type != SessionForked {
		if first, err = l.firstEvent(ctx, session); err != nil {
			return nil, err
		}
	}
	f, forked, err := first.Fork()
	if err != nil || !forked || f.Seq == 0 {
		return nil, err
	}
	parent, err := l.Head(ctx, f.Parent)
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("parent of session %q: %w", session, err), nil
	case err == nil && parent.Seq < f.Seq:
		return (&segment{session: f.Parent}).missing(f.Seq), nil
	}
	return nil, err
}

// tail reads the newest events, newest first; none of a missing session.
func (l *Log) tail(ctx context.Context, session string) (tail []Event, err error) {
	for e, err := range l.store.Read(ctx, session, Span{Backward: true, Limit: loadWindow}) {
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		tail = append(tail, e)
	}
	return tail, nil
}

// recentIDs remembers the ids of the newest events.
type recentIDs struct {
	seqs  map[ulid.ULID]int64
	order []ulid.ULID // a ring once it is full
	next  int
}

func (r *recentIDs) add(id ulid.ULID, seq int64) {
	if r.seqs == nil {
		r.seqs = map[ulid.ULID]int64{}
	}
	if len(r.order) < recentWindow {
		r.order = append(r.order, id)
	} else {
		delete(r.seqs, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % recentWindow
	}
	r.seqs[id] = seq
}

// calls tracks which tool calls are pending on the active path: exactly for
// the events that were folded, and by search further back.
type calls struct {
	pending map[string]struct{}
	// ended are calls that are known to have ended, while back is not 0.
	ended map[string]struct{}
	// back is the seq of the path event to fold next when searching back; 0
	// when the whole path is folded.
	back int64
}

func (c *calls) isPending(id string) bool {
	_, ok := c.pending[id]
	return ok
}

func (c *calls) open(id string) {
	delete(c.ended, id)
	c.pending = with(c.pending, id)
}

// end ends a pending call. While older events are still to be folded it is
// remembered as ended, so that no older call of the same id is found instead.
func (c *calls) end(id string) {
	delete(c.pending, id)
	if c.back > 0 {
		c.ended = with(c.ended, id)
	}
}

// move is a head_moved to seq: what is pending there is not known yet.
func (c *calls) move(to int64) { *c = calls{back: to} }

// fold takes in an older event of the path: of all events that name a call, the
// newest decides, and in one event its calls.
func (c *calls) fold(f *facts) {
	for _, id := range f.calls {
		if !c.knows(id) {
			c.pending = with(c.pending, id)
		}
	}
	for _, id := range f.results {
		if !c.knows(id) {
			c.ended = with(c.ended, id)
		}
	}
}

func with(set map[string]struct{}, id string) map[string]struct{} {
	if set == nil {
		set = map[string]struct{}{}
	}
	set[id] = struct{}{}
	return set
}

// isOpen reports whether call id is pending at the end of what is staged. It
// folds older events of the active path until it knows.
func (l *Log) isOpen(ctx context.Context, session string, st *state, id string) (bool, error) {
	c := &st.calls
	for c.back > 0 && !c.knows(id) {
		if err := l.foldStretch(ctx, session, st, id); err != nil {
			return false, fmt.Errorf("search back for call %q: %w", clip(id), err)
		}
	}
	return c.isPending(id), nil
}

func (c *calls) knows(id string) bool {
	_, ended := c.ended[id]
	return ended || c.isPending(id)
}

// foldStretch folds backwards from c.back to the next head_moved, or until id
// is known.
func (l *Log) foldStretch(ctx context.Context, session string, st *state, id string) error {
	c := &st.calls
	for c.back > st.head.Seq && len(st.events) > 0 && c.back >= st.events[0].Seq {
		e := &st.events[c.back-st.events[0].Seq]
		if turned, err := c.foldEvent(e); err != nil || turned || c.knows(id) {
			return err
		}
	}
	if c.back == 0 {
		return nil
	}
	if st.head.IsZero() && st.fork != nil {
		session = st.fork.Parent
	}
	for e, err := range l.lineage(ctx, session, Between(0, c.back).Backward()) {
		if err == nil && (e.Type.Name() == MessageAdded || e.Type.Name() == HeadMoved) {
			err = l.resolve(ctx, &e) // bodies of other events are not needed
		}
		if err != nil {
			return err
		}
		if turned, err := c.foldEvent(&e); err != nil || turned || c.knows(id) {
			return err
		}
	}
	if c.back > 0 {
		return &CorruptError{Session: session, Offset: -1, Seq: c.back, Cause: errPathEnds}
	}
	return nil
}

var errPathEnds = errors.New("an event of the active path is missing")

// foldEvent folds the event at c.back; turned says that the path goes on
// elsewhere than at the event before it.
func (c *calls) foldEvent(e *Event) (turned bool, err error) {
	f, err := e.pathFacts()
	if err != nil {
		return false, err
	}
	if f.moves {
		c.back = f.to
		return true, nil
	}
	c.back = e.Seq - 1
	c.fold(f)
	return false, nil
}

// pathFacts reads what an event says of calls and of the path.
func (e *Event) pathFacts() (*facts, error) {
	if name := e.Type.Name(); name != MessageAdded && name != HeadMoved && name != Lost {
		return &facts{}, nil
	}
	if e.Redacted() {
		f, err := keptFacts(e.Kept())
		if err != nil {
			return nil, fmt.Errorf("%s %d of %q: kept: %w: %w", e.Type, e.Seq, e.SessionID, ErrInvalidPayload, err)
		}
		return f, nil
	}
	p, err := vocabulary[e.Type.Name()].parse(e.Type, e.Data)
	if err != nil {
		return nil, fmt.Errorf("%s %d of %q: %w: %w", e.Type, e.Seq, e.SessionID, ErrInvalidPayload, err)
	}
	return factsOf(p, e.Data), nil
}

// keptFacts reads the facts of a redacted message from what was kept of it.
func keptFacts(kept jsontext.Value) (*facts, error) {
	var ids struct {
		Calls   []string `json:"calls"`
		Results []string `json:"results"`
	}
	err := json.Unmarshal(kept, &ids)
	return &facts{calls: ids.Calls, results: ids.Results}, err
}

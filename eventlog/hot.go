package eventlog

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// hot is what a log keeps in memory of a session in use: the queue of its
// appends, and the watchers. Appends of one session are led by one goroutine
// at a time, which takes all that wait and writes them together.
type hot struct {
	session string
	users   atomic.Int32

	mu    sync.Mutex
	led   bool
	queue []*request
	base  Head // at or before which nothing of the batch under way stands

	// Of the leader only:
	state state
	batch []*request

	watch  watchers
	deltas deltas
}

// retired is added to the users of a hot session that was evicted.
const retired = -1 << 30

// pin counts a user in, unless h was evicted.
func (h *hot) pin() bool {
	for {
		n := h.users.Load()
		if n < 0 {
			return false
		}
		if h.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// retire keeps users out, if there is none.
func (h *hot) retire() bool { return h.users.CompareAndSwap(0, retired) }

// request is one append, or one operation that needs the session to itself.
type request struct {
	ctx    context.Context
	expect Expect
	events []Event
	// alone, if set, is run by the leader instead of an append.
	alone func(ctx context.Context, st *state) error
	// after is where to look for the events first, after an outcome that was
	// unknown to this log itself.
	after  *Head
	turn   chan struct{} // closed to make it the leader
	done   chan struct{} // closed when a leader has dealt with it
	taken  bool          // by a leader, or made one; guarded by hot.mu
	gone   bool          // its caller left while it was in flight; guarded by hot.mu
	head   Head
	err    error
	staged bool // to be written with the batch under way
	judged bool // refused, or found to stand already, whatever becomes of the batch
	// unlock ends the store lock that the append is made under. The leader calls
	// it when the caller is gone: the events may still be written then, and
	// their blobs must not be removed before.
	unlock func()
	one    [1]Event
}

// requests are kept for reuse: appends of one event are the common case, and
// need nothing else of the heap.
var requests = sync.Pool{New: func() any { return new(request) }}

// newRequest makes a request for one or more appends of copies of events.
func newRequest(ctx context.Context, expect Expect, appends ...[]Event) *request {
	r := requests.Get().(*request)
	r.ctx, r.expect = ctx, expect
	r.events = r.one[:0]
	for _, events := range appends {
		r.events = append(r.events, events...)
		for i := range events {
			r.events[len(r.events)-1-i].more = int32(i)
		}
	}
	return r
}

// recycle gives back a request that no leader will touch any more.
func (r *request) recycle() {
	*r = request{}
	requests.Put(r)
}

// submit queues r and waits for its outcome, leading when it is r's turn.
func (l *Log) submit(h *hot, r *request) (Head, error) {
	h.mu.Lock()
	if !h.led {
		h.led = true
		r.taken = true
		h.mu.Unlock()
		l.lead(h, r)
		return r.head, r.err
	}
	r.turn, r.done = make(chan struct{}), make(chan struct{})
	h.queue = append(h.queue, r)
	h.mu.Unlock()
	select {
	case <-r.done:
		return r.head, r.err
	case <-r.turn:
		// Those whom the last batch woke join this one.
		runtime.Gosched()
		l.lead(h, r)
		return r.head, r.err
	case <-r.ctx.Done():
		return l.leave(h, r)
	}
}

// leave gives up on a queued request: nothing is written if no leader has
// taken it, else its outcome is unknown.
func (l *Log) leave(h *hot, r *request) (Head, error) {
	h.mu.Lock()
	if !r.taken {
		h.queue = slices.DeleteFunc(h.queue, func(queued *request) bool { return queued == r })
		h.mu.Unlock()
		return Head{}, r.uncertain(h.session, r.ctx.Err())
	}
	select {
	case <-r.done:
		h.mu.Unlock()
		return r.head, r.err
	case <-r.turn:
		// The lead was handed over just now: pass it on, having done nothing.
		h.mu.Unlock()
		l.handOver(h)
		return Head{}, r.uncertain(h.session, r.ctx.Err())
	default:
	}
	r.gone = true
	base := h.base
	h.mu.Unlock()
	if r.expect.kind == expectAt || r.expect.kind == expectAnyAfter {
		base = r.expect.head
	}
	return Head{}, &UnknownOutcomeError{Session: h.session, Head: base, Cause: r.ctx.Err()}
}

// lead runs own and what has queued up behind it, then hands over.
func (l *Log) lead(h *hot, own *request) {
	batch := h.take(own)
	unknown := l.run(h, own, batch)
	h.settle(own, batch, unknown)
	l.handOver(h)
}

// take forms a batch: own first, then queued appends up to the size bound. An
// operation that runs alone is a batch of its own.
func (h *hot) take(own *request) []*request {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := append(h.batch[:0], own)
	if own.alone == nil {
		size := own.size()
		for len(h.queue) > 0 && h.queue[0].alone == nil {
			if size += h.queue[0].size(); size > maxAppend {
				break
			}
			h.queue[0].taken = true
			batch = append(batch, h.queue[0])
			h.queue = h.queue[1:]
		}
	}
	h.batch = batch
	return batch
}

// settle tells the others of the batch their outcome. Those in again, whose
// outcome depended on own's context, are queued again, first in line.
func (h *hot) settle(own *request, batch, again []*request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range again {
		r.taken, r.head, r.err = false, Head{}, nil
	}
	again = slices.DeleteFunc(slices.Clone(again), func(r *request) bool { return r.gone })
	h.queue = append(again, h.queue...)
	for _, r := range batch {
		if r.gone && r.unlock != nil {
			r.unlock()
		}
		if r != own && r.taken {
			close(r.done)
		}
	}
	clear(batch)
}

// handOver makes the first in the queue the leader, or ends the lead.
func (l *Log) handOver(h *hot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.led = false
		return
	}
	next := h.queue[0]
	h.queue = h.queue[1:]
	next.taken = true
	close(next.turn)
}

// uncertain is the error of a request that was given up: once an earlier try
// has had an unknown outcome, so has the request.
func (r *request) uncertain(session string, err error) error {
	if r.after == nil {
		return err
	}
	return &UnknownOutcomeError{Session: session, Head: *r.after, Cause: err}
}

func (r *request) size() int {
	n := 0
	for i := range r.events {
		n += r.events[i].lineBound()
	}
	return n
}

// alone runs fn while no append of the session is under way. fn gets the
// session's state, which it must load or drop itself.
func (l *Log) alone(ctx context.Context, session string, fn func(ctx context.Context, st *state) error) error {
	h := l.acquire(session)
	defer l.release(h)
	_, err := l.submit(h, &request{ctx: ctx, alone: fn})
	return err
}

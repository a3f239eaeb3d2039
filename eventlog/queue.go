package eventlog

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// hotSession is what a log keeps in memory of a session in use: the queue of its
// appends and its watchers. One goroutine at a time leads the appends of a
// session: it writes its own request and all that are queued as one batch.
type hotSession struct {
	id    string
	users atomic.Int32

	mu    sync.Mutex
	led   bool // there is a leader
	queue []*request
	base  event.Head // no event of the running batch is stored at or before it

	// The leader owns these.
	state sessionState
	batch []*request

	watch  watchers
	deltas deltas
}

// acquire finds or makes the hot state of a session. Release it after use.
func (l *Log) acquire(session string) *hotSession {
	if h := l.findHot(session); h != nil && h.pin() {
		return h
	}
	l.hotMu.Lock()
	defer l.hotMu.Unlock()
	if h := l.findHot(session); h != nil && h.pin() {
		return h
	}
	l.evict()
	h := &hotSession{id: session}
	h.pin()
	l.hot.Store(session, h)
	l.hots++
	return h
}

func (l *Log) release(h *hotSession) { h.users.Add(-1) }

// findHot is the hot state of a session, or nil.
func (l *Log) findHot(session string) *hotSession {
	h, _ := l.hot.Load(session)
	found, _ := h.(*hotSession)
	return found
}

// evict makes room for one more hot session, if any is idle. hotMu is held.
func (l *Log) evict() {
	if l.hots < l.opts.HotSessions {
		return
	}
	l.hot.Range(func(session, h any) bool {
		if h.(*hotSession).retire() {
			l.hot.Delete(session)
			l.hots--
		}
		return l.hots >= l.opts.HotSessions
	})
}

// retired is the user count of an evicted session.
const retired = -1 << 30

// pin adds a user, unless h was evicted.
func (h *hotSession) pin() bool {
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

// retire refuses further users, if there are none.
func (h *hotSession) retire() bool { return h.users.CompareAndSwap(0, retired) }

// submit queues r and waits for its outcome. It leads when it is r's turn.
func (l *Log) submit(h *hotSession, r *request) (event.Head, error) {
	h.mu.Lock()
	if !h.led {
		h.led = true
		r.taken = true
		h.mu.Unlock()
		l.lead(h, r)
		return r.head, r.err
	}
	r.lead, r.done = make(chan struct{}), make(chan struct{})
	h.queue = append(h.queue, r)
	h.mu.Unlock()
	select {
	case <-r.done:
		return r.head, r.err
	case <-r.lead:
		// Callers that the last batch woke can still join this one.
		runtime.Gosched()
		l.lead(h, r)
		return r.head, r.err
	case <-r.ctx.Done():
		return l.leave(h, r)
	}
}

// leave gives up a queued request. Nothing is written if no leader has taken it;
// else its outcome is unknown.
func (l *Log) leave(h *hotSession, r *request) (event.Head, error) {
	h.mu.Lock()
	if !r.taken {
		h.queue = slices.DeleteFunc(h.queue, func(queued *request) bool { return queued == r })
		h.mu.Unlock()
		return event.Head{}, r.uncertain(h.id, r.ctx.Err())
	}
	select {
	case <-r.done:
		h.mu.Unlock()
		return r.head, r.err
	case <-r.lead:
		// It became the leader just now: hand over without having done anything.
		h.mu.Unlock()
		l.handOver(h)
		return event.Head{}, r.uncertain(h.id, r.ctx.Err())
	default:
	}
	r.abandoned = true
	base := h.base
	h.mu.Unlock()
	if r.expect.kind == expectAt || r.expect.kind == expectAnyAfter {
		base = r.expect.head
	}
	return event.Head{}, &UnknownOutcomeError{Session: h.id, Head: base, Cause: r.ctx.Err()}
}

// lead runs own and the queued requests as a batch, then hands over.
func (l *Log) lead(h *hotSession, own *request) {
	batch := h.takeBatch(own)
	again := l.run(h, own, batch)
	h.answer(own, batch, again)
	l.handOver(h)
}

// takeBatch forms a batch: own first, then queued appends up to the size bound. An
// exclusive operation is a batch of its own.
func (h *hotSession) takeBatch(own *request) []*request {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := append(h.batch[:0], own)
	if own.exclusive == nil {
		size := own.size()
		for len(h.queue) > 0 && h.queue[0].exclusive == nil {
			if size += h.queue[0].size(); size > engine.MaxAppend {
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

// answer tells the other requests of the batch their outcome. Those in again,
// whose outcome depended on own's context, go back to the front of the queue.
func (h *hotSession) answer(own *request, batch, again []*request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range again {
		r.taken, r.head, r.err = false, event.Head{}, nil
	}
	again = slices.DeleteFunc(slices.Clone(again), func(r *request) bool { return r.abandoned })
	h.queue = append(again, h.queue...)
	for _, r := range batch {
		if r.abandoned && r.unlock != nil {
			r.unlock()
		}
		if r != own && r.taken {
			close(r.done)
		}
	}
	clear(batch)
}

// handOver makes the first request of the queue the leader, if there is one.
func (l *Log) handOver(h *hotSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.led = false
		return
	}
	next := h.queue[0]
	h.queue = h.queue[1:]
	next.taken = true
	close(next.lead)
}

// uncertain is the error of a request that was given up. Once an earlier try had
// an unknown outcome, so has the request.
func (r *request) uncertain(session string, err error) error {
	if r.after == nil {
		return err
	}
	return &UnknownOutcomeError{Session: session, Head: *r.after, Cause: err}
}

// exclusively runs fn while no append of the session is running in this process.
// fn gets the session's state, which it must load or forget itself.
func (l *Log) exclusively(ctx context.Context, session string, fn func(ctx context.Context, st *sessionState) error) error {
	h := l.acquire(session)
	defer l.release(h)
	_, err := l.submit(h, &request{ctx: ctx, exclusive: fn})
	return err
}

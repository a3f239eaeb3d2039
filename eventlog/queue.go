package eventlog

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
)

// hotSession is a session in use: the queue of its appends, and its watchers. One
// caller at a time is the leader of the session. The leader writes its own request
// and the queued requests as one batch, then makes the next queued caller the leader.
type hotSession struct {
	id    string
	users atomic.Int32

	mu        sync.Mutex
	hasLeader bool
	queue     []*request
	base      event.Head // the events of the running batch come after this head

	// The leader owns these.
	state sessionState
	batch []*request

	watch  watchers
	deltas deltas
}

// acquire finds or makes the hot session. Release it after use.
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
	h := &hotSession{id: session, state: sessionState{log: l, session: session}}
	h.pin()
	l.hot.Store(session, h)
	l.hots++
	return h
}

func (l *Log) release(h *hotSession) { h.users.Add(-1) }

// findHot is the hot session, or nil.
func (l *Log) findHot(session string) *hotSession {
	h, _ := l.hot.Load(session)
	found, _ := h.(*hotSession)
	return found
}

// evict makes room for one more hot session, if one is idle. The caller has locked
// hotMu.
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

// retire refuses new users, if h has no users.
func (h *hotSession) retire() bool { return h.users.CompareAndSwap(0, retired) }

// submit queues r and waits for its outcome. If the session has no leader, or the
// leader hands over to r, submit leads.
func (l *Log) submit(h *hotSession, r *request) (event.Head, error) {
	h.mu.Lock()
	if !h.hasLeader {
		h.hasLeader = true
		r.inBatch = true
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

// leave ends the wait of a caller whose context has ended. Nothing is written if the
// request is still queued. The outcome is unknown if the request is in a batch.
func (l *Log) leave(h *hotSession, r *request) (event.Head, error) {
	h.mu.Lock()
	if !r.inBatch {
		h.queue = slices.DeleteFunc(h.queue, func(queued *request) bool { return queued == r })
		h.mu.Unlock()
		return event.Head{}, r.failure(h.id, r.ctx.Err())
	}
	select {
	case <-r.done:
		h.mu.Unlock()
		return r.head, r.err
	case <-r.lead:
		// The request became the leader just now: hand over at once.
		h.mu.Unlock()
		l.handOver(h)
		return event.Head{}, r.failure(h.id, r.ctx.Err())
	default:
	}
	r.abandoned = true
	base := h.base
	if r.after != nil {
		base = *r.after
	}
	h.mu.Unlock()
	if r.expect.kind == expectAt || r.expect.kind == expectAnyAfter {
		base = r.expect.head
	}
	return event.Head{}, &UnknownOutcomeError{Session: h.id, Head: base, Cause: r.ctx.Err()}
}

// lead writes own and the queued requests as one batch, then hands over.
func (l *Log) lead(h *hotSession, own *request) {
	batch := h.formBatch(own)
	retry := l.writeBatch(h, own, batch)
	h.answer(own, batch, retry)
	l.handOver(h)
}

// formBatch forms a batch: own first, then queued appends up to the size bound. An
// exclusive operation is a batch of its own.
func (h *hotSession) formBatch(own *request) []*request {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := append(h.batch[:0], own)
	if own.exclusive == nil {
		size := own.size()
		for len(h.queue) > 0 && h.queue[0].exclusive == nil {
			if size += h.queue[0].size(); size > own.limit {
				break
			}
			h.queue[0].inBatch = true
			batch = append(batch, h.queue[0])
			h.queue = h.queue[1:]
		}
	}
	h.batch = batch
	return batch
}

// answer wakes the callers of the other requests of the batch. The requests in retry
// return to the front of the queue.
func (h *hotSession) answer(own *request, batch, retry []*request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range retry {
		r.inBatch, r.head, r.err = false, event.Head{}, nil
	}
	retry = slices.DeleteFunc(slices.Clone(retry), func(r *request) bool { return r.abandoned })
	h.queue = append(retry, h.queue...)
	for _, r := range batch {
		if r.abandoned && r.unlock != nil {
			r.unlock()
		}
		if r != own && r.inBatch {
			close(r.done)
		}
	}
	clear(batch)
}

// handOver makes the first queued request the leader.
func (l *Log) handOver(h *hotSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.hasLeader = false
		return
	}
	next := h.queue[0]
	h.queue = h.queue[1:]
	next.inBatch = true
	close(next.lead)
}

// failure is the error of a request that was not written in this try. If an earlier
// try had an unknown outcome, the outcome of the request is unknown too.
func (r *request) failure(session string, err error) error {
	if r.after == nil {
		return err
	}
	return &UnknownOutcomeError{Session: session, Head: *r.after, Cause: err}
}

// exclusively runs fn while this process appends nothing to the session. fn must load
// or forget the state itself.
func (l *Log) exclusively(ctx context.Context, session string, fn func(ctx context.Context, st *sessionState) error) error {
	h := l.acquire(session)
	defer l.release(h)
	_, err := l.submit(h, &request{ctx: ctx, exclusive: fn})
	return err
}

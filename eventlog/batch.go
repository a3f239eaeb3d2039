package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
)

// writeBatch validates a batch and writes the accepted requests. It returns the requests that
// need another try because the context of own, the leader's request, has ended.
func (l *Log) writeBatch(h *hotSession, own *request, batch []*request) (retry []*request) {
	st := &h.state
	st.tail.fresh = false
	if own.exclusive != nil {
		own.err = own.exclusive(own.ctx, st)
		return nil
	}
	var refused refusals
	var losses backoff
	for {
		if err := l.usable(own.ctx); err != nil {
			own.err = own.failure(h.id, err)
			return batch[1:]
		}
		if err := h.stage(own.ctx, batch); err != nil {
			st.forget()
			return h.fail(own, batch, err)
		}
		if len(st.staged.events) == 0 {
			return nil
		}
		started := time.Now()
		ctx := engine.SetUnsynced(own.ctx, unsynced(batch))
		err := l.store.Append(ctx, h.id, st.tail.head, st.staged.events, durable(batch))
		if err == nil {
			h.commit(batch)
			return nil
		}
		shown := st.tail.head
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			st.forget()
			return h.fail(own, batch, err)
		}
		st.fallBehind()
		if err := refused.check(shown, conflict); err != nil {
			return h.fail(own, batch, err)
		}
		st.tail.cut = conflict.Cut
		if conflict.Cut == nil {
			losses.wait(own.ctx, time.Since(started))
		}
	}
}

// stage validates every request of the batch, in order, and stages the events of the
// accepted requests.
func (h *hotSession) stage(ctx context.Context, batch []*request) error {
	st := &h.state
	for {
		if err := st.load(ctx); err != nil {
			return err
		}
		h.mu.Lock()
		h.base = st.tail.head
		h.mu.Unlock()
		st.staged.begin(st.tail.head, len(batch) == 1)
		stale := false
		for _, r := range batch {
			r.head, r.err, r.staged, r.sealed, r.decided = event.Head{}, nil, false, false, false
			r.err = st.admit(ctx, r)
			if r.err != nil {
				if ended := ctx.Err(); ended != nil && errors.Is(r.err, ended) {
					return r.err // the leader's context has ended, not the context of r
				}
				if stale = !st.tail.fresh; stale {
					break
				}
			}
			// If events are staged, the decision on r may depend on their write.
			r.decided = !r.staged && len(st.staged.events) == 0
		}
		if !stale {
			return nil
		}
		st.tail.loaded = false // another process may have appended: decide again
	}
}

// admit decides on one request: its events are stored already, or it is refused, or
// its events are staged.
func (st *sessionState) admit(ctx context.Context, r *request) error {
	head, stored, err := st.checkExpectation(ctx, r)
	if stored && head.Seq <= st.tail.head.Seq {
		r.head = head
		return st.syncStored(ctx, r)
	}
	if err != nil || stored {
		r.head, r.staged = head, stored // an earlier request of the batch has staged the events
		return err
	}
	if st.tail.orphan != nil {
		return fmt.Errorf("append to session %q: %w", st.session, st.tail.orphan)
	}
	before := st.staged.mark()
	st.staged.reserve(r.size())
	for i := range r.entries {
		en := r.entries[i]
		if err := st.seal(ctx, &en, r.expect.lenient); err != nil {
			st.unstage(before)
			return fmt.Errorf("append to session %q: event %d (%s): %w", st.session, i+1, en.Type, err)
		}
	}
	r.head, r.staged, r.sealed = st.staged.head, true, true
	return nil
}

// seal validates an entry against the older events of the session, assigns its seq,
// salt and hash, and stages the event.
func (st *sessionState) seal(ctx context.Context, en *entry, lenient bool) error {
	if _, exists := st.seqOf(en.ID); exists {
		return &ConflictError{Session: st.session, Actual: st.staged.head, ID: en.ID.String()}
	}
	en.Seq = st.staged.head.Seq + 1
	prev := st.staged.head.Hash
	if f := en.facts.Fork; f != nil && st.staged.head.IsZero() {
		if err := st.log.checkFork(ctx, st.session, f); err != nil {
			return err
		}
		if o, ok := As[Syncer](st.log.store); !ok || !o.OrdersAppends() {
			if err := st.log.Sync(ctx, f.Parent); err != nil {
				return err
			}
		}
		en.Seq, prev = f.Seq+1, f.Hash
		st.staged.fork = f
		st.calls.restart(f.Seq)
	}
	if err := st.checkHistory(ctx, en, lenient); err != nil {
		return err
	}
	// The salt is in the state because a local array would escape to the heap.
	if _, err := st.log.opts.Random.Read(st.staged.salt[:]); err != nil {
		return fmt.Errorf("make salt: %w", err)
	}
	sealed := en.line()
	if st.tail.cut != nil && len(st.staged.events) == 0 {
		sealed.Cut = line.Cut{Bytes: st.tail.cut.Bytes, SHA256: line.Hash(st.tail.cut.SHA256)}
	}
	st.staged.add(&sealed, prev, st.staged.salt)
	return nil
}

// syncStored makes events that are stored already as durable as new ones. If that
// fails, the outcome stays unknown.
func (st *sessionState) syncStored(ctx context.Context, r *request) error {
	if err := st.log.Sync(ctx, st.session); err != nil {
		return &UnknownOutcomeError{Session: st.session, Head: r.expect.head, Cause: err}
	}
	return nil
}

// Sync makes the stored events of a session durable, under any sync policy of the store. It
// does nothing if the store is no Syncer.
func (l *Log) Sync(ctx context.Context, session string) error {
	if err := l.readable(ctx, session); err != nil {
		return err
	}
	syncer, ok := As[Syncer](l.store)
	if !ok {
		return nil
	}
	if err := syncer.Sync(ctx, session); err != nil {
		return fmt.Errorf("sync session %q: %w", session, err)
	}
	return nil
}

func durable(batch []*request) bool {
	return slices.ContainsFunc(batch, func(r *request) bool { return r.staged && r.expect.durable })
}

// unsynced reports whether no request of the batch needs a sync.
func unsynced(batch []*request) bool {
	return !slices.ContainsFunc(batch, func(r *request) bool { return r.staged && !r.expect.unsynced })
}

// commit moves the staged events to the tail, after the store has written them, and
// gives them to watchers.
func (h *hotSession) commit(batch []*request) {
	st := &h.state
	st.tail.head, st.tail.cut = st.staged.head, nil
	for i := range st.staged.events {
		st.tail.recent.add(st.staged.events[i].ID, st.staged.events[i].Seq)
	}
	shared := h.watch.publish(st.staged.events)
	for _, r := range batch {
		if r.fresh != nil {
			*r.fresh = r.sealed
		}
		if r.stored != nil && r.staged {
			*r.stored, shared = st.staged.between(r.head.Seq-int64(len(r.entries))+1, r.head.Seq), true
		}
	}
	st.staged.release(shared)
}

// fail gives err to every request that is not decided. If own's context has ended,
// only own fails, and the other requests need another try.
func (h *hotSession) fail(own *request, batch []*request, err error) (retry []*request) {
	canceled := own.ctx.Err() != nil
	var unknown *UnknownOutcomeError
	errors.As(err, &unknown)
	h.mu.Lock() // leave reads r.after
	defer h.mu.Unlock()
	for _, r := range batch {
		switch {
		case r.decided:
		case canceled && r != own:
			if unknown != nil && r.staged && r.after == nil {
				r.after = &unknown.Head
			}
			retry = append(retry, r)
		default:
			r.head, r.err = event.Head{}, r.failure(h.id, err)
		}
	}
	return retry
}

// refusals counts how often in a row a store refused the head that it shows to
// readers.
type refusals struct {
	head  event.Head
	times int
}

// maxRefusals ends the retries. Other writers and cuts alone never refuse the same
// head that often.
const maxRefusals = 16

var errTwoHeads = errors.New("the store compares appends with another head than it shows to readers")

// check counts a refusal of the head that readers see. It returns an error if another
// try would not help.
func (r *refusals) check(shown event.Head, c *ConflictError) error {
	if c.Cut != nil || shown != r.head {
		*r = refusals{head: shown}
	}
	if r.times++; r.times <= maxRefusals {
		return nil
	}
	return damaged(c.Session, shown.Seq, fmt.Errorf("%w: %v and %v", errTwoHeads, c.Actual, shown))
}

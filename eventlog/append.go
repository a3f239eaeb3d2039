package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// Append adds events to a session, all or none, in order, and returns the head
// behind them. It is durable when it returns, as the store's sync policy says
// or expect demands.
//
// The expectation is compared first. At an expected head (or New) where the
// events stand already — same ids, types, metadata, costs and data — Append
// succeeds and stores nothing, so an append may be retried after any error;
// with Any that holds for events near the tail, and with AnyAfter for all
// since a head. Other failures of the expectation are a *ConflictError, and
// ErrNotFound for At on a missing session. A fork is not appended to while its
// parent is gone (ErrNotFound), or ends before the fork point (a *CorruptError).
// Then the events are validated (ErrInvalid and its rules). An error other than ErrUnknownOutcome means that
// nothing was written. Appending no events does nothing.
//
// Append honours ctx while it waits; metadata in ctx (WithMetadata) is merged
// into each event, whose own members win.
func (l *Log) Append(ctx context.Context, session string, expect Expect, events ...Event) (Head, error) {
	return l.append(ctx, session, newRequest(ctx, expect, events))
}

// AppendEach writes several appends together, for the cost of about one: each
// is atomic and has no part in the others, but all are refused or written in
// order, behind one expectation. When it fails with ErrUnknownOutcome, or the
// process is killed, the first of them may stand without the rest: read the
// head before trying again. It suits imports.
func (l *Log) AppendEach(ctx context.Context, session string, expect Expect, appends ...[]Event) (Head, error) {
	return l.append(ctx, session, newRequest(ctx, expect, appends...))
}

func (l *Log) append(ctx context.Context, session string, r *request) (Head, error) {
	if err := l.usable(ctx); err != nil {
		return Head{}, err
	}
	if err := CheckSessionID(session); err != nil {
		return Head{}, err
	}
	if len(r.events) == 0 {
		return r.expect.head, nil
	}
	unlock, err := l.prepare(ctx, session, r.expect, r.events)
	if err != nil {
		return Head{}, fmt.Errorf("append to session %q: %w", session, err)
	}
	r.unlock = unlock
	h := l.acquire(session)
	defer l.release(h)
	head, err := l.submit(h, r)
	if !r.gone {
		unlock()
		r.recycle()
	}
	return head, err
}

// run evaluates a batch and writes what it accepts. It returns the requests
// that must be tried again because own's context ended.
func (l *Log) run(h *hot, own *request, batch []*request) (again []*request) {
	st := &h.state
	st.fresh = false
	if own.alone != nil {
		own.err = own.alone(own.ctx, st)
		return nil
	}
	var refused refusals
	for {
		if err := l.usable(own.ctx); err != nil {
			own.err = own.uncertain(h.session, err)
			return batch[1:]
		}
		if err := l.stage(own.ctx, h, batch); err != nil {
			st.drop()
			return h.fail(own, batch, err)
		}
		if len(st.events) == 0 {
			return nil
		}
		err := l.store.Append(own.ctx, h.session, st.head, st.events, durable(batch))
		if err == nil {
			l.commit(h)
			return nil
		}
		shown := st.head
		st.drop()
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			return h.fail(own, batch, err)
		}
		if err := refused.again(shown, conflict); err != nil {
			return h.fail(own, batch, err)
		}
		st.cut = conflict.Cut
	}
}

// refusals counts how often in a row a store refused the head that it shows.
type refusals struct {
	head  Head
	times int
}

// maxRefusals is more than a session that is always written to, or cut back,
// would need to have the same head again.
const maxRefusals = 16

var errTwoHeads = errors.New("the head that appends are compared with is not that of the newest event")

// again notes a refusal of the head that was read. The error says that reading
// on would lead nowhere.
func (r *refusals) again(shown Head, c *ConflictError) error {
	if c.Cut != nil || shown != r.head {
		*r = refusals{head: shown}
	}
	if r.times++; r.times <= maxRefusals {
		return nil
	}
	return &CorruptError{Session: c.Session, Offset: -1, Seq: shown.Seq, Cause: fmt.Errorf("%w: %v and %v", errTwoHeads, c.Actual, shown)}
}

func durable(batch []*request) bool {
	for _, r := range batch {
		if r.staged && r.expect.durable {
			return true
		}
	}
	return false
}

// commit makes the staged events the session's newest.
func (l *Log) commit(h *hot) {
	st := &h.state
	st.head, st.cut = st.cur, nil
	for i := range st.events {
		st.recent.add(st.events[i].ID, st.events[i].Seq)
	}
	if h.watch.publish(st.events) {
		st.buf = st.buf[len(st.buf):] // the watchers keep its bytes
	} else {
		st.giveBack()
	}
	clear(st.events)
	st.events = st.events[:0]
	if cap(st.buf) > largeBuffer {
		st.buf = nil
	}
}

// fail gives err to every staged request; or to own alone, when it is own's
// context that ended.
func (h *hot) fail(own *request, batch []*request, err error) (again []*request) {
	mine := own.ctx.Err() != nil
	var unknown *UnknownOutcomeError
	errors.As(err, &unknown)
	for _, r := range batch {
		switch {
		case r.judged:
		case mine && r != own:
			if unknown != nil && r.staged && r.after == nil {
				r.after = &unknown.Head
			}
			again = append(again, r)
		default:
			r.head, r.err = Head{}, r.uncertain(h.session, err)
		}
	}
	return again
}

// stage evaluates every request of the batch against the session's state, in
// order, and seals what is to be written into st.events.
func (l *Log) stage(ctx context.Context, h *hot, batch []*request) error {
	st := &h.state
	for {
		if err := l.load(ctx, h.session, st); err != nil {
			return err
		}
		h.mu.Lock()
		h.base = st.head
		h.mu.Unlock()
		st.begin(len(batch) == 1)
		stale := false
		for _, r := range batch {
			r.head, r.err, r.staged, r.judged = Head{}, nil, false, false
			r.err = l.admit(ctx, h.session, st, r)
			if r.err != nil {
				if ended := ctx.Err(); ended != nil && errors.Is(r.err, ended) {
					return r.err // says nothing of r, which may have another context
				}
				if stale = !st.fresh; stale {
					break
				}
			}
			// What was decided on events of the batch holds only if those are written.
			r.judged = !r.staged && len(st.events) == 0
		}
		if !stale {
			return nil
		}
		st.loaded = false
	}
}

// admit decides on one request: it stands already, it is refused, or it is
// sealed behind st.cur.
func (l *Log) admit(ctx context.Context, session string, st *state, r *request) error {
	head, stands, err := l.expected(ctx, session, st, r)
	if stands && head.Seq <= st.head.Seq {
		r.head = head
		return l.secure(ctx, session, r)
	}
	if err != nil || stands {
		r.head, r.staged = head, stands // by another of the batch
		return err
	}
	if st.orphan != nil {
		return fmt.Errorf("append to session %q: %w", session, st.orphan)
	}
	before, size, buffered := st.cur, len(st.events), len(st.buf)
	st.reserve(r.size())
	for i := range r.events {
		e := r.events[i]
		if err := l.sealNext(ctx, session, st, &e, r.expect.lenient); err != nil {
			st.unstage(before, size, buffered)
			return fmt.Errorf("append to session %q: event %d (%s): %w", session, i+1, e.Type, err)
		}
		st.stage(e)
	}
	r.head, r.staged = st.cur, true
	return nil
}

// sealNext validates e against the session's history and seals it behind
// st.cur.
func (l *Log) sealNext(ctx context.Context, session string, st *state, e *Event, lenient bool) error {
	if _, taken := st.taken(e.ID); taken {
		return &ConflictError{Session: session, Actual: st.cur, ID: e.ID.String()}
	}
	e.Seq = st.cur.Seq + 1
	prev := st.cur.Hash
	if f := e.rare.facts; f.fork != nil && st.cur.IsZero() {
		if err := l.checkFork(ctx, session, f.fork); err != nil {
			return err
		}
		if err := l.sync(ctx, f.fork.Parent); err != nil {
			return err
		}
		e.Seq, prev = f.fork.Seq+1, f.fork.Hash
		st.fork, st.calls.back = f.fork, f.fork.Seq
	}
	if err := l.checkHistory(ctx, session, st, e, lenient); err != nil {
		return err
	}
	if st.cut != nil && len(st.events) == 0 {
		e.own().cut = st.cut
	}
	if _, err := l.opts.Random.Read(st.salt[:]); err != nil {
		return fmt.Errorf("make salt: %w", err)
	}
	st.buf = e.seal(st.buf, prev, st.salt)
	st.cur = e.Head()
	return nil
}

// secure makes events that stand already as durable as new ones can be. When
// that fails, whether they stand for good is as unknown as it was.
func (l *Log) secure(ctx context.Context, session string, r *request) error {
	if err := l.sync(ctx, session); err != nil {
		return &UnknownOutcomeError{Session: session, Head: r.expect.head, Cause: err}
	}
	return nil
}

// sync makes a session durable, in stores where it may not be.
func (l *Log) sync(ctx context.Context, session string) error {
	syncer, ok := As[Syncer](l.store)
	if !ok {
		return nil
	}
	if err := syncer.Sync(ctx, session); err != nil {
		return fmt.Errorf("sync session %q: %w", session, err)
	}
	return nil
}

package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
)

// run evaluates a batch and writes the requests it accepts. It returns the requests
// that must be tried again because own's context ended.
func (l *Log) run(h *hotSession, own *request, batch []*request) (again []*request) {
	st := &h.state
	st.known.fresh = false
	if own.exclusive != nil {
		own.err = own.exclusive(own.ctx, st)
		return nil
	}
	var refused refusals
	for {
		if err := l.usable(own.ctx); err != nil {
			own.err = own.uncertain(h.id, err)
			return batch[1:]
		}
		if err := l.stage(own.ctx, h, batch); err != nil {
			st.forget()
			return h.fail(own, batch, err)
		}
		if len(st.staged.events) == 0 {
			return nil
		}
		err := l.store.Append(own.ctx, h.id, st.known.head, st.staged.events, durable(batch))
		if err == nil {
			l.commit(h, batch)
			return nil
		}
		shown := st.known.head
		st.forget()
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			return h.fail(own, batch, err)
		}
		if err := refused.check(shown, conflict); err != nil {
			return h.fail(own, batch, err)
		}
		st.known.cut = conflict.Cut
	}
}

// refusals counts how often in a row a store refused the head that it shows to
// readers.
type refusals struct {
	head  event.Head
	times int
}

// maxRefusals is more than a session needs to have the same head again, even if it
// is always written to or cut back.
const maxRefusals = 16

var errTwoHeads = errors.New("the head that appends are compared with is not the head that is read")

// check counts a refusal of the head that was read. It returns an error if reading
// again would not help.
func (r *refusals) check(shown event.Head, c *ConflictError) error {
	if c.Cut != nil || shown != r.head {
		*r = refusals{head: shown}
	}
	if r.times++; r.times <= maxRefusals {
		return nil
	}
	return damaged(c.Session, shown.Seq, fmt.Errorf("%w: %v and %v", errTwoHeads, c.Actual, shown))
}

func durable(batch []*request) bool {
	for _, r := range batch {
		if r.staged && r.expect.durable {
			return true
		}
	}
	return false
}

// commit makes the staged events the session's newest, and gives them to watchers
// and to the requests that want them.
func (l *Log) commit(h *hotSession, batch []*request) {
	st := &h.state
	st.known.head, st.known.cut = st.staged.head, nil
	for i := range st.staged.events {
		st.known.recent.add(st.staged.events[i].ID, st.staged.events[i].Seq)
	}
	shared := h.watch.publish(st.staged.events)
	for _, r := range batch {
		if r.stored != nil && r.staged {
			*r.stored, shared = st.staged.between(r.head.Seq-int64(len(r.entries))+1, r.head.Seq), true
		}
	}
	st.staged.release(shared)
}

// fail gives err to every staged request, or to own alone if own's context ended.
func (h *hotSession) fail(own *request, batch []*request, err error) (again []*request) {
	canceled := own.ctx.Err() != nil
	var unknown *UnknownOutcomeError
	errors.As(err, &unknown)
	for _, r := range batch {
		switch {
		case r.decided:
		case canceled && r != own:
			if unknown != nil && r.staged && r.after == nil {
				r.after = &unknown.Head
			}
			again = append(again, r)
		default:
			r.head, r.err = event.Head{}, r.uncertain(h.id, err)
		}
	}
	return again
}

// stage evaluates every request of the batch against the session's state, in
// order, and seals the events to be written.
func (l *Log) stage(ctx context.Context, h *hotSession, batch []*request) error {
	st := &h.state
	for {
		if err := l.load(ctx, h.id, st); err != nil {
			return err
		}
		h.mu.Lock()
		h.base = st.known.head
		h.mu.Unlock()
		st.begin(len(batch) == 1)
		stale := false
		for _, r := range batch {
			r.head, r.err, r.staged, r.decided = event.Head{}, nil, false, false
			r.err = l.admit(ctx, h.id, st, r)
			if r.err != nil {
				if ended := ctx.Err(); ended != nil && errors.Is(r.err, ended) {
					return r.err // it concerns the leader's context, not r
				}
				if stale = !st.known.fresh; stale {
					break
				}
			}
			// A decision that depends on staged events holds only if they are written.
			r.decided = !r.staged && len(st.staged.events) == 0
		}
		if !stale {
			return nil
		}
		st.known.loaded = false // another process may have appended: decide again
	}
}

// admit decides on one request: its events are stored already, or refused, or
// sealed after the staged head.
func (l *Log) admit(ctx context.Context, session string, st *sessionState, r *request) error {
	head, stored, err := l.checkExpectation(ctx, session, st, r)
	if stored && head.Seq <= st.known.head.Seq {
		r.head = head
		return l.secure(ctx, session, r)
	}
	if err != nil || stored {
		r.head, r.staged = head, stored // another request of the batch stages them
		return err
	}
	if st.known.orphan != nil {
		return fmt.Errorf("append to session %q: %w", session, st.known.orphan)
	}
	before := st.staged.mark()
	st.staged.reserve(r.size())
	for i := range r.entries {
		en := r.entries[i]
		if err := l.seal(ctx, session, st, &en, r.expect.lenient); err != nil {
			st.unstage(before)
			return fmt.Errorf("append to session %q: event %d (%s): %w", session, i+1, en.Type, err)
		}
	}
	r.head, r.staged = st.staged.head, true
	return nil
}

// seal validates an entry against the session's history, and stages its event
// after the staged head.
func (l *Log) seal(ctx context.Context, session string, st *sessionState, en *entry, lenient bool) error {
	if _, taken := st.seqOf(en.ID); taken {
		return &ConflictError{Session: session, Actual: st.staged.head, ID: en.ID.String()}
	}
	en.Seq = st.staged.head.Seq + 1
	prev := st.staged.head.Hash
	if f := en.facts.Fork; f != nil && st.staged.head.IsZero() {
		if err := l.checkFork(ctx, session, f); err != nil {
			return err
		}
		if err := l.sync(ctx, f.Parent); err != nil {
			return err
		}
		en.Seq, prev = f.Seq+1, f.Hash
		st.staged.fork = f
		st.calls.restart(f.Seq)
	}
	if err := l.checkHistory(ctx, session, st, en, lenient); err != nil {
		return err
	}
	salt, err := l.salt(st)
	if err != nil {
		return err
	}
	sealed := en.line()
	if st.known.cut != nil && len(st.staged.events) == 0 {
		sealed.Cut = line.Cut{Bytes: st.known.cut.Bytes, SHA256: line.Hash(st.known.cut.SHA256)}
	}
	return st.staged.add(&sealed, prev, salt)
}

// salt draws a salt. It is read into the state, since a local array would escape.
func (l *Log) salt(st *sessionState) ([16]byte, error) {
	if _, err := l.opts.Random.Read(st.staged.salt[:]); err != nil {
		return st.staged.salt, fmt.Errorf("make salt: %w", err)
	}
	return st.staged.salt, nil
}

// secure makes events that are stored already as durable as new ones. If that
// fails, it is as unknown as before whether they are stored for good.
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

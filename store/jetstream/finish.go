package jetstream

import (
	"context"
	"errors"
)

// A process that lost its lock may go on to erase for a while. So it erases only messages
// before the message that made its erasure visible: the process that has the lock now
// stores its messages later.

// finish finishes the interrupted erasure of a session: it erases the messages before
// bound that no reader needs, then the record of the erasure.
func (st *stream) finish(ctx context.Context, session string, bound uint64) error {
	t, err := st.currentTip(ctx, session)
	if err == nil {
		err = t.err
	}
	if err != nil {
		return err
	}
	removal, err := st.lastRemoval(ctx, session, bound)
	if err != nil {
		return err
	}
	if removal > 0 {
		if err := st.eraseSession(ctx, session, removal); err != nil {
			return err
		}
	}
	return st.finishRewrite(ctx, session, bound)
}

// eraseSession erases the messages and marks of a session before the message that removes it.
func (st *stream) eraseSession(ctx context.Context, session string, removal uint64) error {
	if err := st.eraseMarks(ctx, session, removal); err != nil {
		return err
	}
	if err := st.dropWatermark(ctx, session, removal); err != nil {
		return err
	}
	return st.eraseSubject(ctx, st.of(session, "*"), removal)
}

// lastRemoval is the sequence of the last message before bound that removes the session;
// 0 if there is none.
func (st *stream) lastRemoval(ctx context.Context, session string, bound uint64) (at uint64, err error) {
	err = st.before(ctx, st.of(session, framesSubject), bound, func(m *message) {
		if _, removed, _ := parseFrame(m); removed {
			at = m.at
		}
	})
	return at, err
}

// before passes the messages of a subject before a sequence to fn.
func (st *stream) before(ctx context.Context, subject string, bound uint64, fn func(m *message)) error {
	err := st.each(ctx, subject, 1, func(m *message) error {
		if m.at >= bound {
			return errStop
		}
		fn(m)
		return nil
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// finishRewrite erases the replaced frames, and the replacing messages and indexes before
// bound that the current index does not name. Then it erases the record of the erasure.
func (st *stream) finishRewrite(ctx context.Context, session string, bound uint64) error {
	t, err := st.currentTip(ctx, session)
	if err == nil {
		err = t.err
	}
	if err != nil {
		return err
	}
	if t.frame != nil {
		if err := st.eraseUnneeded(ctx, session, t.frame, bound); err != nil {
			return err
		}
	}
	return st.store.failure(st.purge(ctx, st.subject(pendingSubject, encodeName(session)), bound))
}

// eraseUnneeded erases the messages before bound that no reader of the tip needs, and the
// marks that are untrue. A repair has marked its events again.
func (st *stream) eraseUnneeded(ctx context.Context, session string, tip *frame, bound uint64) error {
	ix, err := st.index(ctx, session, tip.index)
	if err != nil {
		return err
	}
	if ix.base > 0 {
		if err := st.eraseMarks(ctx, session, ix.base+1); err != nil {
			return err
		}
	}
	unneeded, err := st.unneeded(ctx, session, ix, bound)
	if err != nil {
		return err
	}
	return st.erase(ctx, append(unneeded, ix.marks...))
}

// unneeded returns the messages before bound that no reader of the index needs.
func (st *stream) unneeded(ctx context.Context, session string, ix *index, bound uint64) (unneeded []uint64, err error) {
	keep := map[uint64]bool{ix.at: true}
	for _, s := range ix.spans {
		keep[s.at] = true
	}
	for _, at := range ix.copies {
		keep[at] = true
	}
	for _, kind := range []string{replacedSubject, indexSubject} {
		err := st.before(ctx, st.of(session, kind), bound, func(m *message) {
			if !keep[m.at] {
				unneeded = append(unneeded, m.at)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for at := range ix.old {
		unneeded = append(unneeded, at)
	}
	return unneeded, nil
}

// finishPending finishes the interrupted erasure of a session, if there is one and the
// caller has the exclusive store lock.
func (st *stream) finishPending(ctx context.Context, session string) error {
	l := st.store.held(ctx)
	if l == nil || !l.exclusive {
		return nil
	}
	m, err := st.last(ctx, st.subject(pendingSubject, encodeName(session)))
	if m == nil || err != nil {
		return err
	}
	return st.finish(ctx, session, l.fences[st.name])
}

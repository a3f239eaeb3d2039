package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// RemoveSession implements eventlog.Eraser. It removes the copies that repairs made of the
// session too.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	return wrap(fmt.Sprintf("remove session %q", session), s.removeSession(ctx, session, expect))
}

func (s *Store) removeSession(ctx context.Context, session string, expect event.Head) error {
	l, err := s.writable(ctx)
	if err == nil {
		err = checkSession(session)
	}
	if err != nil {
		return err
	}
	st := l.shard(session)
	at, err := st.removeVisibly(ctx, session, expect)
	if err != nil {
		return err
	}
	if err := st.eraseSession(ctx, session, at); err != nil {
		return err
	}
	if err := st.dropWatermark(ctx, session, afterAll); err != nil { // also one of lost messages
		return err
	}
	return s.failure(st.purge(ctx, st.subject(pendingSubject, encodeName(session)), at))
}

// removeVisibly stores the message that removes a session, with the record of the erasure. It
// returns the sequence of the message.
func (st *stream) removeVisibly(ctx context.Context, session string, expect event.Head) (at uint64, err error) {
	t, err := st.removable(ctx, session, expect)
	if err != nil {
		return 0, err
	}
	removal := &nats.Msg{Subject: st.of(session, framesSubject), Header: nats.Header{frameHeader: []string{tombstone}}}
	expectLast(removal, t.at)
	at, err = st.publishAll(ctx, []*nats.Msg{st.pending(ctx, encodeName(session)), removal})
	if err != nil {
		if !isCode(err, codeWrongSequence) {
			return 0, st.erasingFailure(ctx, err)
		}
		now, reading := st.tip(ctx, session)
		switch {
		case reading != nil:
			return 0, reading
		case now.at != t.at && now.frame != nil:
			return 0, &eventlog.ConflictError{Session: session, Expected: expect, Actual: now.head()}
		case now.at == t.at:
			return 0, st.erasingFailure(ctx, err)
		}
		at = now.at // it is removed: by this call, whose answer was lost, or by another one
	}
	st.store.heads.forget(session)
	st.store.watermarks.forget(session)
	st.store.changes.Publish(session)
	return at, nil
}

// removable returns the tip of a session that may be removed: its head is expect, or
// expect is zero and its newest event is unreadable.
func (st *stream) removable(ctx context.Context, session string, expect event.Head) (tip, error) {
	t, err := st.currentTip(ctx, session)
	if err != nil {
		return t, err
	}
	missing := t.frame == nil && t.err == nil
	switch {
	case missing && t.lost != nil && expect.IsZero():
		return t, nil
	case missing && expect.IsZero():
		return t, eventlog.ErrNotFound
	case expect.IsZero() && t.err != nil:
		if errors.Is(t.err, event.ErrVersion) {
			return t, t.err
		}
		return t, nil
	case t.err != nil:
		return t, t.err
	case !missing && t.head() == expect:
		return t, nil
	case !missing && expect.IsZero():
		v, err := st.view(ctx, session)
		if err != nil {
			return t, err
		}
		if _, err := v.event(ctx, t.head().Seq); errors.Is(err, eventlog.ErrCorrupt) {
			return t, nil
		}
	}
	return t, &eventlog.ConflictError{Session: session, Expected: expect, Actual: t.head()}
}

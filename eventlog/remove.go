package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Remove removes a session with all its events. It is refused with ErrInUse,
// naming them, while forks read through the session. Blobs stay until they
// are collected. Watchers of the session end with ErrNotFound.
func (l *Log) Remove(ctx context.Context, session string) error {
	if err := l.readable(ctx, session); err != nil {
		return err
	}
	remover, ok := As[Remover](l.store)
	if !ok {
		return fmt.Errorf("remove session %q: %w", session, ErrUnsupported)
	}
	unlock, err := l.lockStore(ctx, true)
	if err != nil {
		return err
	}
	defer unlock()
	forks, err := l.forksSharing(ctx, session, 0)
	if err != nil {
		return err
	}
	if len(forks) > 0 {
		return fmt.Errorf("remove session %q: %w: forked by %q", session, ErrInUse, forks)
	}
	return l.alone(ctx, session, func(ctx context.Context, st *state) error {
		head, err := l.Head(ctx, session)
		if errors.Is(err, ErrNotFound) {
			return cmp.Or(l.sync(ctx, session), err) // a removal may have been interrupted
		}
		if err != nil {
			return err
		}
		st.drop()
		st.cut = nil
		if err := remover.RemoveSession(ctx, session, head); err != nil {
			return fmt.Errorf("remove session %q: %w", session, err)
		}
		l.disturb(session)
		return nil
	})
}

// disturb makes the session's watchers look at the store again.
func (l *Log) disturb(session string) {
	h := l.find(session)
	if h != nil {
		h.watch.disturb(true)
	}
}

package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RemoveOptions are the options of Remove.
type RemoveOptions struct {
	// Unread goes on although there are sessions whose parents cannot be read, and
	// that may be forks of the one to be removed.
	Unread bool
}

// Remove removes a session with all its events, also one that is damaged. It is
// refused with ErrInUse, naming them, while forks read through the session, and
// with ErrLineage where that cannot be told of another session that is damaged.
// Blobs stay until they are collected. Watchers of the session end with
// ErrNotFound.
func (l *Log) Remove(ctx context.Context, session string, opts ...RemoveOptions) error {
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
	if err := l.removable(ctx, session, opts); err != nil {
		return fmt.Errorf("remove session %q: %w", session, err)
	}
	return l.alone(ctx, session, func(ctx context.Context, st *state) error {
		head, err := l.Head(ctx, session)
		switch {
		case errors.Is(err, ErrNotFound):
			return cmp.Or(l.sync(ctx, session), err) // a removal may have been interrupted
		case errors.Is(err, ErrCorrupt):
			head = Head{}
		case err != nil:
			return err
		}
		st.drop()
		st.cut = nil
		err = remover.RemoveSession(ctx, session, head)
		if errors.Is(err, ErrCorrupt) && !head.IsZero() {
			err = remover.RemoveSession(ctx, session, Head{})
		}
		if err != nil {
			return fmt.Errorf("remove session %q: %w", session, err)
		}
		l.disturb(session)
		return nil
	})
}

// removable refuses a session that forks need, or may need.
func (l *Log) removable(ctx context.Context, session string, opts []RemoveOptions) error {
	forks, unread, err := l.forks(ctx)
	if err != nil {
		return err
	}
	if len(forks[session]) > 0 {
		var names []string
		for _, f := range forks[session] {
			names = append(names, f.session)
		}
		return fmt.Errorf("%w: forked by %s", ErrInUse, quoted(names))
	}
	unread = slices.DeleteFunc(unread, func(id string) bool { return id == session })
	if len(unread) > 0 && !(len(opts) > 0 && opts[0].Unread) {
		return fmt.Errorf("%w: %s may be forks of it", ErrLineage, quoted(unread))
	}
	return nil
}

// quoted names some sessions, and says how many more there are.
func quoted(sessions []string) string {
	const most = 10
	var names []string
	for _, id := range sessions[:min(len(sessions), most)] {
		names = append(names, strconv.Quote(id))
	}
	text := strings.Join(names, ", ")
	if more := len(sessions) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// disturb makes the session's watchers look at the store again.
func (l *Log) disturb(session string) {
	h := l.find(session)
	if h != nil {
		h.watch.disturb(true)
	}
}

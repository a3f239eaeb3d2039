package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/removal"
)

// RemoveOptions configure Remove.
type RemoveOptions struct {
	// DespiteUnreadable removes the session even if there are sessions too damaged to
	// tell whether they are forks of it.
	DespiteUnreadable bool
	// Heads are the heads that the sessions must have; nil accepts any head. A session with
	// another head, or without an entry, stays, and the error is a *eventlog.ConflictError.
	Heads map[string]event.Head
}

// Remove removes a session with all its events, even if it is damaged. If a fork needs
// the session, Remove fails with eventlog.ErrInUse, and the error names the forks. If a
// damaged session may be a fork of it, Remove fails with eventlog.ErrInUse too. Blobs stay
// until Collect. Watchers of the session end with eventlog.ErrNotFound. Remove uses the
// first RemoveOptions only.
//
// If the store is an eventlog.RemovalKeeper, Remove first stores a mark of the session, so
// that a later import of the session's source leaves it out.
func Remove(ctx context.Context, log *eventlog.Log, session string, opts ...RemoveOptions) error {
	return RemoveEach(ctx, log, []string{session}, func(string) error { return nil }, opts...)
}

// RemoveEach is Remove for several sessions, in the order of the list: a session after its
// forks. It lists the sessions of the store once, or looks up the forks if the store is an
// eventlog.Relater. It calls done after each removal, and
// ends with the first error. RemoveEach holds the exclusive store lock until it returns.
func RemoveEach(ctx context.Context, log *eventlog.Log, sessions []string, done func(session string) error, opts ...RemoveOptions) error {
	if len(sessions) == 0 {
		return nil
	}
	e := engine.Of(log)
	for _, session := range sessions {
		if err := e.Usable(ctx, session); err != nil {
			return err
		}
	}
	return e.Locked(ctx, true, func(ctx context.Context) error { return removeEach(ctx, log, sessions, done, opts) })
}

// removeEach is RemoveEach under the store lock.
func removeEach(ctx context.Context, log *eventlog.Log, sessions []string, done func(session string) error, opts []RemoveOptions) error {
	if err := finish(ctx, log); err != nil {
		return err
	}
	forks, err := log.Forks(ctx, sessions...)
	if err != nil {
		return fmt.Errorf("remove session %q: %w", sessions[0], err)
	}
	if err := removal.Note(ctx, log, sessions); err != nil {
		return fmt.Errorf("remove session %q: %w", sessions[0], err)
	}
	gone := map[string]bool{}
	for _, session := range sessions {
		if err := removable(&forks, gone, session, opts); err != nil {
			return fmt.Errorf("remove session %q: %w", session, err)
		}
		if err := removeSession(ctx, log, session, opts); err != nil {
			return err
		}
		if err := erased(ctx, log, nil); err != nil {
			return fmt.Errorf("remove session %q: %w", session, err)
		}
		gone[session] = true
		if err := done(session); err != nil {
			return err
		}
	}
	return nil
}

func removeSession(ctx context.Context, log *eventlog.Log, session string, opts []RemoveOptions) error {
	e := engine.Of(log)
	eraser, ok := eventlog.As[eventlog.Eraser](log.Store())
	if !ok {
		return fmt.Errorf("remove session %q: %w", session, eventlog.ErrUnsupported)
	}
	return e.Exclusively(ctx, session, func(ctx context.Context) error {
		head, err := log.Head(ctx, session)
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
			return cmp.Or(log.Sync(ctx, session), err) // a removal may have been interrupted
		case errors.Is(err, eventlog.ErrCorrupt):
			head = event.Head{}
		case err != nil:
			return err
		}
		if len(opts) > 0 && opts[0].Heads != nil {
			if want, ok := opts[0].Heads[session]; !ok || head != want {
				return &eventlog.ConflictError{Session: session, Expected: want, Actual: head}
			}
		}
		err = eraser.RemoveSession(ctx, session, head)
		if errors.Is(err, eventlog.ErrCorrupt) && !head.IsZero() {
			err = eraser.RemoveSession(ctx, session, event.Head{})
		}
		if err != nil {
			return fmt.Errorf("remove session %q: %w", session, err)
		}
		return nil
	})
}

// removable refuses a session that forks need, or may need, except sessions that are gone.
func removable(forks *eventlog.ForkMap, gone map[string]bool, session string, opts []RemoveOptions) error {
	var needed []string
	for _, f := range forks.ByParent[session] {
		if !gone[f.Session] {
			needed = append(needed, f.Session)
		}
	}
	if len(needed) > 0 {
		return fmt.Errorf("%w: forked by %s", eventlog.ErrInUse, quoted(needed))
	}
	if len(opts) > 0 && opts[0].DespiteUnreadable {
		return nil
	}
	unread := slices.DeleteFunc(slices.Clone(forks.Unreadable), func(id string) bool { return id == session || gone[id] })
	if len(unread) > 0 {
		return fmt.Errorf("%w: %w: %s may be forks of it", eventlog.ErrInUse, engine.ErrLineage, quoted(unread))
	}
	return nil
}

// quoted names some sessions, and how many more there are.
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

package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/storenotes"
)

// RemoveOptions configure Remove.
type RemoveOptions struct {
	// Reason and By are stored in the notes of the store: why, and who removes.
	Reason, By string
	// Retired says in the notes that the session was retired.
	Retired bool
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
// Remove first writes a note into the session convlog:store, with a mark of the session and
// not its id, so that a later import of the session's source leaves it out. The notes stay:
// the session convlog:store itself cannot be removed. If the session is
// on hold, Remove fails with a *HeldError.
func Remove(ctx context.Context, log *eventlog.Log, session string, opts ...RemoveOptions) error {
	return RemoveEach(ctx, log, []string{session}, func(string) error { return nil }, opts...)
}

// RemoveEach is Remove for several sessions, in the order of the list: a session after its
// forks. If one of them is on hold, it removes none. It lists the sessions of the store once, or looks up the forks if the store is an
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
	if slices.Contains(sessions, engine.StoreSession) {
		return fmt.Errorf("remove session %q: %w", engine.StoreSession, errNotes)
	}
	if err := checkHolds(ctx, log, sessions); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	eraser, ok := eventlog.As[eventlog.Eraser](log.Store())
	if !ok {
		return fmt.Errorf("remove session %q: %w", sessions[0], eventlog.ErrUnsupported)
	}
	r := removing{log: log, eraser: eraser, forks: &forks, gone: map[string]bool{}}
	if len(opts) > 0 {
		r.opts = opts[0]
	}
	for some := range slices.Chunk(sessions, notedTogether) {
		if err := r.note(ctx, some); err != nil {
			return fmt.Errorf("remove session %q: %w", some[0], err)
		}
		for _, session := range some {
			if err := r.remove(ctx, session); err != nil {
				return err
			}
			if err := done(session); err != nil {
				return err
			}
		}
	}
	return nil
}

var errNotes = errors.New("it has the holds of this store and the marks of its removed sessions, and stays")

// notedTogether bounds the sessions of one note. A note is written before its sessions are removed.
const notedTogether = 100

// removing is one RemoveEach, under the store lock.
type removing struct {
	log    *eventlog.Log
	eraser eventlog.Eraser
	opts   RemoveOptions
	forks  *eventlog.ForkMap
	gone   map[string]bool
}

// note notes the removal of those of the sessions that exist and can be removed.
func (r *removing) note(ctx context.Context, sessions []string) error {
	gone := maps.Clone(r.gone)
	var going []string
	for _, session := range sessions {
		head, err := r.log.Head(ctx, session)
		if errors.Is(err, eventlog.ErrNotFound) || !r.expected(session, head) || r.removable(gone, session) != nil {
			continue
		}
		gone[session] = true
		going = append(going, session)
	}
	if len(going) == 0 {
		return nil
	}
	return storenotes.Append(ctx, r.log, func(stored *storenotes.Notes) ([]event.StoreNote, error) {
		n := event.StoreNote{Type: engine.Removed, By: r.opts.By, Reason: r.opts.Reason}
		if r.opts.Retired {
			n.Type = engine.Retired
		}
		for _, session := range going {
			n.Sessions = append(n.Sessions, stored.Mark(session))
		}
		return []event.StoreNote{n}, nil
	})
}

// expected reports whether a session may be removed at its head.
func (r *removing) expected(session string, head event.Head) bool {
	want, ok := r.opts.Heads[session]
	return r.opts.Heads == nil || ok && head == want
}

// remove removes a session that is noted.
func (r *removing) remove(ctx context.Context, session string) error {
	if err := r.removable(r.gone, session); err != nil {
		return fmt.Errorf("remove session %q: %w", session, err)
	}
	if err := r.erase(ctx, session); err != nil {
		return err
	}
	if err := erased(ctx, r.log, nil); err != nil {
		return fmt.Errorf("remove session %q: %w", session, err)
	}
	r.gone[session] = true
	return nil
}

func (r *removing) erase(ctx context.Context, session string) error {
	return engine.Of(r.log).Exclusively(ctx, session, func(ctx context.Context) error {
		head, err := r.log.Head(ctx, session)
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
			return cmp.Or(r.log.Sync(ctx, session), err) // a removal may have been interrupted
		case errors.Is(err, eventlog.ErrCorrupt):
			head = event.Head{}
		case err != nil:
			return err
		}
		if !r.expected(session, head) {
			return &eventlog.ConflictError{Session: session, Expected: r.opts.Heads[session], Actual: head}
		}
		err = r.eraser.RemoveSession(ctx, session, head)
		if errors.Is(err, eventlog.ErrCorrupt) && !head.IsZero() {
			err = r.eraser.RemoveSession(ctx, session, event.Head{})
		}
		if err != nil {
			return fmt.Errorf("remove session %q: %w", session, err)
		}
		return nil
	})
}

// removable refuses a session that forks need, or may need, except sessions that are gone.
func (r *removing) removable(gone map[string]bool, session string) error {
	var needed []string
	for _, f := range r.forks.ByParent[session] {
		if !gone[f.Session] {
			needed = append(needed, f.Session)
		}
	}
	if len(needed) > 0 {
		return fmt.Errorf("%w: forked by %s", eventlog.ErrInUse, quoted(needed))
	}
	if r.opts.DespiteUnreadable {
		return nil
	}
	unread := slices.DeleteFunc(slices.Clone(r.forks.Unreadable), func(id string) bool { return id == session || gone[id] })
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

package erase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/storenotes"
)

// HeldError is a hold on a session. As an error, it says that the session is not erased
// until the hold is released with Release.
type HeldError struct {
	// Session is empty in a hold whose session is missing.
	Session    string
	Since      time.Time
	By, Reason string
}

func (h *HeldError) Error() string { return fmt.Sprintf("session %q: %s", h.Session, h.Why()) }

// Why is the text of the error, without the session.
func (h *HeldError) Why() string {
	by := ""
	if h.By != "" {
		by = fmt.Sprintf(" by %q", h.By)
	}
	reason := "its reason is erased"
	if h.Reason != "" {
		reason = fmt.Sprintf("%q", h.Reason)
	}
	return fmt.Sprintf("it is on hold since %s%s: %s", h.Since.UTC().Format(time.DateOnly), by, reason)
}

// Hold puts a session on hold: Redact, Match, Raw, From, Remove, retirements and the
// redactions of other copies erase nothing of it until Release, and neither the events that it
// shares with its parents. Its forks are not on hold. Hold waits for a running erasure, and
// fails with eventlog.ErrNotFound if that removed the session.
//
// The hold is an event of the session convlog:store with the reason, which must not be empty,
// and by, the person or program.
func Hold(ctx context.Context, log *eventlog.Log, session, reason, by string) error {
	err := noting(ctx, log, session, func(ctx context.Context, stored *storenotes.Notes) (event.StoreNote, error) {
		note := event.StoreNote{Type: engine.Held, Sessions: []string{stored.Mark(session)}, By: by, Reason: reason}
		if _, err := log.Head(ctx, session); err != nil && !errors.Is(err, eventlog.ErrCorrupt) {
			return note, err
		}
		return note, event.Validate(note)
	})
	if err != nil {
		return fmt.Errorf("hold session %q: %w", session, err)
	}
	return nil
}

// errNotHeld: there is nothing to release.
var errNotHeld = errors.New("it is not on hold")

// Release releases all holds on a session. The reason and by are stored with the release. If a
// repair of the session convlog:store has lost notes, which may have been holds, all sessions are on
// hold until convlog:store is released.
func Release(ctx context.Context, log *eventlog.Log, session, reason, by string) error {
	err := noting(ctx, log, session, func(_ context.Context, stored *storenotes.Notes) (event.StoreNote, error) {
		note := event.StoreNote{Type: engine.Released, By: by, Reason: reason}
		for _, h := range stored.HoldsOn(session) {
			note.Holds = append(note.Holds, h.ID)
		}
		if len(note.Holds) == 0 {
			return note, errNotHeld
		}
		return note, nil
	})
	if err != nil {
		return fmt.Errorf("release session %q: %w", session, err)
	}
	return nil
}

// noting writes a note under the shared store lock, so that no erasure runs meanwhile.
func noting(ctx context.Context, log *eventlog.Log, session string, make func(context.Context, *storenotes.Notes) (event.StoreNote, error)) error {
	if err := engine.Of(log).Usable(ctx, session); err != nil {
		return err
	}
	return log.Hold(ctx, func(ctx context.Context) error {
		return storenotes.Append(ctx, log, func(stored *storenotes.Notes) ([]event.StoreNote, error) {
			note, err := make(ctx, stored)
			return []event.StoreNote{note}, err
		})
	})
}

// Holds lists the holds that are not released, the holds of missing sessions last.
func Holds(ctx context.Context, log *eventlog.Log) (holds []HeldError, err error) {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return nil, err
	}
	stored, err := storenotes.Load(ctx, log)
	if err != nil {
		return nil, err
	}
	left := stored.AllHolds()
	if len(left) == 0 {
		return nil, nil
	}
	found := map[ulid.ULID]bool{}
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		for _, h := range stored.HoldsOn(info.ID) {
			found[h.ID] = true
			holds = append(holds, heldOf(info.ID, h))
		}
	}
	for _, h := range left {
		if !found[h.ID] {
			holds = append(holds, heldOf("", h))
		}
	}
	return holds, nil
}

func heldOf(session string, h storenotes.Hold) HeldError {
	if h.Lost {
		session = storenotes.Session
	}
	return HeldError{Session: session, Since: h.Time, By: h.By, Reason: h.Reason}
}

// checkHolds returns a *HeldError if one of the sessions is on hold. The caller holds the store
// lock.
func checkHolds(ctx context.Context, log *eventlog.Log, sessions []string) error {
	if len(sessions) == 0 {
		return nil
	}
	stored, err := storenotes.Load(ctx, log)
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if holds := stored.Holds(session); len(holds) > 0 {
			held := heldOf(session, holds[0])
			return &held
		}
	}
	return nil
}

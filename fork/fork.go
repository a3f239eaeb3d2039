package fork

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Options configure At, and Rewind and Recover, which use Label, Reason, Force and Metadata
// only. The zero Options make a fork with a new id.
type Options struct {
	// ID is the new session's id. If it is empty, NewID makes one; a nil NewID makes
	// ULIDs in lower case.
	ID    string
	NewID func() string
	// Label names the branch that At makes or Rewind leaves, Reason says why.
	Label, Reason string
	// Force allows a fork inside an open turn, and a rewind into an atomic append.
	Force bool
	// Head is the head that Rewind and Recover must find; zero is any head. The error of another
	// head is an eventlog.ConflictError.
	Head event.Head
	// Child says that the fork is the session of a child run, not a branch.
	Child event.ForkChild
	// Metadata is merged into the metadata of the session_forked or head_moved event.
	Metadata map[string]any
	// EventID and Time are the session_forked event's; the log sets them if they are
	// zero. Imports set them.
	EventID ulid.ULID
	Time    time.Time
}

// stamp sets the id and the time of the session_forked event.
func (o *Options) stamp(e *event.Event) {
	e.Timestamp = o.Time
	if !o.EventID.IsZero() {
		e.ID = o.EventID
	}
}

// sessionID is id, or a new one if it is empty.
func sessionID(id string, newID func() string) string {
	switch {
	case id != "":
		return id
	case newID != nil:
		return newID()
	}
	return strings.ToLower(event.NewID().String())
}

// Session is a new fork or copy.
type Session struct {
	ID string
	// Head is the head. Of a fork it is the session_forked event.
	Head event.Head
	// Parent is the forked or copied session, Seq the newest event that the fork shares or
	// the copy has.
	Parent string
	Seq    int64
	// Erased are the seqs of redacted events, of a copy. The copy has lost events there.
	Erased []int64
}

// At forks parent at p: it makes a session that begins with session_forked and
// shares the parent's events up to p. The cost is one append, however long the
// parent is. Without Options.Force, At also reads back to the newest event that opens
// or ends a turn. In a session without turn events it reads at most 1,024 events; a
// call before them, before 16 user messages in a row, or before 16 forks without an
// exchange counts as interrupted.
//
// Errors: a missing parent is eventlog.ErrNotFound, a missing point an error of
// Resolve, a taken id eventlog.ErrExists, a point inside an atomic append
// "inside_append". A point inside an open turn is "open_turn" unless Options.Force
// is set; a call without a result opens a turn too, a hibernating turn is not open.
// In a forced fork, calls without a result count as interrupted.
func At(ctx context.Context, log *eventlog.Log, parent string, p Point, opts ...Options) (Session, error) {
	o := one(opts)
	at, err := Resolve(ctx, log, parent, p)
	if err == nil {
		err = checkPoint(ctx, log, parent, &at, o.Force)
	}
	if err != nil {
		return Session{}, fmt.Errorf("fork: %w", err)
	}
	e := event.New(event.Fork{Parent: parent, Seq: at.Seq, EventID: at.ID, Hash: at.Hash(),
		Label: o.Label, Reason: o.Reason, Child: o.Child})
	o.stamp(&e)
	id := sessionID(o.ID, o.NewID)
	head, err := appendUntilKnown(eventlog.WithMetadata(ctx, o.Metadata), log, id, eventlog.New(), e)
	if errors.Is(err, eventlog.ErrConflict) {
		err = fmt.Errorf("%q: %w", id, eventlog.ErrExists)
	}
	if err != nil {
		return Session{}, fmt.Errorf("fork session %q: %w", parent, err)
	}
	return Session{ID: id, Head: head, Parent: parent, Seq: at.Seq}, nil
}

// appendUntilKnown appends events, again if the outcome is unknown.
func appendUntilKnown(ctx context.Context, log *eventlog.Log, session string, expect eventlog.Expect, events ...event.Event) (head event.Head, err error) {
	err = eventlog.UntilKnown(ctx, func() error {
		head, err = log.Append(ctx, session, expect, events...)
		return err
	})
	return head, err
}

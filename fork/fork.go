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

// Options configure At. The zero value makes a fork with an id of its own.
type Options struct {
	// ID is the new session's id; minted if empty.
	ID string
	// NewID mints ids where ID is empty; if nil they are ULIDs in lower case.
	NewID func() string
	// Label names the branch, Reason says why it was made.
	Label, Reason string
	// Force forks inside an open turn too.
	Force bool
	// Metadata is merged into that of the session_forked event.
	Metadata map[string]any
	// EventID is the id of the session_forked event, minted if zero, and Time its
	// timestamp, that of the append if zero: for imports.
	EventID ulid.ULID
	Time    time.Time
}

// stamp gives the session_forked event the id and the time that were asked for.
func (o *Options) stamp(e *event.Event) {
	e.Timestamp = o.Time
	if !o.EventID.IsZero() {
		e.ID = o.EventID
	}
}

func (o *Options) id() string {
	if o.ID != "" {
		return o.ID
	}
	if o.NewID != nil {
		return o.NewID()
	}
	return newID()
}

func newID() string { return strings.ToLower(event.NewID().String()) }

// Child is a fork that was made.
type Child struct {
	ID string
	// Head is that of the fork: its session_forked event.
	Head event.Head
	// Parent is the session that was forked behind event Seq.
	Parent string
	Seq    int64
}

// At forks parent behind p: it makes a session whose first event is
// session_forked and whose past are the parent's events up to p, read through
// it. It costs one append, however long the parent is.
//
// Refused are a parent that is missing (eventlog.ErrNotFound) or does not have
// the point (see Resolve), an id that is taken (eventlog.ErrExists), a point
// inside an atomic append (ErrInsideAppend), and, unless forced, one inside an
// open turn (ErrOpenTurn). A turn that hibernates is not open. A call that has
// no result yet at p counts as an open turn; in the fork it ends by itself.
func At(ctx context.Context, log *eventlog.Log, parent string, p Point, opts Options) (Child, error) {
	at, err := Resolve(ctx, log, parent, p)
	if err == nil {
		err = checkPoint(ctx, log, parent, &at, opts.Force)
	}
	if err != nil {
		return Child{}, fmt.Errorf("fork: %w", err)
	}
	e := event.New(event.Fork{Parent: parent, Seq: at.Seq, EventID: at.ID, Hash: at.Hash(),
		Label: opts.Label, Reason: opts.Reason})
	opts.stamp(&e)
	id := opts.id()
	head, err := appendSurely(eventlog.WithMetadata(ctx, opts.Metadata), log, id, eventlog.New(), e)
	if errors.Is(err, eventlog.ErrConflict) {
		err = fmt.Errorf("%q: %w", id, eventlog.ErrExists)
	}
	if err != nil {
		return Child{}, fmt.Errorf("fork session %q: %w", parent, err)
	}
	return Child{ID: id, Head: head, Parent: parent, Seq: at.Seq}, nil
}

// tries is how often an append whose outcome is unknown is made.
const tries = 3

// appendSurely appends events, and again where the outcome was unknown: they
// are stored once.
func appendSurely(ctx context.Context, log *eventlog.Log, session string, expect eventlog.Expect, events ...event.Event) (head event.Head, err error) {
	for range tries {
		head, err = log.Append(ctx, session, expect, events...)
		if !errors.Is(err, eventlog.ErrUnknownOutcome) || ctx.Err() != nil {
			break
		}
	}
	return head, err
}

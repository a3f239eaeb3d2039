package fork

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/upkeep/erase"
)

// CopyOptions configure Copy. The zero CopyOptions copy into the same log, under a
// new id.
type CopyOptions struct {
	// ID is the copy's id. If it is empty, NewID makes one; a nil NewID makes ULIDs
	// in lower case.
	ID    string
	NewID func() string
	// To is the log that gets the copy; nil is the log of the source.
	To *eventlog.Log
}

// Copy makes a session that needs no other one. It has all events of the source's
// lineage at the same seqs, with their types, times, costs and data, orphaned events
// too, in the same appends; an append that becomes too large is split. Event ids are
// new, and references to them are changed. The metadata of each event names its
// original (event.Event.Origin) and marks cost and usage as inherited. A
// session_forked event of the source makes no fork of the copy. Blobs are copied if
// To is another log.
//
// A redacted event cannot be copied. The copy has a lost event in its place, whose
// extra member holds the type and the members that the redaction kept.
//
// Copy reads the source once, up to its head at the start. Redactions and removals
// of the source wait until the copy is finished, so that they find the copy too. A
// copy that fails is removed. If the process ends before that, the copy's first
// event tells how many events are missing (event.Event.CopyOrigin), and Tree shows
// it as partial. A taken id is eventlog.ErrExists.
func Copy(ctx context.Context, log *eventlog.Log, source string, opts ...CopyOptions) (Session, error) {
	o := one(opts)
	c := &copier{from: log, to: o.To, source: source, id: sessionID(o.ID, o.NewID), renaming: newRenaming(), blobs: map[event.Digest]bool{}}
	if c.to == nil {
		c.to = log
	}
	if err := log.Hold(ctx, c.run); err != nil {
		return Session{}, fmt.Errorf("copy session %q to %q: %w", source, c.id, errors.Join(err, c.undo(ctx, err)))
	}
	return Session{ID: c.id, Head: c.head, Parent: source, Seq: c.head.Seq, Erased: c.erased}, nil
}

// The limits of a batch of appends.
const (
	batchEvents = 1024
	batchBytes  = 1 << 20
)

// copier makes one copy.
type copier struct {
	from, to   *eventlog.Log
	source, id string
	renaming   renaming
	blobs      map[event.Digest]bool // blobs that the other log has

	first  ulid.ULID  // the id of the copy's first event
	head   event.Head // of the copy so far
	erased []int64

	open    []event.Event // the append that is not whole yet
	size    int           // its bytes
	appends [][]event.Event
	events  int // events in appends
	bytes   int // bytes in appends
}

func (c *copier) run(ctx context.Context) error {
	head, err := c.from.Head(ctx, c.source)
	if err != nil {
		return err
	}
	if err := c.checkID(ctx); err != nil {
		return err
	}
	for e, err := range c.from.Read(ctx, c.source, eventlog.Between(1, head.Seq)) {
		if err == nil {
			err = c.add(ctx, &e, head.Seq)
		}
		if err != nil {
			return err
		}
	}
	return c.flush(ctx)
}

func (c *copier) checkID(ctx context.Context) error {
	if err := event.CheckSessionID(c.id); err != nil {
		return err
	}
	_, err := c.to.Head(ctx, c.id)
	switch {
	case err == nil:
		return eventlog.ErrExists
	case errors.Is(err, eventlog.ErrNotFound):
		return nil
	}
	return err
}

// add adds the copy of an event to the batch.
func (c *copier) add(ctx context.Context, e *event.Event, through int64) error {
	if e.Redacted() && e.Type.Spillable() {
		c.erased = append(c.erased, e.Seq)
	}
	fresh, err := copyOf(e, &c.renaming)
	if err == nil && e.Seq == 1 {
		c.first = fresh.ID
		err = fresh.SetMetadata(mark.CopyOf, mark.Copy{Session: c.source, Through: through})
	}
	if err == nil {
		err = c.copyBlobs(ctx, e)
	}
	if err != nil {
		return err
	}
	c.open = append(c.open, fresh)
	c.size += len(fresh.Data) + len(fresh.Metadata)
	if e.More() > 0 {
		return nil
	}
	return c.endAppend(ctx)
}

// endAppend adds a whole append to the batch, or begins the next batch with it if
// the batch would grow too large.
func (c *copier) endAppend(ctx context.Context) error {
	if c.events > 0 && c.bytes+c.size > batchBytes {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}
	c.appends = append(c.appends, c.open)
	c.events, c.bytes = c.events+len(c.open), c.bytes+c.size
	if c.open, c.size = nil, 0; c.events < batchEvents {
		return nil
	}
	return c.flush(ctx)
}

// copyBlobs copies an event's blobs to another log.
func (c *copier) copyBlobs(ctx context.Context, e *event.Event) error {
	if c.to == c.from {
		return nil
	}
	for _, d := range blobsOf(e) {
		if c.blobs[d] {
			continue
		}
		body, err := c.from.OpenBlob(ctx, d)
		if err != nil {
			return err
		}
		_, err = engine.Of(c.to).PutBlob(ctx, body)
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
		c.blobs[d] = true
	}
	return nil
}

// flush appends the batch.
func (c *copier) flush(ctx context.Context) error {
	if len(c.appends) == 0 {
		return nil
	}
	err := c.write(ctx, c.appends)
	c.appends, c.events, c.bytes = c.appends[:0], 0, 0
	return err
}

// write appends a batch, in two halves if it is too large: the lines of copies are
// longer than their originals.
func (c *copier) write(ctx context.Context, appends [][]event.Event) error {
	head, err := c.to.AppendEach(ctx, c.id, eventlog.At(c.head).Lenient(), appends...)
	if errors.Is(err, event.ErrInvalidSize) {
		if first, rest := halves(appends); rest != nil {
			if err := c.write(ctx, first); err != nil {
				return err
			}
			return c.write(ctx, rest)
		}
	}
	if errors.Is(err, eventlog.ErrConflict) && c.head.IsZero() {
		err = fmt.Errorf("%w: %w", eventlog.ErrExists, err)
	}
	if err == nil {
		c.head = head
	}
	return err
}

// halves cuts a batch into two: between two appends, or inside the only one. rest is
// nil if the batch is one event.
func halves(appends [][]event.Event) (first, rest [][]event.Event) {
	if n := len(appends) / 2; n > 0 {
		return appends[:n], appends[n:]
	}
	if n := len(appends[0]) / 2; n > 0 {
		return [][]event.Event{appends[0][:n]}, [][]event.Event{appends[0][n:]}
	}
	return nil, nil
}

// undo removes the unfinished copy, but no session that another writer began.
func (c *copier) undo(ctx context.Context, failed error) error {
	begun := !c.head.IsZero() || errors.Is(failed, eventlog.ErrUnknownOutcome)
	if !begun || errors.Is(failed, eventlog.ErrConflict) {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	first, err := firstOwn(ctx, c.to, c.id)
	if err == nil && first.ID != c.first {
		return nil
	}
	if err == nil {
		err = erase.Remove(ctx, c.to, c.id)
	}
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	return err
}

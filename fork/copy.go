package fork

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// CopyOptions configure Copy. The zero value copies into the same log, under an
// id of its own.
type CopyOptions struct {
	// ID is the copy's id; minted as for a fork if empty.
	ID    string
	NewID func() string
	// To is the log that the copy is made in; the source's if nil.
	To *eventlog.Log
}

// Copied is a copy that was made.
type Copied struct {
	ID   string
	Head event.Head
	// Source is the session that was copied, to event Head.Seq.
	Source string
	// Erased are the seqs of redacted events: in the copy they are lost events.
	Erased []int64
}

// Copy makes a session that needs no other: it holds all events of the
// source's lineage at their seqs, orphaned ones included, with their types,
// times, costs and data, and in the same appends, but for one that becomes too
// large, which is split. Ids are fresh, and references to them follow; each
// event's metadata names its original (Origin), and costs and usage are marked as
// inherited. Forks among them fork nothing any more. Bodies go along into another
// store.
//
// What was redacted cannot be copied as such: a lost event stands in its place,
// whose extra member has the type and what redaction kept.
//
// The source is copied as it is at the start, and read once, a part at a time.
// Redactions and removals in its store wait until it is copied, so that one of
// what was copied finds the copy. A copy that fails is removed; where that fails too, or the process is killed,
// what is left can be told by its first event, which says how far it is to go
// (CopyOrigin); Tree shows it as partial. A taken id is eventlog.ErrExists.
func Copy(ctx context.Context, log *eventlog.Log, source string, opts CopyOptions) (Copied, error) {
	c := &copying{from: log, to: opts.To, source: source, renaming: newRenaming(), carried: map[event.Digest]bool{}}
	if c.to == nil {
		c.to = log
	}
	names := Options{ID: opts.ID, NewID: opts.NewID}
	c.id = names.id()
	if err := log.Hold(ctx, c.run); err != nil {
		return Copied{}, fmt.Errorf("copy session %q to %q: %w", source, c.id, errors.Join(err, c.undo(ctx, err)))
	}
	return Copied{ID: c.id, Head: c.head, Source: source, Erased: c.erased}, nil
}

// The bounds of a batch of appends.
const (
	batchEvents = 1024
	batchBytes  = 1 << 20
)

type copying struct {
	from, to   *eventlog.Log
	source, id string
	renaming   renaming
	carried    map[event.Digest]bool // bodies that are in to

	first  ulid.ULID  // the id of the copy's first event
	head   event.Head // of the copy so far
	erased []int64

	open    []event.Event // the append being gathered
	size    int           // and its size in bytes
	appends [][]event.Event
	events  int // in appends
	bytes   int // of those
}

func (c *copying) run(ctx context.Context) error {
	head, err := c.from.Head(ctx, c.source)
	if err != nil {
		return err
	}
	if err := event.CheckSessionID(c.id); err != nil {
		return err
	}
	if _, err := c.to.Head(ctx, c.id); err == nil {
		return eventlog.ErrExists
	} else if !errors.Is(err, eventlog.ErrNotFound) {
		return err
	}
	for e, err := range c.from.Read(ctx, c.source, eventlog.Between(1, head.Seq)) {
		if err == nil {
			err = c.take(ctx, &e, head.Seq)
		}
		if err != nil {
			return err
		}
	}
	return c.flush(ctx)
}

// take adds the copy of an event to the batch.
func (c *copying) take(ctx context.Context, e *event.Event, through int64) error {
	if e.Redacted() {
		c.erased = append(c.erased, e.Seq)
	}
	fresh, err := carry(e, &c.renaming)
	if err == nil && e.Seq == 1 {
		err = fresh.SetMetadata(copyOfKey, CopyOrigin{c.source, through})
	}
	if err == nil {
		err = c.bodies(ctx, e)
	}
	if err != nil {
		return err
	}
	if e.Seq == 1 {
		c.first = fresh.ID
	}
	c.open = append(c.open, fresh)
	c.size += len(fresh.Data) + len(fresh.Metadata)
	if e.More() > 0 {
		return nil
	}
	return c.gathered(ctx)
}

// gathered adds the append that was gathered to the batch, of which it may be
// the last, or, if it would grow too big, the first of the next.
func (c *copying) gathered(ctx context.Context) error {
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

// bodies carries an event's bodies into another store.
func (c *copying) bodies(ctx context.Context, e *event.Event) error {
	if c.to == c.from {
		return nil
	}
	for _, d := range bodies(e) {
		if c.carried[d] {
			continue
		}
		body, err := c.from.OpenBlob(ctx, d)
		if err != nil {
			return err
		}
		_, err = c.to.PutBlob(ctx, body)
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
		c.carried[d] = true
	}
	return nil
}

// flush appends the batch.
func (c *copying) flush(ctx context.Context) error {
	if len(c.appends) == 0 {
		return nil
	}
	err := c.write(ctx, c.appends)
	c.appends, c.events, c.bytes = c.appends[:0], 0, 0
	return err
}

// write appends what was gathered, in two where that is too much for one append, as
// lines are longer than those they are copies of.
func (c *copying) write(ctx context.Context, appends [][]event.Event) error {
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

// halves are half of the appends each, or of one append half of its events. rest
// is nil where there is but one event.
func halves(appends [][]event.Event) (first, rest [][]event.Event) {
	if n := len(appends) / 2; n > 0 {
		return appends[:n], appends[n:]
	}
	if n := len(appends[0]) / 2; n > 0 {
		return [][]event.Event{appends[0][:n]}, [][]event.Event{appends[0][n:]}
	}
	return nil, nil
}

// undo removes what a failed copy left, unless it is not only that.
func (c *copying) undo(ctx context.Context, failed error) error {
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

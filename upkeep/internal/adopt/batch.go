package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
)

// batcher gathers whole appends into writes within the bound of one append.
type batcher struct {
	*adoption
	head     event.Head
	ready    []event.Event // whole appends
	open     []event.Event // the append that is not complete yet
	size     int           // bytes of the lines of ready
	settings engine.Settings
}

func (b *batcher) add(ctx context.Context, e event.Event) error {
	if b.settings.Spills(&e) {
		if err := b.spill(ctx, &e); err != nil {
			return err
		}
	}
	if b.open = append(b.open, e); e.More() > 0 {
		return nil
	}
	size, err := b.fit(ctx)
	if err != nil {
		return err
	}
	if b.size+size > b.settings.MaxAppend {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.ready, b.size = append(b.ready, b.open...), b.size+size
	b.open = b.open[:0]
	return nil
}

// fit returns the size of the open append, after it has spilled data until the append
// is within the bound. An export had inlined that data.
func (b *batcher) fit(ctx context.Context) (size int, err error) {
	for i := range b.open {
		size += len(b.open[i].Line()) + 1
	}
	for size > b.settings.MaxAppend {
		largest := b.largestOpen()
		if largest == nil {
			return 0, fmt.Errorf("%w: the append's lines take %d bytes, at most %d", event.ErrInvalidSize, size, b.settings.MaxAppend)
		}
		size -= len(largest.Line())
		if err := b.spill(ctx, largest); err != nil {
			return 0, err
		}
		size += len(largest.Line())
	}
	return size, nil
}

// largestOpen is the event of the open append with the largest inline data; nil if no
// data is worth a blob.
func (b *batcher) largestOpen() (largest *event.Event) {
	for i := range b.open {
		e := &b.open[i]
		_, _, spilled := e.Spilled()
		if spilled || len(e.Data) <= engine.MinSpill || !e.Type.Spillable() {
			continue
		}
		if largest == nil || len(e.Data) > len(largest.Data) {
			largest = e
		}
	}
	return largest
}

func (b *batcher) flush(ctx context.Context) error {
	if len(b.ready) == 0 {
		return nil
	}
	err := b.write(ctx)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) && conflict.Cut != nil && conflict.Actual == b.head {
		err = b.forgetCut(ctx)
	}
	if err != nil {
		return err
	}
	b.redacted = slices.DeleteFunc(b.redacted, b.isDue)
	b.head = b.ready[len(b.ready)-1].Head()
	b.stored += int64(len(b.ready))
	b.ready, b.size = b.ready[:0], 0
	return nil
}

// forgetCut appends after the store has truncated a torn tail, for example the tail of
// an interrupted adoption.
func (b *batcher) forgetCut(ctx context.Context) error {
	tails, ok := eventlog.As[eventlog.TailKeeper](b.log.Store())
	if !ok {
		return fmt.Errorf("append after a truncated tail: %w", eventlog.ErrUnsupported)
	}
	if err := tails.ForgetCut(ctx, b.session, b.head); err != nil {
		return err
	}
	return b.write(ctx)
}

// write appends the ready events. It replaces the redacted events that they name, in the
// same operation: an interrupted adoption leaves no redacted line without its note.
func (b *batcher) write(ctx context.Context) error {
	var due []event.Event
	for _, e := range b.redacted {
		if b.isDue(e) {
			due = append(due, e)
		}
	}
	if len(due) == 0 {
		return b.log.Store().Append(ctx, b.session, b.head, b.ready, false)
	}
	eraser, ok := eventlog.As[eventlog.Eraser](b.log.Store())
	if !ok {
		return fmt.Errorf("redact: %w", eventlog.ErrUnsupported)
	}
	return eraser.Rewrite(ctx, b.session, b.head, due, b.ready)
}

// isDue reports whether a redacted event is replaced with the ready events: one of them
// names it, or no new event does.
func (b *batcher) isDue(e event.Event) bool {
	at, named := b.named[e.Seq]
	return !named || at <= b.ready[len(b.ready)-1].Seq
}

// spill moves the data of a finished event into a blob. No hash changes.
func (b *batcher) spill(ctx context.Context, e *event.Event) error {
	ref, err := b.engine.PutBlob(ctx, bytes.NewReader(e.Data))
	if errors.Is(err, eventlog.ErrUnsupported) {
		err = fmt.Errorf("%w: data of %d bytes needs a blob: %w", event.ErrInvalidSize, len(e.Data), err)
	}
	if err != nil {
		return fmt.Errorf("spill data: %w", err)
	}
	var stored line.Line
	if err := stored.Parse(e.Line(), line.Strings{Session: e.SessionID}); err != nil {
		return err
	}
	stored.Digest, stored.Bytes = string(ref.Blob), ref.Bytes
	if i, found := slices.BinarySearch(stored.Blobs, stored.Digest); !found {
		stored.Blobs = slices.Insert(slices.Clone(stored.Blobs), i, stored.Digest)
	}
	*e, err = event.Parse(stored.Relocate(), e.SessionID)
	return err
}

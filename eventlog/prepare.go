package eventlog

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"
)

// lineOverhead bounds the bytes of a line besides session id, type, metadata,
// extras, blobs and data.
const lineOverhead = 512

// prepare completes and validates events in place, as far as that needs no
// history, and spills big bodies. unlock ends the store lock under which the
// blobs were written or found, and which keeps the parent of a fork from being
// removed, and what a snapshot holds from being redacted meanwhile; call it after
// the append.
func (l *Log) prepare(ctx context.Context, session string, expect Expect, events []Event) (unlock func(), err error) {
	merged, err := metadataFrom(ctx)
	if err != nil {
		return nil, fmt.Errorf("metadata of the context: %w", err)
	}
	size, locked := 0, false
	for i := range events {
		e := &events[i]
		if err := l.complete(ctx, session, e, merged, expect.lenient); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", i+1, clip(string(e.Type)), err)
		}
		size += e.lineBound()
		locked = locked || len(e.Blobs()) > 0 || e.rare.facts.fork != nil || e.rare.facts.repeats || l.spills(e)
	}
	if size <= maxAppend && !locked {
		return func() {}, nil
	}
	return l.settleBlobs(ctx, events)
}

// complete fills in what the caller left open and checks the event by itself.
func (l *Log) complete(ctx context.Context, session string, e *Event, merged []byte, lenient bool) error {
	if e.SessionID != "" && e.SessionID != session {
		return fmt.Errorf("%w: the event belongs to session %q", ErrInvalidSession, clip(e.SessionID))
	}
	if e.line != nil {
		return fmt.Errorf("%w: the event is stored already, as %d of %q", ErrInvalidID, e.Seq, clip(e.SessionID))
	}
	e.SessionID = session
	if e.ID == (ulid.ULID{}) {
		e.ID = l.mint.NewID()
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = l.opts.Now()
	}
	if len(merged) > 0 {
		own, err := mergeMetadata(merged, e.Metadata)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
		}
		e.Metadata = own
	}
	if l.opts.Hook != nil {
		if err := l.opts.Hook(ctx, session, e); err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	if err := e.checkEnvelope(); err != nil {
		return err
	}
	if err := e.checkMade(); err != nil {
		return err
	}
	if lenient {
		return nil
	}
	if e.rare.facts.child == session {
		return fmt.Errorf("%w: child_session_id is the session itself", ErrInvalidPayload)
	}
	return e.rare.facts.invalid
}

// checkMade refuses a redacted event that Redact did not make: it would claim
// an erasure that never was. Copies of one are marked as such.
func (e *Event) checkMade() error {
	if e.Type.Name() != Redacted {
		return nil
	}
	if _, copied := e.MetadataValue(forkOriginKey); copied {
		return nil
	}
	return fmt.Errorf("%w: %s is appended by Redact only", ErrInvalidType, e.Type)
}

// lineBound is an upper bound of the length of e's line with its newline.
func (e *Event) lineBound() int {
	n := lineOverhead + 2*len(e.SessionID) + 2*len(e.Type) + len(e.Metadata) + len(e.Extras()) + 80*len(e.Blobs())
	if _, _, spilled := e.Spilled(); !spilled {
		n += len(e.Data)
	}
	return n
}

// settleBlobs spills what is too big and checks that every blob is there, under
// a shared store lock that the caller ends after the append.
func (l *Log) settleBlobs(ctx context.Context, events []Event) (unlock func(), err error) {
	unlock, err = l.lockStore(ctx, false)
	if err != nil {
		return nil, err
	}
	if err := l.spillAll(ctx, events); err != nil {
		unlock()
		return nil, err
	}
	if err := l.checkBlobs(ctx, events); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// spillAll keeps data over the threshold as blobs, and then the largest left
// until the append fits its bound.
func (l *Log) spillAll(ctx context.Context, events []Event) error {
	size := 0
	for i := range events {
		if l.spills(&events[i]) {
			if err := l.spill(ctx, &events[i]); err != nil {
				return err
			}
		}
		size += events[i].lineBound()
	}
	for size > maxAppend {
		largest := largestInline(events)
		if largest == nil {
			return fmt.Errorf("%w: the append's lines take up to %d bytes, at most %d", ErrInvalidSize, size, maxAppend)
		}
		before := largest.lineBound()
		if err := l.spill(ctx, largest); err != nil {
			return err
		}
		size -= before - largest.lineBound()
	}
	return nil
}

// spills reports whether e's data is over the threshold.
func (l *Log) spills(e *Event) bool {
	return l.opts.SpillOver >= 0 && len(e.Data) > l.opts.SpillOver && e.Type.spillable()
}

// spillable is false for types that are read without their blobs: those that
// shape the tree or say who runs the session.
func (t Type) spillable() bool {
	info, known := vocabulary[t.Name()]
	return !known || !info.fixed
}

// largestInline is the event whose data is largest on its line, if spilling it
// gains anything.
func largestInline(events []Event) (largest *Event) {
	for i := range events {
		e := &events[i]
		if _, _, spilled := e.Spilled(); spilled || len(e.Data) <= 256 || !e.Type.spillable() {
			continue
		}
		if largest == nil || len(e.Data) > len(largest.Data) {
			largest = e
		}
	}
	return largest
}

// spill keeps e's data as a blob; e's line will name it.
func (l *Log) spill(ctx context.Context, e *Event) error {
	blobs, err := l.blobs()
	if err != nil {
		return fmt.Errorf("%w: data of %d bytes needs a blob: %w", ErrInvalidSize, len(e.Data), err)
	}
	d, n, err := blobs.PutBlob(ctx, bytes.NewReader(e.Data))
	if err != nil {
		return fmt.Errorf("spill data: %w", err)
	}
	r := e.own()
	r.digest, r.bytes = d, n
	r.blobs = sortDigests(append([]Digest{d}, r.blobs...))
	return nil
}

// checkBlobs refuses events that need a blob the store does not have.
func (l *Log) checkBlobs(ctx context.Context, events []Event) error {
	for i := range events {
		for _, d := range events[i].Blobs() {
			if events[i].rare.digest == d {
				continue
			}
			if err := l.checkBlob(ctx, d); err != nil {
				return fmt.Errorf("event %d (%s): %w: %w", i+1, events[i].Type, ErrInvalidBlob, err)
			}
		}
	}
	return nil
}

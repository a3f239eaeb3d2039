package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
)

// prepare completes and validates the events of a request as far as that needs no
// older events, and spills big data. Call unlock after the append: it ends the store
// lock that protects the blobs, a fork's parent, and the content of a snapshot.
func (l *Log) prepare(ctx context.Context, session string, r *request) (unlock func(), err error) {
	inherited, err := metadataFrom(ctx)
	if err != nil {
		return nil, fmt.Errorf("metadata of the context: %w", err)
	}
	if r.limit, err = l.maxAppend(ctx); err != nil {
		return nil, err
	}
	size, needsLock := 0, false
	for i := range r.entries {
		en := &r.entries[i]
		if err := l.complete(ctx, session, en, inherited, r.expect.lenient); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", i+1, line.Clip(string(en.Type)), err)
		}
		size += en.size()
		needsLock = needsLock || len(en.blobs) > 0 || en.facts.Fork != nil || en.facts.Body || l.spills(&en.Event)
	}
	if size <= r.limit && !needsLock {
		return func() {}, nil
	}
	return l.storeBlobs(ctx, r)
}

// complete sets the fields that the caller left empty, and validates the event by
// itself.
func (l *Log) complete(ctx context.Context, session string, en *entry, inherited jsontext.Value, lenient bool) error {
	if en.SessionID != "" && en.SessionID != session {
		return fmt.Errorf("%w: the event belongs to session %q", event.ErrInvalidSession, line.Clip(en.SessionID))
	}
	if en.Line() != nil {
		return fmt.Errorf("%w: the event is stored already, as event %d of session %q", event.Rule("event_id"), en.Seq, line.Clip(en.SessionID))
	}
	en.SessionID = session
	if en.ID == (ulid.ULID{}) {
		en.ID = l.mint.NewID()
	}
	if en.Timestamp.IsZero() {
		en.Timestamp = l.opts.Now()
	}
	if len(inherited) > 0 {
		if err := en.MergeMetadata(inherited); err != nil {
			return err
		}
	}
	if l.opts.Hook != nil {
		if err := l.opts.Hook(ctx, session, &en.Event); err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	if err := en.Normalize(); err != nil {
		return err
	}
	return en.check(lenient)
}

// check applies the rules of the entry's type, and sets its facts and blobs.
func (en *entry) check(lenient bool) error {
	if err := en.checkType(lenient); err != nil {
		return err
	}
	var err error
	if en.facts, err = en.Facts(); err != nil {
		return err
	}
	if !lenient {
		if en.facts.Child == en.SessionID {
			return fmt.Errorf("%w: child_session_id is the session itself", event.ErrInvalidPayload)
		}
		if en.facts.Invalid != nil {
			return en.facts.Invalid
		}
	}
	if len(en.facts.Blobs) > 0 {
		if err := en.AddBlobs(en.facts.Blobs...); err != nil {
			return err
		}
	}
	en.blobs = en.Blobs()
	return nil
}

// reservedPrefix begins the types that only this module may define.
const reservedPrefix = "convlog:"

// checkType refuses a redacted event unless it is a copy of one: only a redaction
// makes redacted events. A strict append also refuses an unknown type without a
// colon, and the reserved prefix.
func (en *entry) checkType(lenient bool) error {
	if en.Type.Name() == event.Redacted && !en.Copied() {
		return fmt.Errorf("%w: only a redaction appends %s", event.ErrInvalidType, en.Type)
	}
	if err := en.checkNote(); err != nil || lenient || en.Type.Known() {
		return err
	}
	if !strings.Contains(string(en.Type), ":") {
		return fmt.Errorf("%w: %s is not in the vocabulary; a type of your own contains a colon, as \"shop:%s\"",
			event.ErrInvalidType, en.Type, en.Type)
	}
	if strings.HasPrefix(string(en.Type), reservedPrefix) {
		return fmt.Errorf("%w: %s: the prefix %q is reserved", event.ErrInvalidType, en.Type, reservedPrefix)
	}
	return nil
}

// checkNote refuses a note of the store in another session, and any other event in the
// session of the notes: an imported file must not forge or damage them.
func (en *entry) checkNote() error {
	note := engine.IsNote(en.Type)
	switch {
	case note && en.SessionID != engine.StoreSession && !en.Copied():
		return fmt.Errorf("%w: %s is for the session %q, the notes of the store", event.ErrInvalidType, en.Type, engine.StoreSession)
	case !note && en.SessionID == engine.StoreSession && en.Type.Name() != event.SessionStarted:
		return fmt.Errorf("%w: %s: the session %q has the notes of the store only", event.ErrInvalidType, en.Type, engine.StoreSession)
	}
	return nil
}

// storeBlobs takes the shared store lock, spills big data, and checks that every blob
// exists. The caller calls unlock after the append.
func (l *Log) storeBlobs(ctx context.Context, r *request) (unlock func(), err error) {
	ctx, unlock, err = l.lockStore(ctx, false)
	if err != nil {
		return nil, err
	}
	if err = l.spillAll(ctx, r.entries, r.limit); err == nil {
		err = l.checkBlobs(ctx, r.entries)
	}
	if err != nil {
		unlock()
		return nil, lockLost(ctx, err)
	}
	return unlock, nil
}

// spillAll spills data over the threshold. Then it spills the largest inline data
// until the append fits into limit bytes.
func (l *Log) spillAll(ctx context.Context, entries []entry, limit int) error {
	size := 0
	for i := range entries {
		if l.spills(&entries[i].Event) {
			if err := l.spill(ctx, &entries[i]); err != nil {
				return err
			}
		}
		size += entries[i].size()
	}
	for size > limit {
		largest := largestInline(entries)
		if largest == nil {
			return fmt.Errorf("%w: the append's lines take up to %d bytes, at most %d", event.ErrInvalidSize, size, limit)
		}
		before := largest.size()
		if err := l.spill(ctx, largest); err != nil {
			return err
		}
		size -= before - largest.size()
	}
	return nil
}

// spills reports whether the event's data is over the threshold.
func (l *Log) spills(e *event.Event) bool {
	return l.opts.SpillOver >= 0 && len(e.Data) > l.opts.SpillOver && e.Type.Spillable()
}

// largestInline is the entry with the largest data on its line; nil if no data is
// worth a blob.
func largestInline(entries []entry) (largest *entry) {
	for i := range entries {
		en := &entries[i]
		if !en.spilled.IsZero() || len(en.Data) <= engine.MinSpill || !en.Type.Spillable() {
			continue
		}
		if largest == nil || len(en.Data) > len(largest.Data) {
			largest = en
		}
	}
	return largest
}

// spill stores the entry's data as a blob.
func (l *Log) spill(ctx context.Context, en *entry) error {
	blobs, err := l.blobs()
	if err != nil {
		return fmt.Errorf("%w: data of %d bytes needs a blob: %w", event.ErrInvalidSize, len(en.Data), err)
	}
	d, n, err := blobs.PutBlob(ctx, bytes.NewReader(en.Data))
	if err != nil {
		return fmt.Errorf("spill data: %w", err)
	}
	en.spilled = event.BlobRef{Blob: d, Bytes: n}
	if i, found := slices.BinarySearch(en.blobs, d); !found {
		en.blobs = slices.Insert(slices.Clone(en.blobs), i, d)
	}
	return nil
}

// checkBlobs refuses an event that needs a missing blob.
func (l *Log) checkBlobs(ctx context.Context, entries []entry) error {
	for i := range entries {
		for _, d := range entries[i].blobs {
			if entries[i].spilled.Blob == d {
				continue
			}
			if err := l.checkBlob(ctx, d); err != nil {
				return fmt.Errorf("event %d (%s): %w: %w", i+1, entries[i].Type, event.ErrInvalidBlob, err)
			}
		}
	}
	return nil
}

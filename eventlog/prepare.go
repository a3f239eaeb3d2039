package eventlog

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
)

// prepare completes and validates a request's events as far as that needs no
// history, and spills big data. Call unlock after the append: it ends the store
// lock that protects the blobs, a fork's parent, and the content of a snapshot.
func (l *Log) prepare(ctx context.Context, session string, r *request) (unlock func(), err error) {
	inherited, err := metadataFrom(ctx)
	if err != nil {
		return nil, fmt.Errorf("metadata of the context: %w", err)
	}
	size, locked := 0, false
	for i := range r.entries {
		en := &r.entries[i]
		if err := l.complete(ctx, session, en, inherited, r.expect.lenient); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", i+1, line.Clip(string(en.Type)), err)
		}
		size += en.size()
		locked = locked || len(en.blobs) > 0 || en.facts.Fork != nil || en.facts.Body || l.spills(&en.Event)
	}
	if size <= engine.MaxAppend && !locked {
		return func() {}, nil
	}
	return l.storeBlobs(ctx, r.entries)
}

// complete fills in what the caller left open, and validates the event by itself.
func (l *Log) complete(ctx context.Context, session string, en *entry, inherited jsontext.Value, lenient bool) error {
	if en.SessionID != "" && en.SessionID != session {
		return fmt.Errorf("%w: the event belongs to session %q", event.ErrInvalidSession, line.Clip(en.SessionID))
	}
	if en.Line() != nil {
		return fmt.Errorf("%w: the event is stored already, as %d of %q", event.ErrInvalidID, en.Seq, line.Clip(en.SessionID))
	}
	en.SessionID = session
	if en.ID == (ulid.ULID{}) {
		en.ID = l.mint.NewID()
	}
	if en.Timestamp.IsZero() {
		en.Timestamp = l.opts.Now()
	}
	if len(inherited) > 0 {
		merged, err := event.MergeMetadata(inherited, en.Metadata)
		if err != nil {
			return err
		}
		en.Metadata = merged
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

// check applies the rules of the entry's type, and notes its facts.
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

// checkType refuses a redacted event that no redaction made: it would claim an
// erasure that never happened. Copies of one are marked as such. A strict append
// refuses unknown types that are no program's own.
func (en *entry) checkType(lenient bool) error {
	if en.Type.Name() == event.Redacted && !en.Copied() {
		return fmt.Errorf("%w: only a redaction appends %s", event.ErrInvalidType, en.Type)
	}
	if lenient || en.Type.Known() {
		return nil
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

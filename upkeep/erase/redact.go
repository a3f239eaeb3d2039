// Package erase removes content from a log for good: it redacts events, removes
// sessions, and collects blobs that no event needs. Each takes the exclusive store
// lock, and tells beforehand what it would do.
package erase

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
)

// Redaction reports what a redaction erased, and what it left alone.
type Redaction struct {
	Session string
	// Erased are the events whose content is erased: those asked for, and later
	// snapshot bodies that may hold their content, here and in forks.
	Erased []EventRef
	// Blobs are the erased bodies: those no other event needs.
	Blobs []event.BlobRef
	// TornTails are the torn tails of the rewritten sessions. They are erased too,
	// like torn tails and copies that were saved of them.
	TornTails []eventlog.TornTail
	// Already are the requested seqs that were redacted before.
	Already []int64
	// Untouched are events that may repeat the content and were left alone: later
	// compactions, and copies of the erased events.
	Untouched []EventRef
	// Unread are sessions too damaged to tell whether they are forks or copies.
	Unread []string
}

// EventRef names an event.
type EventRef struct {
	Session string
	Seq     int64
	Type    event.Type
}

// RedactOptions configure Redact.
type RedactOptions struct {
	// Reason is stored with the redaction.
	Reason string
	// DryRun reports what would be erased, and erases nothing.
	DryRun bool
}

// Redact erases the content of events for good: salt, metadata, data, and blobs
// that no other event needs. The chain still verifies, and the members that
// Event.Kept lists stay. Later snapshot bodies, here and in forks, are erased too.
// The rewrite and a redacted event that names the events are one operation; forks
// that share an event get a redacted event that names it, too.
//
// Events that are redacted already are skipped, except for blobs that an
// interrupted redaction left. Tree and control types are refused with
// event.ErrInvalidType; an event that the session shares with its parent must be
// redacted there (event.ErrInvalidTree). At most one RedactOptions is used.
func Redact(ctx context.Context, log *eventlog.Log, session string, seqs []int64, opts ...RedactOptions) (Redaction, error) {
	var o RedactOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	r := redaction{log: log, engine: engine.Of(log), reason: o.Reason}
	if err := r.engine.Usable(ctx, session); err != nil {
		return Redaction{}, err
	}
	if _, ok := eventlog.As[eventlog.Eraser](log.Store()); !ok {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, eventlog.ErrUnsupported)
	}
	ctx, unlock, err := r.engine.LockStore(ctx, !o.DryRun)
	if err != nil {
		return Redaction{}, err
	}
	defer unlock()
	r.plan = newPlan(log, session)
	if err := r.plan.make(ctx, session, seqs); err != nil {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, err)
	}
	if o.DryRun {
		return r.plan.report, nil
	}
	if err := r.run(ctx, session); err != nil {
		return Redaction{}, err
	}
	return r.plan.report, r.plan.sweep(ctx)
}

// redaction is a running redaction.
type redaction struct {
	log    *eventlog.Log
	engine engine.Engine
	reason string
	plan   *plan
}

func (r *redaction) run(ctx context.Context, session string) error {
	// The session itself comes last: as long as its events are not redacted, an
	// interrupted redaction can be asked for again, and does the rest.
	for _, holder := range slices.Backward(slices.Concat(r.plan.order, r.plan.informed)) {
		if err := r.rewrite(ctx, holder); err != nil {
			return fmt.Errorf("redact in session %q: %w", holder, err)
		}
	}
	for _, holder := range r.plan.earlier {
		if err := r.engine.Sync(ctx, holder); err != nil {
			return fmt.Errorf("redact in session %q: %w", session, err)
		}
	}
	if err := removeBlobs(ctx, r.log, append(r.plan.gone, r.plan.erasedBlobs()...)); err != nil {
		return fmt.Errorf("redact in session %q: %w", session, err)
	}
	return nil
}

func removeBlobs(ctx context.Context, log *eventlog.Log, digests []event.Digest) error {
	if len(digests) == 0 {
		return nil
	}
	blobs, ok := eventlog.As[eventlog.Blobs](log.Store())
	if !ok {
		return fmt.Errorf("blobs: %w", eventlog.ErrUnsupported)
	}
	return blobs.RemoveBlobs(ctx, digests)
}

// rewrite replaces the lines of a session's events by redacted ones and appends
// the redacted event, as one operation. A fork that only shares the events gets
// the redacted event.
func (r *redaction) rewrite(ctx context.Context, session string) error {
	note := r.engine.Mint(r.plan.note(session, r.reason))
	return r.engine.Rewrite(ctx, session, note, func(ctx context.Context) (lines []event.Event, err error) {
		for _, seq := range r.plan.seqs[session] {
			e, err := r.redactedLine(ctx, session, seq)
			if err != nil {
				return nil, err
			}
			lines = append(lines, e)
		}
		return lines, nil
	})
}

// redactedLine is an event without its content: header, hash, commit, and its
// structure.
func (r *redaction) redactedLine(ctx context.Context, session string, seq int64) (event.Event, error) {
	e, err := ownEvent(ctx, r.log, session, seq)
	if err != nil {
		return e, err
	}
	err = r.engine.Fetch(ctx, &e)
	if errors.Is(err, eventlog.ErrBlobNotFound) || errors.Is(err, eventlog.ErrCorrupt) {
		e.Data, err = jsontext.Value(`{}`), nil // lost data keeps no members
	}
	if err != nil {
		return e, err
	}
	kept, err := e.Structure()
	if err != nil {
		return e, fmt.Errorf("redact event %d: %w", seq, err)
	}
	var l line.Line
	if err := l.Parse(e.Line(), line.Strings{Session: session}); err != nil {
		return e, fmt.Errorf("redact event %d: %w", seq, err)
	}
	return event.Parse(l.Erase(kept), session)
}

// ownEvent reads an event that the session itself holds, as it is stored.
func ownEvent(ctx context.Context, log *eventlog.Log, session string, seq int64) (event.Event, error) {
	if seq > 0 {
		for e, err := range log.Store().Read(ctx, session, eventlog.Span{From: seq, To: seq}) {
			return e, err
		}
	}
	for first, err := range log.Store().Read(ctx, session, eventlog.Span{Limit: 1}) {
		if err != nil {
			return event.Event{}, err
		}
		if 0 < seq && seq < first.Seq {
			return event.Event{}, fmt.Errorf("%w: event %d is shared with the parent, session %q: redact it there",
				event.ErrInvalidTree, seq, holder(ctx, log, session, seq))
		}
		return event.Event{}, fmt.Errorf("event %d of session %q: %w", seq, session, eventlog.ErrEventNotFound)
	}
	return event.Event{}, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
}

// holder is the ancestor that holds an event of a fork's prefix, as far as it can
// be found.
func holder(ctx context.Context, log *eventlog.Log, session string, seq int64) string {
	held := session
	for a, err := range log.Ancestors(ctx, session) {
		if err != nil || a.Through.Seq < seq {
			break
		}
		held = a.Session
	}
	return held
}

// Package erase removes content from a log for good: it redacts events, removes
// sessions, and collects unreferenced blobs. Each function takes the exclusive store
// lock. Redact and Collect have a dry run, which reports and erases nothing.
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

// Redaction reports the erased content, and the content that stays.
type Redaction struct {
	Session string
	// Erased are the erased events: the requested events, and later snapshot bodies that
	// may have their content, in this session and in forks.
	Erased []EventRef
	// Blobs are the erased blobs. No other event needs them.
	Blobs []event.BlobRef
	// TornTails are the torn tails of the rewritten sessions. They are erased too, and
	// so are saved torn tails and backup copies of these sessions.
	TornTails []eventlog.TornTail
	// Already are the requested seqs that were redacted before.
	Already []int64
	// Untouched are events that may repeat the content and stay: later compactions, and
	// copies of the erased events.
	Untouched []EventRef
	// Unread are damaged sessions that may be forks or copies.
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
	// DryRun reports the content that Redact would erase, and erases nothing.
	DryRun bool
}

// Redact erases the content of events for good: salt, metadata, data, and blobs that no
// other event needs. It also erases later snapshot bodies, in this session and in forks.
// The chain still verifies, and the members in Event.Kept stay. Redact appends a
// redacted event that names the erased events, in one operation with the rewrite, and
// appends such an event to each fork that shares an erased event.
//
// Redact skips events that are redacted already, but erases blobs that an interrupted
// redaction left. It refuses tree and control types (event.ErrInvalidType). It refuses
// an event that the session shares with its parent (event.ErrInvalidTree): redact it in
// the parent. Redact uses the first RedactOptions only.
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

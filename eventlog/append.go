package eventlog

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
)

// Append adds events to a session, all or none, in order, and returns the head
// after them. It is durable when it returns, as the store's sync policy says or
// expect demands.
//
// The expectation comes first. At an expected head (or New) after which the same
// events are stored already — same ids, types, metadata, costs and data — Append
// succeeds and stores nothing, so an append may be retried after any error. With
// Any this holds for events near the tail, with AnyAfter for all events since a
// head. Any other mismatch is a *ConflictError; At on a missing session is
// ErrNotFound. A fork whose parent is missing cannot be appended to (ErrNotFound),
// nor one whose parent ends before the fork point (a *CorruptError).
//
// Then the events are validated: see event.ErrInvalid. Their types must be known or
// contain a colon. Any error but ErrUnknownOutcome means that nothing was written.
// Appending no events does nothing.
//
// Append honours ctx while it waits. Metadata in ctx (WithMetadata) is merged into
// each event, whose own members win.
func (l *Log) Append(ctx context.Context, session string, expect Expect, events ...event.Event) (event.Head, error) {
	return l.append(ctx, session, newRequest(ctx, expect, events))
}

// AppendEach writes several appends together, for about the cost of one. Each is
// atomic by itself, but all are refused or written, in order, under one
// expectation. If it fails with ErrUnknownOutcome, or the process is killed, the
// first appends may be stored without the rest: read the head before you try again.
// It suits imports.
func (l *Log) AppendEach(ctx context.Context, session string, expect Expect, appends ...[]event.Event) (event.Head, error) {
	return l.append(ctx, session, newRequest(ctx, expect, appends...))
}

func (l *Log) append(ctx context.Context, session string, r *request) (event.Head, error) {
	if err := l.readable(ctx, session); err != nil {
		return event.Head{}, err
	}
	if r.expect.kind == expectNothing {
		return event.Head{}, ErrExpectation
	}
	if len(r.entries) == 0 {
		return r.expect.head, nil
	}
	unlock, err := l.prepare(ctx, session, r)
	if err != nil {
		return event.Head{}, fmt.Errorf("append to session %q: %w", session, err)
	}
	r.unlock = unlock
	h := l.acquire(session)
	defer l.release(h)
	head, err := l.submit(h, r)
	if !r.abandoned {
		unlock()
		r.recycle()
	}
	return head, err
}

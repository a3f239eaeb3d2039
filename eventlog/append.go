package eventlog

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
)

// An append passes these files, in this order:
//
//	append.go    Append and AppendEach, the entry points
//	expect.go    Expect, the head that the caller expects
//	request.go   request, one append on its way through the log
//	prepare.go   completes and validates each event by itself, and spills big data
//	queue.go     queues the request; one caller at a time leads the session
//	batch.go     the leader validates a batch of requests and writes it
//	state.go     the leader's memory of a session: its tail, and the staged batch
//	history.go   the rules that need older events: tool calls, moves and forks
//
// Package internal/line makes the bytes of a line (write.go). Store.Append writes them,
// for example in store/jsonl/append.go.

// Append adds events to a session, all or none, in order, and returns the head
// after them. The events are durable when Append returns, as the sync policy of the
// store says; Expect.Durable makes them durable under any policy.
//
// Append checks the expectation first. If the same events are stored after the
// expected head already, Append stores nothing and succeeds: a caller may retry
// after any error. Events are the same if their ids, types, metadata, costs and data
// are equal; an event with masked secrets (Event.Masked) needs an equal id and type
// only. Any finds them near the end of the session, Any().After after its head.
// Every other mismatch is a *ConflictError; At on a missing session is ErrNotFound.
// An append to a fork fails if the parent is missing (ErrNotFound) or ends before
// the fork point (*CorruptError).
//
// Then Append validates the events; see event.ErrInvalid. Types are known, or contain
// a colon. Only ErrUnknownOutcome leaves open whether the events are stored: after
// any other error nothing was written. An append of no events does nothing.
//
// Append honours ctx while it waits. It merges the metadata of ctx (WithMetadata)
// into each event; the event's own members win. Append may be called concurrently:
// appends to one session are written in batches, one after the other.
func (l *Log) Append(ctx context.Context, session string, expect Expect, events ...event.Event) (event.Head, error) {
	return l.append(ctx, session, expect, nil, nil, events)
}

// AppendEach writes several appends together, for about the cost of one. It suits
// imports. All appends share one expectation, and all are refused or written, in
// order. Each is atomic by itself: after ErrUnknownOutcome, or if the process is
// killed, the first appends may be stored without the rest. Read the head before you
// try again.
func (l *Log) AppendEach(ctx context.Context, session string, expect Expect, appends ...[]event.Event) (event.Head, error) {
	return l.append(ctx, session, expect, nil, nil, appends...)
}

// append makes one or more appends. If stored is not nil, it gets the events as they
// are stored, unless they were stored before. If fresh is not nil, it becomes true if
// this call stored the events.
func (l *Log) append(ctx context.Context, session string, expect Expect, stored *[]event.Event, fresh *bool, appends ...[]event.Event) (event.Head, error) {
	if err := l.readable(ctx, session); err != nil {
		return event.Head{}, err
	}
	if expect.kind == expectNothing {
		return event.Head{}, fmt.Errorf("%w: the append has no expectation: use Any, New or At", event.ErrInvalid)
	}
	r := newRequest(ctx, expect, appends)
	r.stored, r.fresh = stored, fresh
	if len(r.entries) == 0 {
		return expect.head, nil
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

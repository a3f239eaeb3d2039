// Package erase removes content from a log for good: it redacts events, removes
// sessions, and collects unreferenced blobs. Each function takes the exclusive store
// lock. Redact, Match, Raw and Collect have a dry run, which reports and erases nothing.
//
//	_, err := erase.Redact(ctx, log, "order-42", []int64{7}, erase.RedactOptions{Reason: "a password"})
package erase

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/search"
)

// Redaction reports the erased content, and the content that stays.
type Redaction struct {
	// Session is the session of Redact. It is empty after Match.
	Session string
	// Erased are the erased events: the requested ones, and the ones that go along.
	Erased []EventRef
	// Forks are forks that share erased events and have no erased events of their own.
	Forks []string
	// Blobs are the erased blobs. No other event needs them.
	Blobs []event.BlobRef
	// TornTails are the torn tails of the rewritten sessions. They are erased too, and
	// so are saved torn tails and backup copies of these sessions.
	TornTails []eventlog.TornTail
	// Already are the requested seqs that were redacted before.
	Already []int64
	// Untouched are events that may repeat the content and stay: copies of the erased
	// events, later compactions, and events with one of the erased texts. They are of
	// the session, its forks, its child sessions and its copies.
	Untouched []EventRef
	// Unread are damaged sessions that may be forks or copies.
	Unread []string
	// Retained are places outside the store that keep the erased bytes, and how to be rid
	// of them: the journals of a server, for example. A ledger that got the costs of the
	// sessions is named too; it has no text.
	Retained []eventlog.Retained

	// Places are the places with the pattern that Match erased.
	Places []search.Place
	// Left are the places with the pattern that no redaction erases: headers, members that
	// redaction keeps, and lost events.
	Left []search.Place
	// Files are places in the store's files that still have the bytes of the pattern
	// afterwards: plain, escaped or in base64. A text is looked for as it was given, in
	// lower case and in upper case. Files is empty after a dry run, and for a store
	// without eventlog.ByteFinder.
	Files []eventlog.FilePlace
}

// EventRef names an event.
type EventRef struct {
	Session string
	Seq     int64
	Type    event.Type
}

// RedactOptions configure Redact, Match and Raw.
type RedactOptions struct {
	// Reason and By are stored with the redaction: why, and who erases.
	Reason, By string
	// DryRun reports the content that would be erased, and erases nothing.
	DryRun bool
}

// Redact erases the content of events for good: salt, metadata, data, and blobs that no
// other event needs. The chain still verifies, and the members in Event.Kept stay. It
// appends a redacted event that names the erased events, in one operation with the
// rewrite, and appends such an event to each fork that shares an erased event.
//
// Some events go along, in the session and in its forks: later snapshots and marks,
// later steps with a digest of the request, later bodies of requests and answers, raw
// records that repeat an erased text, and titles that begin one. Nothing goes along with a
// body of a request or an answer itself.
//
// With ErrUnfinished the Redaction lists the events that are redacted; it is empty if an
// earlier erasure cannot be finished, and nothing was redacted.
//
// If a session that shares an erased event, or has one that goes along, is on hold, Redact
// fails with a *HeldError and erases nothing.
//
// Redact skips events that are redacted already, but finishes an interrupted redaction.
// It refuses lost events (event.ErrInvalidType). It refuses an event that the session
// shares with its parent (event.ErrInvalidTree): redact it in the parent. Redact uses
// the first RedactOptions only.
func Redact(ctx context.Context, log *eventlog.Log, session string, seqs []int64, opts ...RedactOptions) (Redaction, error) {
	if err := engine.Of(log).Usable(ctx, session); err != nil {
		return Redaction{}, err
	}
	r, err := newRedaction(log, opts)
	if err != nil {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, err)
	}
	return r.locked(ctx, func(ctx context.Context) error {
		r.plan.report.Session = session
		if err := r.plan.ask(ctx, session, seqs); err != nil {
			return fmt.Errorf("redact in session %q: %w", session, err)
		}
		return r.run(ctx)
	})
}

// redaction is one call of Redact or Match.
type redaction struct {
	log    *eventlog.Log
	engine engine.Engine
	eraser eventlog.Eraser
	opts   RedactOptions
	plan   *plan
}

func newRedaction(log *eventlog.Log, opts []RedactOptions) (*redaction, error) {
	r := &redaction{log: log, engine: engine.Of(log)}
	if len(opts) > 0 {
		r.opts = opts[0]
	}
	eraser, ok := eventlog.As[eventlog.Eraser](log.Store())
	if !ok {
		return nil, eventlog.ErrUnsupported
	}
	r.eraser, r.plan = eraser, newPlan(log)
	return r, nil
}

// locked finishes an interrupted erasure and calls fn, under the store lock.
func (r *redaction) locked(ctx context.Context, fn func(ctx context.Context) error) (Redaction, error) {
	err := r.engine.Locked(ctx, !r.opts.DryRun, func(ctx context.Context) error {
		if !r.opts.DryRun {
			if err := finish(ctx, r.log); err != nil {
				return err
			}
		}
		return fn(ctx)
	})
	if err != nil && !errors.Is(err, ErrUnfinished) {
		return Redaction{}, err
	}
	return r.plan.report, err
}

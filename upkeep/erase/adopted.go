package erase

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/storenotes"
)

// Adopted redacts events because another copy of their session has them redacted.
// Package transfer calls it under the exclusive store lock.
type Adopted struct {
	Log *eventlog.Log
	// Follows reports whether the other copy of a fork is adopted later, with redactions
	// of its own. nil is never.
	Follows func(fork string) bool
}

// Outside erases the events that go along in the forks of the session, except in forks
// that follow. It records the blobs to remove. Then the caller replaces the session's
// lines by the lines of the other copy, and calls finish.
func (a Adopted) Outside(ctx context.Context, session string, seqs []int64) (finishing func(ctx context.Context) error, err error) {
	r, err := newRedaction(a.Log, []RedactOptions{{Reason: adoptedReason}})
	if err != nil {
		return nil, err
	}
	if err := r.plan.ask(ctx, session, seqs); err != nil {
		return nil, err
	}
	if err := r.plan.complete(ctx); err != nil {
		return nil, err
	}
	if err := checkHolds(ctx, a.Log, r.plan.sessions()); err != nil {
		return nil, err
	}
	if err := a.record(ctx, r); err != nil {
		return nil, err
	}
	if err := storenotes.NoteErased(ctx, a.Log, r.plan.order...); err != nil {
		return nil, err
	}
	for _, holder := range r.plan.sessions() {
		if holder == session || a.Follows != nil && a.Follows(holder) {
			continue
		}
		if err := r.rewrite(ctx, holder); err != nil {
			return nil, fmt.Errorf("redact in session %q: %w", holder, err)
		}
	}
	return func(ctx context.Context) error { return finish(ctx, a.Log) }, nil
}

// record adds the blobs to remove to the record of an interrupted erasure. That erasure
// is not finished before: the new events of the other copy may need its blobs, which
// have been copied already.
func (a Adopted) record(ctx context.Context, r *redaction) error {
	interrupted, err := r.eraser.Erasing(ctx)
	if err != nil {
		return err
	}
	digests := slices.Concat(interrupted.Blobs, r.plan.erasedBlobs())
	if slices.Sort(digests); len(digests) == 0 {
		return nil
	}
	return r.eraser.SetErasing(ctx, slices.Compact(digests))
}

// Whole redacts the events, as Redact does.
func (a Adopted) Whole(ctx context.Context, session string, seqs []int64) error {
	r, err := newRedaction(a.Log, []RedactOptions{{Reason: adoptedReason}})
	if err != nil {
		return err
	}
	if err := finish(ctx, a.Log); err != nil {
		return err
	}
	if err := r.plan.ask(ctx, session, seqs); err != nil {
		return err
	}
	return r.run(ctx)
}

const adoptedReason = "redacted in another copy of the session"

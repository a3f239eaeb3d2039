package erase

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// From redacts every event of log that another log, from, has redacted: an event of the
// same session, seq and hash. It serves backups, and logs whose sessions have gone on
// apart. A session that one of the logs does not have is skipped, and so is an event
// that log has damaged or redacted already.
func From(ctx context.Context, log, from *eventlog.Log, opts ...RedactOptions) (Redaction, error) {
	for _, l := range []*eventlog.Log{log, from} {
		if err := engine.Of(l).Usable(ctx); err != nil {
			return Redaction{}, err
		}
	}
	r, err := newRedaction(log, opts)
	if err != nil {
		return Redaction{}, fmt.Errorf("repeat redactions: %w", err)
	}
	r.plan.exact = true
	return r.locked(ctx, func(ctx context.Context) error {
		for info, err := range from.Sessions(ctx) {
			if err != nil {
				return err
			}
			seqs, err := redactedOnlyIn(ctx, from, log, info.ID)
			if err == nil {
				err = r.plan.ask(ctx, info.ID, seqs)
			}
			if err != nil {
				return fmt.Errorf("repeat redactions of session %q: %w", info.ID, err)
			}
		}
		return r.run(ctx)
	})
}

// redactedOnlyIn lists the events of a session that from has redacted, and log not.
func redactedOnlyIn(ctx context.Context, from, log *eventlog.Log, session string) (seqs []int64, err error) {
	for e, err := range from.Store().Read(ctx, session, eventlog.Span{}) {
		if errors.Is(err, eventlog.ErrCorrupt) {
			return seqs, nil // what comes before it is known
		}
		if err != nil {
			return nil, err
		}
		if !e.Redacted() {
			continue
		}
		full, err := hasInFull(ctx, log, &e)
		if err != nil {
			return nil, err
		}
		if full {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs, nil
}

// hasInFull reports whether log has an event that is not redacted there.
func hasInFull(ctx context.Context, log *eventlog.Log, e *event.Event) (bool, error) {
	for own, err := range log.Store().Read(ctx, e.SessionID, eventlog.Span{From: e.Seq, To: e.Seq}) {
		if errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrCorrupt) {
			return false, nil
		}
		return err == nil && !own.Redacted() && own.Hash() == e.Hash(), err
	}
	return false, nil
}

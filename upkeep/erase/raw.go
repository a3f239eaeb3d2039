package erase

import (
	"context"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Raw redacts the bodies of requests and answers (event.Op.Body) that are older than
// before; all of them if before is zero. It searches the named sessions, or all sessions.
// No other event goes along: the steps, their usage, and the snapshots stay. Raw erases
// nothing if a session cannot be read.
func Raw(ctx context.Context, log *eventlog.Log, before time.Time, sessions []string, opts ...RedactOptions) (Redaction, error) {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return Redaction{}, err
	}
	r, err := newRedaction(log, opts)
	if err != nil {
		return Redaction{}, fmt.Errorf("redact bodies of calls: %w", err)
	}
	return r.locked(ctx, func(ctx context.Context) error {
		if len(sessions) == 0 {
			if sessions, err = allSessions(ctx, log); err != nil {
				return err
			}
		}
		for _, session := range sessions {
			if err := r.askRaw(ctx, session, before); err != nil {
				return fmt.Errorf("redact in session %q: %w", session, err)
			}
		}
		return r.run(ctx)
	})
}

func allSessions(ctx context.Context, log *eventlog.Log) (ids []string, err error) {
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, info.ID)
	}
	return ids, nil
}

// askRaw asks for the bodies of one session.
func (r *redaction) askRaw(ctx context.Context, session string, before time.Time) error {
	var seqs []int64
	for e, err := range r.log.Store().Read(ctx, session, eventlog.Span{}) {
		if err != nil {
			return err
		}
		if !before.IsZero() && !e.Timestamp.Before(before) {
			continue
		}
		seq := e.Seq
		raw, err := isRaw(ctx, r.engine, &e)
		if err != nil {
			return err
		}
		if raw {
			seqs = append(seqs, seq)
		}
	}
	return r.plan.ask(ctx, session, seqs)
}

// isRaw reports whether an event has the body of a request or an answer. It fetches the
// data of such an event. An event whose data is lost has none.
func isRaw(ctx context.Context, x engine.Engine, e *event.Event) (bool, error) {
	if e.Type.Name() != event.OpLogged || e.Redacted() || len(e.Blobs()) == 0 {
		return false, nil
	}
	stored := *e
	if err := x.Fetch(ctx, &stored); err != nil {
		return false, unlessLost(err)
	}
	op, _, err := event.Decode[event.Op](&stored)
	return err == nil && !op.Body.IsZero(), nil
}

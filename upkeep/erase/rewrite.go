package erase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/upkeep/internal/keptsum"
)

// run completes the plan and, unless it is a dry run, erases.
func (r *redaction) run(ctx context.Context) error {
	if err := r.plan.complete(ctx); err != nil {
		return err
	}
	if err := checkHolds(ctx, r.log, r.plan.sessions()); err != nil || r.opts.DryRun {
		return err
	}
	if err := r.record(ctx); err != nil {
		return err
	}
	if err := storenotes.NoteErased(ctx, r.log, r.plan.order...); err != nil {
		return err
	}
	// The session itself comes last: as long as its events are not redacted, an
	// interrupted redaction can be asked for again, and does the rest.
	if err := r.each(ctx, r.plan.informed(), r.rewrite); err != nil {
		return err
	}
	for _, holder := range slices.Backward(r.plan.order) {
		if err := r.rewrite(ctx, holder); err != nil {
			return fmt.Errorf("redact in session %q: %w", holder, err)
		}
	}
	if err := r.each(ctx, slices.Sorted(maps.Keys(r.plan.earlier)), r.log.Sync); err != nil {
		return err
	}
	return erased(ctx, r.log, r.plan.erasedBlobs())
}

// syncsAtOnce bounds the sessions that are written at the same time. The time of a write
// is the time that the disk needs to sync it.
const syncsAtOnce = 16

// each calls write for each session, for several at the same time, until one fails.
func (r *redaction) each(ctx context.Context, sessions []string, write func(ctx context.Context, session string) error) error {
	next := make(chan string)
	failed := make(chan error, syncsAtOnce)
	var writers sync.WaitGroup
	for range min(syncsAtOnce, len(sessions)) {
		writers.Go(func() {
			for session := range next {
				if err := write(ctx, session); err != nil {
					failed <- fmt.Errorf("redact in session %q: %w", session, err)
					return
				}
			}
		})
	}
	err := send(next, sessions, failed)
	close(next)
	writers.Wait()
	if err == nil && len(failed) > 0 {
		err = <-failed
	}
	return err
}

// send sends the sessions to the writers. It stops at the first error of a writer.
func send(next chan<- string, sessions []string, failed <-chan error) error {
	for _, session := range sessions {
		select {
		case next <- session:
		case err := <-failed:
			return err
		}
	}
	return nil
}

// record records the blobs to remove.
func (r *redaction) record(ctx context.Context) error {
	digests := r.plan.erasedBlobs()
	if len(digests) == 0 {
		return nil
	}
	return r.eraser.SetErasing(ctx, digests)
}

// rewrite replaces the lines of a session's events by redacted ones and appends
// the redacted event, as one operation. A fork that only shares the events gets
// the redacted event.
func (r *redaction) rewrite(ctx context.Context, session string) error {
	own := slices.Sorted(slices.Values(r.plan.seqs[session]))
	var lines []event.Event
	kept := keptsum.New()
	for _, seq := range own {
		e, err := redactedLine(ctx, r.log, session, seq)
		if err != nil {
			return err
		}
		lines = append(lines, e)
		kept.Add(e.Kept())
	}
	note := event.RedactionNote{
		Seqs: slices.Concat(r.plan.shared[session], own), Reason: r.opts.Reason, By: r.opts.By, Kept: kept.Digest(),
	}
	return r.engine.Rewrite(ctx, session, note, lines)
}

// redactedLine is an event without its content: header, hash, commit, and its
// structure.
func redactedLine(ctx context.Context, log *eventlog.Log, session string, seq int64) (event.Event, error) {
	e, err := ownEvent(ctx, log, session, seq)
	if err != nil {
		return e, err
	}
	err = engine.Of(log).Fetch(ctx, &e)
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

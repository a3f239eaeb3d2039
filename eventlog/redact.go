package eventlog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Redaction reports what redacting erased, and what it did not touch.
type Redaction struct {
	Session string
	// Erased are the events whose content is gone: those asked for, and later
	// snapshot bodies that may hold it, here and in forks.
	Erased []EventRef
	// Blobs are the bodies that are gone: those no other event needs.
	Blobs []BlobRef
	// TornTails are what stood behind the last append of the sessions that were
	// rewritten. They go too, as do torn tails and copies that were kept of them.
	TornTails []TornTail
	// Already are the seqs that were asked for and had been redacted before.
	Already []int64
	// Untouched are events that may repeat the content and were left alone:
	// later compactions, and events that are copies of those erased.
	Untouched []EventRef
	// Unread are sessions that are too damaged to tell whether they are forks or
	// copies.
	Unread []string
}

// EventRef names an event.
type EventRef struct {
	Session string
	Seq     int64
	Type    Type
}

// Redact erases the content of events for good: salt, metadata, data, and blobs
// that no other event needs. The chain still verifies, and what Event.Kept
// lists stays. Snapshot bodies that were taken later, here and in forks, go
// with it. The rewrite and a redacted event that names it are one operation;
// forks that share an event get a redacted event that names it, too.
//
// Events that are redacted already are passed over, but for blobs that a
// redaction which was interrupted left. Tree and control types are
// refused with ErrInvalidType; an event that the session shares with its
// parent must be redacted there (ErrInvalidTree).
func (l *Log) Redact(ctx context.Context, session, reason string, seqs ...int64) (Redaction, error) {
	return l.redact(ctx, session, reason, seqs, false)
}

// PlanRedaction is Redact without doing it.
func (l *Log) PlanRedaction(ctx context.Context, session string, seqs ...int64) (Redaction, error) {
	return l.redact(ctx, session, "", seqs, true)
}

func (l *Log) redact(ctx context.Context, session, reason string, seqs []int64, dry bool) (Redaction, error) {
	if err := l.readable(ctx, session); err != nil {
		return Redaction{}, err
	}
	if _, ok := As[Rewriter](l.store); !ok {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, ErrUnsupported)
	}
	unlock, err := l.lockStore(ctx, !dry)
	if err != nil {
		return Redaction{}, err
	}
	defer unlock()
	plan := redactionPlan{log: l, report: Redaction{Session: session}, seqs: map[string][]int64{}}
	if err := plan.make(ctx, session, seqs); err != nil {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, err)
	}
	if dry {
		return plan.report, nil
	}
	// The session itself comes last: as long as its events are not redacted, a
	// redaction that was interrupted can be asked for again, and does the rest.
	for _, holder := range slices.Backward(slices.Concat(plan.order, plan.told)) {
		if err := l.rewrite(ctx, holder, reason, &plan); err != nil {
			return Redaction{}, fmt.Errorf("redact in session %q: %w", holder, err)
		}
	}
	for _, holder := range plan.earlier {
		if err := l.sync(ctx, holder); err != nil {
			return Redaction{}, fmt.Errorf("redact in session %q: %w", session, err)
		}
	}
	if err := l.removeBlobs(ctx, append(plan.gone, plan.erasedBlobs()...)); err != nil {
		return Redaction{}, fmt.Errorf("redact in session %q: %w", session, err)
	}
	return plan.report, plan.settle(ctx)
}

func (l *Log) removeBlobs(ctx context.Context, digests []Digest) error {
	if len(digests) == 0 {
		return nil
	}
	if sweeper, ok := As[Sweeper](l.store); ok {
		return sweeper.RemoveBlobs(ctx, digests)
	}
	blobs, err := l.blobs()
	if err != nil {
		return err
	}
	for _, d := range digests {
		if err := blobs.RemoveBlob(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces the lines of the events by redacted ones and appends the
// redacted event, as one operation. In a fork that only shares what goes, it
// appends that event.
func (l *Log) rewrite(ctx context.Context, session, reason string, plan *redactionPlan) error {
	seqs := plan.seqs[session]
	note, err := l.mint.NewEvent(plan.note(session, reason))
	if err != nil {
		return err
	}
	note.SessionID, note.Timestamp = session, l.opts.Now()
	return l.alone(ctx, session, func(ctx context.Context, st *state) error {
		defer st.drop()
		var unknown error
		var refused refusals
		for {
			st.drop()
			if err := l.load(ctx, session, st); err != nil {
				return err
			}
			st.begin(true)
			if _, stands := st.taken(note.ID); stands {
				return l.sync(ctx, session) // the outcome that was unknown is known now
			}
			if unknown != nil {
				return unknown
			}
			e := note
			if err := l.sealNext(ctx, session, st, &e, false); err != nil {
				return err
			}
			replace, err := l.redactedLines(ctx, session, seqs)
			if err != nil {
				return err
			}
			if len(replace) > 0 {
				rewriter, _ := As[Rewriter](l.store)
				err = rewriter.Rewrite(ctx, session, st.head, replace, []Event{e})
			} else {
				err = l.store.Append(ctx, session, st.head, []Event{e}, true)
			}
			var conflict *ConflictError
			switch {
			case errors.As(err, &conflict):
				if err := refused.again(st.head, conflict); err != nil {
					return err
				}
				st.cut = conflict.Cut
			case errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil:
				unknown = err
			default:
				if err == nil {
					st.cut = nil
				}
				l.disturb(session)
				return err
			}
		}
	})
}

func (l *Log) redactedLines(ctx context.Context, session string, seqs []int64) ([]Event, error) {
	var lines []Event
	for _, seq := range seqs {
		e, err := l.ownEvent(ctx, session, seq)
		if err != nil {
			return nil, err
		}
		err = l.fetch(ctx, &e)
		if errors.Is(err, ErrBlobNotFound) || errors.Is(err, ErrCorrupt) {
			e.Data, err = jsontext.Value(`{}`), nil // what is lost already keeps nothing
		}
		if err != nil {
			return nil, err
		}
		redacted, err := e.redacted()
		if err != nil {
			return nil, err
		}
		lines = append(lines, redacted)
	}
	return lines, nil
}

// redacted is e without its content: header, hash, commit, and what its type and
// every copy keeps.
func (e *Event) redacted() (Event, error) {
	kept, err := keptOf(e)
	if errors.Is(err, ErrInvalidPayload) {
		kept, err = jsontext.Value(`{}`), nil // of a broken payload nothing is known to be structure
	}
	if err != nil {
		return Event{}, fmt.Errorf("redact event %d: %w", e.Seq, err)
	}
	if kept, err = e.withProvenance(kept); err != nil {
		return Event{}, fmt.Errorf("redact event %d: %w", e.Seq, err)
	}
	return e.redactedAs(e.header(), e.Hash(), e.commit(), kept)
}

// redactedAs is the event of a redacted line.
func (e *Event) redactedAs(header []byte, h, commit Hash, kept jsontext.Value) (Event, error) {
	line := append([]byte(`{"crc":"00000000",`), header...)
	line = hex.AppendEncode(append(line, `,"hash":"`...), h[:])
	line = hex.AppendEncode(append(line, `","commit":"`...), commit[:])
	line = append(append(append(line, `","kept":`...), kept...), '}')
	finish(line)
	return ParseLine(line, e.SessionID)
}

// ownEvent reads an event that the session itself holds, as it is stored.
func (l *Log) ownEvent(ctx context.Context, session string, seq int64) (Event, error) {
	if seq > 0 {
		for e, err := range l.store.Read(ctx, session, Span{From: seq, To: seq}) {
			return e, err
		}
	}
	first, err := l.firstEvent(ctx, session)
	if err != nil {
		return Event{}, err
	}
	if 0 < seq && seq < first.Seq {
		return Event{}, fmt.Errorf("%w: event %d is shared with the parent, session %q: redact it there", ErrInvalidTree, seq, l.holder(ctx, &first, seq))
	}
	return Event{}, fmt.Errorf("event %d of session %q: %w", seq, session, ErrEventNotFound)
}

// holder is the ancestor of a fork that holds an event before the fork's first,
// as far as that can be told.
func (l *Log) holder(ctx context.Context, first *Event, seq int64) string {
	segments, err := l.ancestors(ctx, first, seq)
	if err != nil || len(segments) == 0 {
		return first.SessionID
	}
	return segments[len(segments)-1].session
}

package adopt

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Options configure Events.
type Options struct {
	// Explained refuses new redacted lines that verify would call damage: each needs a
	// redacted event of the stream that names it.
	Explained bool
	// Salvaged says that blobs may be missing, and that a fork's parent may be damaged.
	Salvaged bool
	// Redact obeys the redactions of the stream. The caller of Events holds the exclusive
	// store lock then.
	Redact Redactor
}

// Redactor redacts events of a session, because a stream has them redacted.
type Redactor interface {
	// Outside erases the events of other sessions that go along, and records the blobs to
	// remove. Then Events replaces the session's own lines, and calls finish.
	Outside(ctx context.Context, session string, seqs []int64) (finish func(ctx context.Context) error, err error)
	// Whole redacts the events, and appends a redacted event of its own. Events calls it
	// for a session that has gone on after the end of the stream.
	Whole(ctx context.Context, session string, seqs []int64) error
}

// RedactionError reports the redactions of a stream that are not obeyed, or events of a stream
// that are copies of events which the log has erased.
type RedactionError struct {
	Session string
	Seqs    []int64
	// Original is the session of the log with the erased events; empty for redactions of the
	// stream.
	Original string
}

func (e *RedactionError) Error() string {
	if e.Original != "" {
		return fmt.Sprintf("session %q: events that are copies of erased events of session %q: %d", e.Session, e.Original, e.Seqs)
	}
	return fmt.Sprintf("session %q: events that are redacted in the source are not redacted here: %d", e.Session, e.Seqs)
}

// stored reads the events of a session beside a stream.
type stored struct {
	next   func() (event.Event, error, bool)
	stop   func()
	behind bool // the events cannot be read any further
	damage error
}

func newStored(ctx context.Context, log *eventlog.Log, session string, head event.Head) *stored {
	if head.IsZero() {
		return &stored{stop: func() {}, behind: true}
	}
	next, stop := iter.Pull2(log.Store().Read(ctx, session, eventlog.Span{To: head.Seq}))
	return &stored{next: next, stop: stop}
}

// compare compares an event of the stream with the event that the session has at its
// place, and returns that event. If the session has redacted it, the stream's content
// does not matter.
func (a *adoption) compare(e *event.Event) (own event.Event, err error) {
	if e.Seq > a.existing.Seq {
		return own, nil
	}
	conflict := &eventlog.ConflictError{Session: a.session, Expected: e.Head(), Actual: a.existing}
	if e.Seq == a.existing.Seq && e.Hash() != a.existing.Hash {
		return own, conflict
	}
	if a.ours.behind {
		return *e, nil
	}
	own, err, ok := a.ours.next()
	switch {
	case errors.Is(err, eventlog.ErrCorrupt) || !ok:
		a.ours.behind, a.ours.damage = true, err // of a damaged session, the head alone is compared
		return *e, nil
	case err != nil:
		return own, err
	case own.Seq != e.Seq || own.Hash() != e.Hash():
		return own, conflict
	case e.Redacted() && !own.Redacted():
		a.redacted = append(a.redacted, *e)
	}
	return own, nil
}

// note notes the events that a new event names as redacted.
func (a *adoption) note(e *event.Event) {
	note, ok, err := event.Decode[event.RedactionNote](e)
	if !ok || err != nil || e.Copied() {
		return
	}
	if a.named == nil {
		a.named = map[int64]int64{}
	}
	for _, seq := range note.Seqs {
		if _, named := a.named[seq]; !named {
			a.named[seq] = e.Seq
		}
	}
}

// redact obeys the redactions of the stream.
func (a *adoption) redact(ctx context.Context) error {
	seqs := seqsOf(a.redacted)
	if a.head.Seq <= a.existing.Seq {
		return a.opts.Redact.Whole(ctx, a.session, seqs)
	}
	finish, err := a.opts.Redact.Outside(ctx, a.session, seqs)
	if err == nil {
		err = a.append(ctx)
	}
	if err != nil {
		return err
	}
	return finish(ctx)
}

func seqsOf(events []event.Event) (seqs []int64) {
	for i := range events {
		seqs = append(seqs, events[i].Seq)
	}
	return seqs
}

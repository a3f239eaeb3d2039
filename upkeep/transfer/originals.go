package transfer

import (
	"context"
	"errors"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/storenotes"
)

// originals finds copies of erased events in the sessions of one transfer: a copy that was made
// in another store still has the text. A nil originals finds none.
type originals struct {
	log    *eventlog.Log
	notes  *storenotes.Notes         // nil until they are needed
	erased map[string]map[int64]bool // by session: of the log, and of refused copies
}

func newOriginals(log *eventlog.Log) *originals {
	return &originals{log: log, erased: map[string]map[int64]bool{}}
}

// screen returns events, and ends them with a *RedactionError if some of them are copies of
// erased events, and are not stored yet.
func (o *originals) screen(ctx context.Context, session string, events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	if o == nil {
		return events
	}
	return func(yield func(event.Event, error) bool) {
		head, err := o.log.Head(ctx, session)
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			yield(event.Event{}, err)
			return
		}
		found := RedactionError{Session: session}
		for e, err := range events {
			if err == nil && e.Seq > head.Seq {
				err = o.add(ctx, &found, &e)
			}
			if err == nil && found.Original != "" {
				continue // to find all
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if found.Original != "" {
			o.refuse(&found)
			yield(event.Event{}, &found)
		}
	}
}

// add adds e to found if it is a copy of an erased event.
func (o *originals) add(ctx context.Context, found *RedactionError, e *event.Event) error {
	original, erased, err := o.erasedOriginal(ctx, e)
	if erased {
		found.Original = original
		found.Seqs = append(found.Seqs, e.Seq)
	}
	return err
}

// erasedOriginal reports whether e is a copy of an erased event, and of which session.
func (o *originals) erasedOriginal(ctx context.Context, e *event.Event) (session string, erased bool, err error) {
	origin, copied := e.Origin()
	if o == nil || !copied || e.Redacted() || e.Type == event.Lost {
		return "", false, nil
	}
	seqs, err := o.of(ctx, origin.Session)
	return origin.Session, seqs[origin.Seq], err
}

// refuse notes the copies that are not stored, for copies of them.
func (o *originals) refuse(found *RedactionError) {
	if o.erased[found.Session] == nil {
		o.erased[found.Session] = map[int64]bool{}
	}
	for _, seq := range found.Seqs {
		o.erased[found.Session][seq] = true
	}
}

// of are the seqs of the erased events of a session of the log.
func (o *originals) of(ctx context.Context, session string) (seqs map[int64]bool, err error) {
	if seqs, known := o.erased[session]; known {
		return seqs, nil
	}
	if o.notes == nil {
		if o.notes, err = storenotes.Load(ctx, o.log); err != nil {
			return nil, err
		}
	}
	seqs = map[int64]bool{}
	if o.notes.Erased(session) {
		for e, err := range o.log.Read(ctx, session, eventlog.All().Own().Bare()) {
			if errors.Is(err, eventlog.ErrNotFound) {
				break
			}
			if err != nil {
				return nil, err
			}
			if e.Redacted() {
				seqs[e.Seq] = true
			}
		}
	}
	o.erased[session] = seqs
	return seqs, nil
}

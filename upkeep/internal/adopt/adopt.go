// Package adopt stores finished events of a session as they are: ids, seqs, times,
// hashes and bytes stay. Packages transfer and repair share it.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/sealed"
)

// Result reports one adoption.
type Result struct {
	// Read is the number of events in the stream. Stored is the number of new ones.
	Read, Stored int64
	// Head is the head of the session after the adoption.
	Head event.Head
	// Damage is the error at which the reading of the session's own events ended, also if the
	// adoption failed. Of the events after it, the head alone was compared.
	Damage error
}

// The causes in a CorruptError of an adoption.
var (
	errFirst   = errors.New("the first event has neither seq 1 nor the type session_forked")
	errNoBlob  = errors.New("a blob that the event needs is missing")
	errSpilled = errors.New("an event of this type is never spilled")
)

// Events verifies a stream of finished events and stores the events that the
// session does not have yet, under the shared store lock. The crc of each event was
// checked when the event was parsed. Events checks seqs, the chain, the JSON and the
// rules of payloads, and that blobs and a fork's parent exist. It stores nothing
// before the whole stream is verified, so it iterates events twice.
//
// An event that is redacted in the stream and not in the log is redacted by
// Options.Redact; without it, Events fails with a *RedactionError. The other way round,
// the event stays redacted.
//
// A session with another history is a *eventlog.ConflictError; damage in the stream
// is a *eventlog.CorruptError. Errors do not name the session.
func Events(ctx context.Context, log *eventlog.Log, session string, events iter.Seq2[event.Event, error], opts Options) (Result, error) {
	a, err := newAdoption(ctx, log, session, events)
	if err != nil {
		return Result{}, err
	}
	a.opts = opts
	err = a.engine.Locked(ctx, false, func(ctx context.Context) error {
		if err := a.verify(ctx); err != nil {
			return err
		}
		return a.store(ctx)
	})
	var damage error
	if a.ours != nil {
		damage = a.ours.damage
	}
	if err != nil {
		return Result{Damage: damage}, err
	}
	return Result{Read: a.read, Stored: a.stored, Head: a.head, Damage: damage}, nil
}

// CheckSalvaged returns the error with which Events refuses salvaged events. It
// stores nothing.
func CheckSalvaged(ctx context.Context, log *eventlog.Log, session string, events iter.Seq2[event.Event, error]) error {
	a, err := newAdoption(ctx, log, session, events)
	if err != nil {
		return err
	}
	a.opts.Salvaged = true
	return a.verify(ctx)
}

func newAdoption(ctx context.Context, log *eventlog.Log, session string, events iter.Seq2[event.Event, error]) (*adoption, error) {
	a := &adoption{log: log, engine: engine.Of(log), session: session, events: events}
	if err := a.engine.Usable(ctx, session); err != nil {
		return nil, err
	}
	if events == nil {
		return nil, fmt.Errorf("%w: the events to adopt", event.ErrNilArgument)
	}
	return a, nil
}

// adoption is one call of Events or CheckSalvaged.
type adoption struct {
	log      *eventlog.Log
	engine   engine.Engine
	session  string
	events   iter.Seq2[event.Event, error]
	opts     Options
	ours     *stored         // the events of the session before the adoption
	redacted []event.Event   // events of the stream to replace the session's
	named    map[int64]int64 // by an event's seq: the first new event that names it as redacted
	notes    notes           // what the stream says of its redactions
	read     int64
	stored   int64
	head     event.Head // of the session after the adoption
	existing event.Head // of the session before the adoption
}

// verify checks the whole stream and stores nothing.
func (a *adoption) verify(ctx context.Context) error {
	existing, err := a.log.Head(ctx, a.session)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return err
	}
	a.existing = existing
	a.ours = newStored(ctx, a.log, a.session, existing)
	defer a.ours.stop()
	var s line.Sequence
	for e, err := range a.events {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = a.check(ctx, &s, &e)
		}
		if err != nil {
			return err
		}
		a.read++
	}
	if err := s.End(); err != nil {
		return a.damaged(s.Seq, err)
	}
	a.head = event.Head{Seq: s.Seq, Hash: event.Hash(s.Hash)}
	if unnamed := a.notes.end(); unnamed > 0 && a.head.Seq > a.existing.Seq {
		return a.damaged(unnamed, errUnnamed)
	}
	if a.head.Seq > 0 && a.head.Seq < a.existing.Seq { // the stream ends before the session
		a.head = a.existing
	}
	if len(a.redacted) > 0 && a.opts.Redact == nil {
		return &RedactionError{Session: a.session, Seqs: seqsOf(a.redacted)}
	}
	return nil
}

// check checks the next event of the stream.
func (a *adoption) check(ctx context.Context, s *line.Sequence, e *event.Event) error {
	if s.Seq == 0 {
		if err := a.begin(ctx, s, e); err != nil {
			return err
		}
	}
	if e.SessionID != a.session {
		return a.damaged(s.Seq+1, line.ErrSession)
	}
	if err := sealed.Of(e).Names(e.Seq, a.session); err != nil {
		return a.damaged(s.Seq+1, err)
	}
	if err := s.Next(e.Seq, int32(e.More()), sealed.Of(e).Link(), sealed.Of(e).Hash()); err != nil {
		return a.damaged(s.Seq+1, err)
	}
	if e.Seq > a.existing.Seq {
		a.note(e)
	}
	own, err := a.compare(e)
	if err == nil && a.opts.Explained {
		if err := a.notes.event(e, &own); err != nil {
			return a.damaged(e.Seq, err)
		}
	}
	if err != nil || own.Redacted() {
		return err
	}
	return a.checkContent(ctx, e)
}

// begin checks the first event of the stream against its predecessor.
func (a *adoption) begin(ctx context.Context, s *line.Sequence, first *event.Event) error {
	if first.Type != event.SessionForked {
		if first.Seq > 1 {
			return a.damaged(first.Seq, errFirst)
		}
		return nil
	}
	f, _, err := event.Decode[event.Fork](first)
	if err != nil {
		return err
	}
	if f.Seq != first.Seq-1 {
		return a.damaged(first.Seq, errFirst)
	}
	s.Seq, s.Hash = f.Seq, line.Hash(f.Hash)
	if a.opts.Salvaged {
		return nil
	}
	if err := a.engine.CheckFork(ctx, a.session, &f); err != nil {
		return err
	}
	return a.log.Sync(ctx, f.Parent)
}

// checkContent checks the JSON of the line, the blobs, and the rules of payloads.
func (a *adoption) checkContent(ctx context.Context, e *event.Event) error {
	if _, _, spilled := e.Spilled(); spilled && !e.Type.Spillable() {
		return a.damaged(e.Seq, errSpilled)
	}
	if a.opts.Salvaged {
		return nil
	}
	for _, d := range e.Blobs() {
		if err := a.checkBlob(ctx, d); err != nil {
			return a.damaged(e.Seq, fmt.Errorf("%w: %w", errNoBlob, err))
		}
	}
	err := sealed.Of(e).CheckJSON()
	if err == nil && !e.Redacted() {
		if err := a.engine.Fetch(ctx, e); err != nil {
			return err
		}
		_, err = e.Check()
	}
	if err != nil && !errors.Is(err, event.ErrVersion) {
		return a.damaged(e.Seq, err)
	}
	return nil
}

// checkBlob returns ErrBlobNotFound if the blob is missing.
func (a *adoption) checkBlob(ctx context.Context, d event.Digest) error {
	body, err := a.log.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	return body.Close()
}

// damaged is the error of damage at an event of the stream.
func (a *adoption) damaged(seq int64, cause error) error {
	return &eventlog.CorruptError{Session: a.session, Offset: -1, Seq: seq, Cause: cause}
}

// store writes the events that the session does not have yet, in whole appends, and
// redacts the events that the stream redacts.
func (a *adoption) store(ctx context.Context) error {
	switch {
	case a.read == 0:
		return nil
	case len(a.redacted) > 0:
		return a.redact(ctx)
	case a.head.Seq <= a.existing.Seq:
		return a.log.Sync(ctx, a.session)
	}
	return a.append(ctx)
}

// append writes the new events. The first write replaces the redacted ones too.
func (a *adoption) append(ctx context.Context) error {
	return a.engine.Exclusively(ctx, a.session, func(ctx context.Context) error {
		settings, err := a.engine.Settings(ctx)
		if err != nil {
			return err
		}
		b := batcher{adoption: a, head: a.existing, settings: settings}
		for e, err := range a.events {
			if err != nil {
				return err
			}
			if e.Seq <= a.existing.Seq {
				continue
			}
			if err := b.add(ctx, e); err != nil {
				return err
			}
		}
		return b.flush(ctx)
	})
}

package eventlog

import (
	"context"
	"errors"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

func init() {
	engine.Of = func(log any) engine.Engine { return logEngine{log.(*Log)} }
}

// logEngine gives upkeep packages the parts of a Log that users must not have.
type logEngine struct{ log *Log }

func (e logEngine) Settings(ctx context.Context) (engine.Settings, error) {
	limit, err := e.log.maxAppend(ctx)
	return engine.Settings{MaxAppend: limit, SpillOver: e.log.opts.SpillOver, Now: e.log.opts.Now}, err
}

func (e logEngine) Usable(ctx context.Context, sessions ...string) error {
	if err := e.log.usable(ctx); err != nil {
		return err
	}
	for _, session := range sessions {
		if err := event.CheckSessionID(session); err != nil {
			return err
		}
	}
	return nil
}

func (e logEngine) Locked(ctx context.Context, exclusive bool, fn func(ctx context.Context) error) error {
	return e.log.locked(ctx, exclusive, fn)
}

func (e logEngine) Append(ctx context.Context, session string, after event.Head, durable bool, events ...event.Event) (stored []event.Event, err error) {
	expect := At(after)
	if engine.Unsynced(ctx) {
		expect.unsynced = true
	} else if durable {
		expect = expect.Durable()
	}
	head, err := e.log.append(ctx, session, expect, &stored, nil, events)
	if err != nil {
		return nil, err
	}
	for i := range stored {
		if err := e.log.resolve(ctx, &stored[i]); err != nil {
			return nil, err
		}
	}
	if len(stored) > 0 || head.Seq == after.Seq {
		return stored, nil
	}
	for e, err := range e.log.Read(ctx, session, Between(after.Seq+1, head.Seq)) { // a retry
		if err != nil {
			return nil, err
		}
		stored = append(stored, e)
	}
	return stored, nil
}

func (e logEngine) AppendEach(ctx context.Context, session string, after event.Head, appends ...[]event.Event) (head event.Head, fresh bool, err error) {
	head, err = e.log.append(ctx, session, At(after).Lenient(), nil, &fresh, appends...)
	return head, fresh, err
}

func (e logEngine) Exclusively(ctx context.Context, session string, fn func(ctx context.Context) error) error {
	return e.log.exclusively(ctx, session, func(ctx context.Context, st *sessionState) error {
		defer e.log.wakeWatchers(session)
		st.tail.cut = nil
		st.forget()
		return fn(ctx)
	})
}

func (e logEngine) PutBlob(ctx context.Context, r io.Reader) (event.BlobRef, error) {
	if err := e.log.usable(ctx); err != nil {
		return event.BlobRef{}, err
	}
	return e.log.putBlob(ctx, r)
}

func (e logEngine) Fetch(ctx context.Context, ev *event.Event) error { return e.log.fetch(ctx, ev) }

func (e logEngine) CheckFork(ctx context.Context, session string, f *event.Fork) error {
	return e.log.checkFork(ctx, session, f)
}

func (e logEngine) Rewrite(ctx context.Context, session string, p event.Payload, lines []event.Event) error {
	l := e.log
	note := event.New(p)
	note.ID, note.Timestamp = l.mint.NewID(), l.opts.Now()
	return l.exclusively(ctx, session, func(ctx context.Context, st *sessionState) error {
		defer st.forget()
		defer l.wakeWatchers(session)
		w := rewriting{log: l, session: session, st: st, lines: lines}
		w.note = entry{Event: note, blobs: note.Blobs()}
		w.note.SessionID = session
		if err := w.note.Normalize(); err != nil {
			return err
		}
		for {
			done, err := w.try(ctx)
			if done || err != nil {
				return err
			}
		}
	})
}

// rewriting is one Rewrite.
type rewriting struct {
	log     *Log
	session string
	st      *sessionState
	note    entry
	lines   []event.Event

	refused refusals
	unknown error // an earlier try had an unknown outcome
}

// try is one try. It is not done if the head has moved, or if the outcome is unknown:
// the next try then finds the note or not.
func (w *rewriting) try(ctx context.Context) (done bool, err error) {
	l, st := w.log, w.st
	st.forget()
	if err := st.load(ctx); err != nil {
		return false, err
	}
	st.staged.begin(st.tail.head, true)
	if _, stored := st.seqOf(w.note.ID); stored {
		return true, l.Sync(ctx, w.session)
	}
	if w.unknown != nil {
		return false, w.unknown
	}
	note := w.note
	if err := st.seal(ctx, &note, false); err != nil {
		return false, err
	}
	eraser, ok := As[Eraser](l.store)
	// A server that may not sync refuses a durable Append, and no Rewrite.
	_, onServer := As[Retainer](l.store)
	if ok && (len(w.lines) > 0 || onServer) {
		err = eraser.Rewrite(ctx, w.session, st.tail.head, w.lines, st.staged.events)
	} else {
		err = l.store.Append(ctx, w.session, st.tail.head, st.staged.events, true)
	}
	var conflict *ConflictError
	switch {
	case err == nil:
		st.tail.cut = nil
		return true, nil
	case errors.As(err, &conflict):
		if err := w.refused.check(st.tail.head, conflict); err != nil {
			return false, err
		}
		st.tail.cut = conflict.Cut
		return false, nil
	case errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil:
		w.unknown = err
		return false, nil
	}
	return false, err
}

package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/rawjson"
)

// checkExpectation compares a request's expectation with the state. stored reports
// that its events are stored already, up to head.
func (l *Log) checkExpectation(ctx context.Context, session string, st *sessionState, r *request) (head event.Head, stored bool, err error) {
	x := r.expect
	if r.after != nil && x.kind == expectAny {
		x = AnyAfter(*r.after)
	}
	switch x.kind {
	case expectAny, expectAnyAfter:
		// The tail comes first: the head of AnyAfter may have been lost with events
		// that were not synced.
		if seq, taken := st.seqOf(r.entries[0].ID); taken {
			return l.compareFrom(ctx, session, st, r, seq)
		}
		if x.kind == expectAny {
			return event.Head{}, false, nil
		}
		seq, found, err := l.findAfter(ctx, session, st, x.head, r.entries[0].ID)
		if err != nil || !found {
			return event.Head{}, false, err
		}
		return l.compareFrom(ctx, session, st, r, seq)
	}
	if x.head == st.staged.head {
		return event.Head{}, false, nil
	}
	if x.kind == expectAt && st.staged.head.IsZero() {
		return event.Head{}, false, fmt.Errorf("append to session %q at %v: %w", session, x.head, ErrNotFound)
	}
	return l.compareAfter(ctx, session, st, r, x.head)
}

// compareAfter decides on a request that expects a head which is not the newest:
// its events are stored right after it, or it is a conflict.
func (l *Log) compareAfter(ctx context.Context, session string, st *sessionState, r *request, head event.Head) (event.Head, bool, error) {
	conflict := &ConflictError{Session: session, Expected: head, Actual: st.staged.head}
	if head.Seq >= st.staged.head.Seq {
		return event.Head{}, false, conflict
	}
	from := head.Seq
	if head.IsZero() {
		first, err := l.firstSeq(ctx, session, st)
		if err != nil {
			return event.Head{}, false, err
		}
		from = first - 1
	}
	stored, err := l.collect(ctx, session, st, max(from, 1), from+int64(len(r.entries)))
	if err != nil {
		return event.Head{}, false, err
	}
	if !head.IsZero() {
		if len(stored) == 0 || stored[0].Head() != head {
			return event.Head{}, false, conflict
		}
		stored = stored[1:]
	} else {
		stored = slices.DeleteFunc(stored, func(e event.Event) bool { return e.Seq <= from })
	}
	if !sameEvents(stored, r.entries) {
		return event.Head{}, false, conflict
	}
	return stored[len(stored)-1].Head(), true, nil
}

// firstSeq is the seq of the session's first own event.
func (l *Log) firstSeq(ctx context.Context, session string, st *sessionState) (int64, error) {
	if st.known.head.IsZero() {
		return st.staged.events[0].Seq, nil
	}
	first, err := l.firstEvent(ctx, session)
	return first.Seq, err
}

// compareFrom decides on a request whose first id is that of the event at seq: all
// of its events are stored there, or the id is taken.
func (l *Log) compareFrom(ctx context.Context, session string, st *sessionState, r *request, seq int64) (event.Head, bool, error) {
	stored, err := l.collect(ctx, session, st, seq, seq+int64(len(r.entries))-1)
	if err != nil {
		return event.Head{}, false, err
	}
	if !sameEvents(stored, r.entries) {
		return event.Head{}, false, &ConflictError{Session: session, Actual: st.staged.head, ID: r.entries[0].ID.String()}
	}
	return stored[len(stored)-1].Head(), true, nil
}

// findAfter searches for an event id after head.
func (l *Log) findAfter(ctx context.Context, session string, st *sessionState, head event.Head, id ulid.ULID) (int64, bool, error) {
	stored, err := l.collect(ctx, session, st, head.Seq+1, st.staged.head.Seq)
	if err != nil {
		return 0, false, err
	}
	for i := range stored {
		if stored[i].ID == id {
			return stored[i].Seq, true, nil
		}
	}
	return 0, false, nil
}

// collect reads the session's own events from..to, stored and staged.
func (l *Log) collect(ctx context.Context, session string, st *sessionState, from, to int64) (events []event.Event, err error) {
	if from <= st.known.head.Seq && from <= to {
		for e, err := range l.store.Read(ctx, session, Span{From: from, To: min(to, st.known.head.Seq)}) {
			if errors.Is(err, ErrNotFound) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("compare with stored events of session %q: %w", session, err)
			}
			events = append(events, e)
		}
	}
	return append(events, st.staged.between(from, to)...), nil
}

func sameEvents(stored []event.Event, entries []entry) bool {
	return len(stored) == len(entries) &&
		slices.EqualFunc(stored, entries, func(a event.Event, b entry) bool { return sameContent(&a, &b) })
}

// sameContent reports whether a stored event is the one being appended: by id,
// type, metadata, cost and data; a redacted one by id and type.
func sameContent(stored *event.Event, en *entry) bool {
	if stored.ID != en.ID || stored.Type != en.Type {
		return false
	}
	if stored.Redacted() {
		return true
	}
	return stored.Cost == en.Cost && bytes.Equal(withoutBroken(stored.Metadata), withoutBroken(en.Metadata)) &&
		bytes.Equal(stored.Extras(), en.Extras()) && storedDigest(stored) == en.digest()
}

func storedDigest(e *event.Event) event.Digest {
	if d, _, spilled := e.Spilled(); spilled {
		return d
	}
	return event.DigestOf(e.Data)
}

// withoutBroken is metadata without the marks of broken rules, which Append adds.
func withoutBroken(metadata jsontext.Value) jsontext.Value {
	if !bytes.Contains(metadata, []byte(`"`+event.BrokenKey+`"`)) {
		return metadata
	}
	members, err := rawjson.Members(metadata)
	if err != nil {
		return metadata
	}
	return rawjson.NonEmpty(slices.DeleteFunc(members, func(m rawjson.Member) bool { return m.Name == event.BrokenKey }))
}

// checkHistory validates an entry against the events before it, and notes the
// calls it makes and answers.
func (l *Log) checkHistory(ctx context.Context, session string, st *sessionState, en *entry, lenient bool) error {
	f := &en.facts
	if f.Invalid != nil {
		if err := en.forgive(f.Invalid, lenient); err != nil {
			return err
		}
	}
	if f.Fork != nil && !st.staged.head.IsZero() && !en.Copied() {
		return fmt.Errorf("%w: session_forked is allowed only at the start of a session", event.ErrInvalidTree)
	}
	if f.Moves {
		if f.To < 0 || f.To > st.staged.head.Seq {
			return fmt.Errorf("%w: head_moved to %d, beyond the head at %d", event.ErrInvalidTree, f.To, st.staged.head.Seq)
		}
		st.calls.restart(f.To)
	}
	for _, id := range f.Outline.Results {
		pending, err := l.isPending(ctx, session, st, id)
		if err != nil {
			return err
		}
		if pending {
			st.calls.set.Answer(id)
		} else if err := en.forgive(fmt.Errorf("%w: no call %q is pending", event.ErrInvalidResult, line.Clip(id)), lenient); err != nil {
			return err
		}
	}
	for _, call := range f.Outline.Calls {
		if !st.calls.set.Has(call.ID) {
			st.calls.set.Open(call.ID)
		}
	}
	return nil
}

// forgive marks a broken rule of conversation in the metadata of a lenient append.
// Rules of structure, and any rule in a strict append, are refused.
func (en *entry) forgive(broken error, lenient bool) error {
	if name, ok := event.ConversationRule(broken); ok && lenient {
		return en.MarkBroken(name)
	}
	return broken
}

// checkFork makes sure that the parent has the event that a fork names.
func (l *Log) checkFork(ctx context.Context, session string, f *event.Fork) error {
	if f.Parent == session {
		return fmt.Errorf("%w: session %q cannot be forked from itself", event.ErrInvalidTree, session)
	}
	if f.Seq == 0 {
		_, err := l.Head(ctx, f.Parent)
		return err
	}
	e, err := l.bareEvent(ctx, f.Parent, f.Seq)
	if err != nil {
		return fmt.Errorf("fork point: %w", err)
	}
	if e.Hash() != f.Hash || e.ID != f.EventID {
		return fmt.Errorf("%w: event %d of %q is not the event that session_forked names", event.ErrInvalidTree, f.Seq, f.Parent)
	}
	if e.More() > 0 {
		return fmt.Errorf("%w: event %d of %q is inside an atomic append", event.ErrInvalidTree, f.Seq, f.Parent)
	}
	return nil
}

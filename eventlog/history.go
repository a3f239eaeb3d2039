package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
)

// expected compares a request's expectation with the state. stands reports that
// its events are stored already, up to head.
func (l *Log) expected(ctx context.Context, session string, st *state, r *request) (head Head, stands bool, err error) {
	x := r.expect
	if r.after != nil && x.kind == expectAny {
		x = AnyAfter(*r.after)
	}
	switch x.kind {
	case expectAny, expectAnyAfter:
		// Near the tail is looked first: the head of AnyAfter may have been lost
		// with events that were not synced.
		if seq, taken := st.taken(r.events[0].ID); taken {
			return l.standsFrom(ctx, session, st, r, seq)
		}
		if x.kind == expectAny {
			return Head{}, false, nil
		}
		seq, found, err := l.findAfter(ctx, session, st, x.head, r.events[0].ID)
		if err != nil || !found {
			return Head{}, false, err
		}
		return l.standsFrom(ctx, session, st, r, seq)
	}
	if x.head == st.cur {
		return Head{}, false, nil
	}
	if x.kind == expectAt && st.cur.IsZero() {
		return Head{}, false, fmt.Errorf("append to session %q at %v: %w", session, x.head, ErrNotFound)
	}
	return l.standsAfter(ctx, session, st, r, x.head)
}

// standsAfter decides on events expected behind head, which is not the newest.
func (l *Log) standsAfter(ctx context.Context, session string, st *state, r *request, head Head) (Head, bool, error) {
	conflict := &ConflictError{Session: session, Expected: head, Actual: st.cur}
	if head.Seq >= st.cur.Seq {
		return Head{}, false, conflict
	}
	from := head.Seq
	if head.IsZero() {
		first, err := l.firstOwn(ctx, session, st)
		if err != nil {
			return Head{}, false, err
		}
		from = first - 1
	}
	stored, err := l.stretch(ctx, session, st, max(from, 1), from+int64(len(r.events)))
	if err != nil {
		return Head{}, false, err
	}
	if !head.IsZero() {
		if len(stored) == 0 || stored[0].Head() != head {
			return Head{}, false, conflict
		}
		stored = stored[1:]
	} else {
		stored = slices.DeleteFunc(stored, func(e Event) bool { return e.Seq <= from })
	}
	if !equalEvents(stored, r.events) {
		return Head{}, false, conflict
	}
	return stored[len(stored)-1].Head(), true, nil
}

// firstOwn is the seq of the session's first own event.
func (l *Log) firstOwn(ctx context.Context, session string, st *state) (int64, error) {
	if st.head.IsZero() {
		return st.events[0].Seq, nil
	}
	first, err := l.firstEvent(ctx, session)
	return first.Seq, err
}

// standsFrom decides on events whose first id is that of the event at seq:
// either all of them stand there, or the id is taken.
func (l *Log) standsFrom(ctx context.Context, session string, st *state, r *request, seq int64) (Head, bool, error) {
	stored, err := l.stretch(ctx, session, st, seq, seq+int64(len(r.events))-1)
	if err != nil {
		return Head{}, false, err
	}
	if !equalEvents(stored, r.events) {
		return Head{}, false, &ConflictError{Session: session, Actual: st.cur, ID: r.events[0].ID.String()}
	}
	return stored[len(stored)-1].Head(), true, nil
}

// findAfter looks for an event id behind head.
func (l *Log) findAfter(ctx context.Context, session string, st *state, head Head, id ulid.ULID) (int64, bool, error) {
	stored, err := l.stretch(ctx, session, st, head.Seq+1, st.cur.Seq)
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

// stretch collects the session's own events from..to, stored and staged.
func (l *Log) stretch(ctx context.Context, session string, st *state, from, to int64) (events []Event, err error) {
	if from <= st.head.Seq && from <= to {
		for e, err := range l.store.Read(ctx, session, Span{From: from, To: min(to, st.head.Seq)}) {
			if errors.Is(err, ErrNotFound) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("compare with stored events of session %q: %w", session, err)
			}
			events = append(events, e)
		}
	}
	for i := range st.events {
		if seq := st.events[i].Seq; from <= seq && seq <= to {
			events = append(events, st.events[i])
		}
	}
	return events, nil
}

func equalEvents(stored, events []Event) bool {
	return len(stored) == len(events) && slices.EqualFunc(stored, events, func(a, b Event) bool { return sameContent(&a, &b) })
}

// sameContent reports whether a stored event is the one being appended: by id,
// type, metadata, cost and data; a redacted one by id and type.
func sameContent(stored, e *Event) bool {
	if stored.ID != e.ID || stored.Type != e.Type {
		return false
	}
	if stored.Redacted() {
		return true
	}
	return stored.Cost == e.Cost && bytes.Equal(withoutBroken(stored.Metadata), withoutBroken(e.Metadata)) &&
		bytes.Equal(stored.Extras(), e.Extras()) && stored.dataDigest() == e.dataDigest()
}

func withoutBroken(metadata []byte) []byte {
	if !bytes.Contains(metadata, []byte(`"`+brokenKey+`"`)) {
		return metadata
	}
	members, err := splitMembers(metadata)
	if err != nil {
		return metadata
	}
	members = slices.DeleteFunc(members, func(m member) bool { return m.name == brokenKey })
	if len(members) == 0 {
		return nil
	}
	var rest []byte
	for _, m := range members {
		rest = append(append(append(append(rest, m.quoted...), ':'), m.value...), ',')
	}
	return append(append([]byte{'{'}, rest[:len(rest)-1]...), '}')
}

func (e *Event) dataDigest() Digest {
	if d, _, spilled := e.Spilled(); spilled {
		return d
	}
	return DigestOf(e.Data)
}

// checkHistory validates e against the events before it, and takes what it
// says of calls and of the path into the state.
func (l *Log) checkHistory(ctx context.Context, session string, st *state, e *Event, lenient bool) error {
	f := e.rare.facts
	if f.invalid != nil {
		if err := e.forgive(f.invalid, lenient); err != nil {
			return err
		}
	}
	if f.fork != nil && !st.cur.IsZero() {
		if _, copied := e.MetadataValue(forkOriginKey); !copied {
			return fmt.Errorf("%w: session_forked stands only at the start of a session", ErrInvalidTree)
		}
	}
	if f.moves {
		if f.to < 0 || f.to > st.cur.Seq {
			return fmt.Errorf("%w: head_moved to %d, beyond the head at %d", ErrInvalidTree, f.to, st.cur.Seq)
		}
		st.calls.move(f.to)
	}
	for _, id := range f.results {
		open, err := l.isOpen(ctx, session, st, id)
		if err != nil {
			return err
		}
		if open {
			st.calls.end(id)
		} else if err := e.forgive(fmt.Errorf("%w: no call %q is pending", ErrInvalidResult, clip(id)), lenient); err != nil {
			return err
		}
	}
	for _, id := range f.calls {
		if !st.calls.isPending(id) {
			st.calls.open(id)
		}
	}
	return nil
}

// forgive marks a broken rule of conversation in the metadata of a lenient
// append; rules of structure, and any rule of a strict append, are refused.
func (e *Event) forgive(broken error, lenient bool) error {
	if name, ok := conversational(broken); ok && lenient {
		return e.breaks(name)
	}
	return broken
}

const orphanResult = "orphan_result"

// conversational names the rule of conversation that was broken.
func conversational(broken error) (name string, ok bool) {
	switch {
	case errors.Is(broken, ErrInvalidResult):
		return orphanResult, true
	case errors.Is(broken, ErrInvalidCall):
		return "duplicate_call", true
	case errors.Is(broken, ErrInvalidMessage):
		return "empty_message", true
	default:
		return "", false
	}
}

// checkFork makes sure that a fork's parent is what the fork says.
func (l *Log) checkFork(ctx context.Context, session string, f *Fork) error {
	if f.Parent == session {
		return fmt.Errorf("%w: session %q cannot be forked from itself", ErrInvalidTree, session)
	}
	if f.Seq == 0 {
		_, err := l.Head(ctx, f.Parent)
		return err
	}
	e, err := l.rawEvent(ctx, f.Parent, f.Seq)
	if err != nil {
		return fmt.Errorf("fork point: %w", err)
	}
	if e.Hash() != f.Hash || e.ID != f.EventID {
		return fmt.Errorf("%w: event %d of %q is not the one that session_forked names", ErrInvalidTree, f.Seq, f.Parent)
	}
	if e.More() > 0 {
		return fmt.Errorf("%w: event %d of %q lies inside an atomic append", ErrInvalidTree, f.Seq, f.Parent)
	}
	return nil
}

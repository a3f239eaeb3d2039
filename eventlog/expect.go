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
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
)

// Expect is the head that an append expects of the session. Any, New and At
// make an Expect; an append with the zero Expect fails with event.ErrInvalid.
type Expect struct {
	kind    expectKind
	head    event.Head
	durable bool
	lenient bool
	// unsynced appends without a sync under any sync policy (engine.SetUnsynced).
	unsynced bool
}

type expectKind int

const (
	expectNothing expectKind = iota
	expectAny
	expectNew
	expectAt
	expectAnyAfter
)

// Any accepts every head, and creates a missing session. It is for events that depend
// on no other event.
func Any() Expect { return Expect{kind: expectAny} }

// New expects the session to be missing.
func New() Expect { return Expect{kind: expectNew} }

// At expects the session's head to be exactly h. The zero head is New.
func At(h event.Head) Expect {
	if h.IsZero() {
		return New()
	}
	return Expect{kind: expectAt, head: h}
}

// After is for events that may be stored already, after h: Any().After(h) retries an Any
// append after an UnknownOutcomeError that names h. It is for Any only.
func (x Expect) After(h event.Head) Expect {
	x.kind, x.head = expectAnyAfter, h
	return x
}

// Durable makes the events durable before Append returns, under any sync policy of
// the store.
func (x Expect) Durable() Expect {
	x.durable = true
	return x
}

// Lenient is for imports: Append enforces the rules of structure only. It stores an
// event that breaks a rule of conversation and names the rule in the event's metadata
// (Event.Broken). It accepts unknown types.
func (x Expect) Lenient() Expect {
	x.lenient = true
	return x
}

// checkExpectation compares the expectation of a request with the session. stored
// reports that the events are in the session already, up to head.
func (st *sessionState) checkExpectation(ctx context.Context, r *request) (head event.Head, stored bool, err error) {
	x := r.expect
	if r.after != nil && x.kind == expectAny {
		x = x.After(*r.after)
	}
	if x.kind == expectAny || x.kind == expectAnyAfter {
		return st.findStored(ctx, r, x)
	}
	if x.head == st.staged.head {
		return event.Head{}, false, nil
	}
	if x.kind == expectAt && st.staged.head.IsZero() {
		return event.Head{}, false, fmt.Errorf("append to session %q at %v: %w", st.session, x.head, ErrNotFound)
	}
	return st.compareAfter(ctx, r, x.head)
}

// findStored looks for the events of a request that expects no exact head. It looks
// near the tail first: a power loss may have removed the head of After.
func (st *sessionState) findStored(ctx context.Context, r *request, x Expect) (event.Head, bool, error) {
	if seq, found := st.seqOf(r.entries[0].ID); found {
		return st.compareFrom(ctx, r, seq)
	}
	if x.kind == expectAny {
		return event.Head{}, false, nil
	}
	seq, found, err := st.findAfter(ctx, x.head, r.entries[0].ID)
	if err != nil || !found {
		return event.Head{}, false, err
	}
	return st.compareFrom(ctx, r, seq)
}

// findAfter returns the seq of the event with that id after head.
func (st *sessionState) findAfter(ctx context.Context, head event.Head, id ulid.ULID) (int64, bool, error) {
	stored, err := st.collect(ctx, head.Seq+1, st.staged.head.Seq)
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

// compareFrom compares the events of a request with the events from seq on, where the
// first id of the request is stored. Other events there are a conflict.
func (st *sessionState) compareFrom(ctx context.Context, r *request, seq int64) (event.Head, bool, error) {
	stored, err := st.collect(ctx, seq, seq+int64(len(r.entries))-1)
	if err != nil {
		return event.Head{}, false, err
	}
	if !sameEvents(stored, r.entries) {
		return event.Head{}, false, &ConflictError{Session: st.session, Actual: st.staged.head, ID: r.entries[0].ID.String()}
	}
	return stored[len(stored)-1].Head(), true, nil
}

// compareAfter compares the events of a request with the events after head, which is
// not the newest head. Other events there are a conflict.
func (st *sessionState) compareAfter(ctx context.Context, r *request, head event.Head) (event.Head, bool, error) {
	conflict := &ConflictError{Session: st.session, Expected: head, Actual: st.staged.head}
	if head.Seq >= st.staged.head.Seq {
		return event.Head{}, false, conflict
	}
	from := head.Seq
	if head.IsZero() {
		first, err := st.firstSeq(ctx)
		if err != nil {
			return event.Head{}, false, err
		}
		from = first - 1
	}
	stored, err := st.collect(ctx, max(from, 1), from+int64(len(r.entries)))
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
func (st *sessionState) firstSeq(ctx context.Context) (int64, error) {
	if st.tail.head.IsZero() {
		return st.staged.events[0].Seq, nil
	}
	first, err := st.log.firstEvent(ctx, st.session)
	return first.Seq, err
}

// collect reads the session's own events from..to, both stored and staged.
func (st *sessionState) collect(ctx context.Context, from, to int64) (events []event.Event, err error) {
	if from <= st.tail.head.Seq && from <= to {
		for e, err := range st.log.store.Read(ctx, st.session, Span{From: from, To: min(to, st.tail.head.Seq)}) {
			if errors.Is(err, ErrNotFound) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("compare with stored events of session %q: %w", st.session, err)
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

// sameContent reports whether a stored event equals the event of an append in id,
// type, metadata, cost and data. A redacted event, or an event with masked secrets, needs
// an equal id and type only.
func sameContent(stored *event.Event, en *entry) bool {
	if stored.ID != en.ID || stored.Type != en.Type {
		return false
	}
	if stored.Redacted() || masked(stored) || masked(&en.Event) {
		return true
	}
	return stored.Cost == en.Cost && bytes.Equal(withoutBroken(stored.Metadata), withoutBroken(en.Metadata)) &&
		bytes.Equal(stored.Extras(), en.Extras()) && storedDigest(stored) == en.digest()
}

// masked is Event.Masked, with a fast answer for events without the member.
func masked(e *event.Event) bool {
	return mark.MayBeIn(e.Metadata, mark.Masked) && e.Masked()
}

func storedDigest(e *event.Event) event.Digest {
	if d, _, spilled := e.Spilled(); spilled {
		return d
	}
	return event.DigestOf(e.Data)
}

// withoutBroken is metadata without the names of broken rules, which Append adds.
func withoutBroken(metadata jsontext.Value) jsontext.Value {
	if !mark.MayBeIn(metadata, mark.Broken) {
		return metadata
	}
	members, err := rawjson.Members(metadata)
	if err != nil {
		return metadata
	}
	return rawjson.NonEmpty(slices.DeleteFunc(members, func(m rawjson.Member) bool { return m.Name == mark.Broken }))
}

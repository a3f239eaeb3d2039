package eventlog

import "github.com/convlog/convlog/event"

// Expect is what an append expects of the session. Any, New, At and AnyAfter make
// one; an append with the zero Expect fails with ErrExpectation.
type Expect struct {
	kind    expectKind
	head    event.Head
	durable bool
	lenient bool
}

type expectKind int

const (
	expectNothing expectKind = iota
	expectAny
	expectNew
	expectAt
	expectAnyAfter
)

// Any appends at whatever the head is, and creates a missing session. It is for
// notes that depend on no other event.
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

// AnyAfter is Any for events that may be stored already, after h. Use it to retry
// an Any append after an UnknownOutcomeError that names h.
func AnyAfter(h event.Head) Expect { return Expect{kind: expectAnyAfter, head: h} }

// Durable demands that the events are on disk when Append returns, whatever the
// store's sync policy.
func (x Expect) Durable() Expect {
	x.durable = true
	return x
}

// Lenient is for imports: only structure is enforced. Rules that the events break
// are named in their metadata (event.BrokenKey), and their types may be unknown.
func (x Expect) Lenient() Expect {
	x.lenient = true
	return x
}

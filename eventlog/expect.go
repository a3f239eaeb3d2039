package eventlog

// Expect says what an append expects of the session, and how it is to be done.
// Any, New and At make one.
type Expect struct {
	kind    expectKind
	head    Head
	durable bool
	lenient bool
}

type expectKind int

const (
	expectAny expectKind = iota
	expectNew
	expectAt
	expectAnyAfter
)

var (
	// Any appends wherever the head is; the session is created if it is absent.
	// It is for notes that depend on nothing.
	Any = Expect{}
	// New expects the session to be absent.
	New = Expect{kind: expectNew}
)

// At expects the session's head to be exactly h. The zero head is New.
func At(h Head) Expect {
	if h.IsZero() {
		return New
	}
	return Expect{kind: expectAt, head: h}
}

// AnyAfter is Any for events that may stand already, after h: it is how an Any
// append is retried after an UnknownOutcomeError that names h.
func AnyAfter(h Head) Expect { return Expect{kind: expectAnyAfter, head: h} }

// Durable demands that the events are on disk when Append returns, whatever
// the store's sync policy.
func (x Expect) Durable() Expect {
	x.durable = true
	return x
}

// Lenient is for imports: only structure is enforced; a rule that the events
// break is named in their metadata, under "broken".
func (x Expect) Lenient() Expect {
	x.lenient = true
	return x
}

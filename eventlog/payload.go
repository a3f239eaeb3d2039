package eventlog

import (
	"fmt"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Payload is implemented by the typed payloads of this package, one per event
// type or family of types.
type Payload interface {
	// EventType is the type of an event that carries this payload.
	EventType() Type
	// check applies the rules of the payload that need no history.
	check() error
	// needs lists the blobs the payload refers to, in any order.
	needs() []Digest
}

// NewEvent makes an event of a payload: it checks the payload's own rules, encodes
// it, and mints an id, so that appending the event again after an error stores
// it once.
func NewEvent(p Payload) (Event, error) { return defaultMinter.NewEvent(p) }

// NewUnchecked is NewEvent without the payload's own rules, for imports: a
// lenient Append marks the rule that the event breaks, a strict one refuses it.
func NewUnchecked(p Payload) (Event, error) {
	e := Event{ID: NewID()}
	return e, e.encode(p)
}

// encode fills e's type and data from p, and notes which rule p breaks.
func (e *Event) encode(p Payload) error {
	data, err := json.Marshal(p, jsontext.PreserveRawStrings(true))
	if err != nil {
		return fmt.Errorf("new %s: %w: %w", p.EventType(), ErrInvalidPayload, err)
	}
	e.Type, e.Data = p.EventType(), data
	r := e.own()
	r.blobs = sortDigests(p.needs())
	r.facts = factsOf(p, data)
	return nil
}

// facts are what Append must know of a payload; a constructor notes them so
// that Append need not decode what was just encoded.
type facts struct {
	data    *byte // identifies the encoded bytes
	size    int
	calls   []string // ids of the tool calls a message makes
	results []string // ids of the calls whose results it carries
	moves   bool     // a head_moved
	to      int64    // of a head_moved
	fork    *Fork    // of a session_forked
	child   string   // the session of a child run
	repeats bool     // a snapshot body, which may hold the content of any event
	invalid error    // the rule of its own that the payload breaks
}

func factsOf(p Payload, data jsontext.Value) *facts {
	f := &facts{data: unsafe.SliceData(data), size: len(data), invalid: p.check()}
	switch p := p.(type) {
	case Message:
		f.calls, f.results = p.callIDs(), p.resultIDs()
	case HeadMove:
		f.moves, f.to = true, p.To
	case Fork:
		f.fork = &p
	case Child:
		f.child = p.ChildSessionID
	case Snapshot:
		f.repeats = !p.IsMark()
	case Loss:
		if original, ok := p.original(); ok && original.Type.Name() == MessageAdded {
			if kept, err := keptFacts(original.Kept); err == nil {
				f.calls, f.results = kept.calls, kept.results
			}
		}
	}
	return f
}

// knownFacts returns the facts that a constructor noted, if e still has the
// data it encoded.
func (e *Event) knownFacts() *facts {
	if e.rare == nil || e.rare.facts == nil {
		return nil
	}
	f := e.rare.facts
	if f.data != unsafe.SliceData(e.Data) || f.size != len(e.Data) {
		return nil
	}
	return f
}

// decode reads e's payload as a T. ok is false, without an error, when e is of
// another type.
func decode[T Payload](e *Event, types ...Type) (payload T, ok bool, err error) {
	name := e.Type.Name()
	for _, t := range types {
		if t == name {
			payload, err = decodeAs[T](e)
			return payload, true, err
		}
	}
	return payload, false, nil
}

// decodeAs is apart from decode, so that an event of another type costs no T.
func decodeAs[T Payload](e *Event) (payload T, err error) {
	if err := e.Type.CheckVersion(); err != nil {
		return payload, err
	}
	if e.Redacted() {
		return payload, fmt.Errorf("%s %d of %q: %w", e.Type, e.Seq, e.SessionID, ErrRedacted)
	}
	if err := json.Unmarshal(e.Data, &payload); err != nil {
		return payload, fmt.Errorf("%s %d of %q: %w: %w", e.Type, e.Seq, e.SessionID, ErrInvalidPayload, err)
	}
	return payload, nil
}

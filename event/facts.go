package event

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Facts are what a log must know of a payload to append its event. They hold no bytes
// of the payload.
type Facts struct {
	// Outline is that of a message, or of a lost event that stands for one.
	Outline Outline
	// Moves says that the event is a head_moved, to event To.
	Moves bool
	To    int64
	// Fork is the content of a session_forked.
	Fork *Fork
	// Child is the session of a child run.
	Child string
	// Body says that the event has a snapshot body: content of other events.
	Body bool
	// Blobs are the blobs the payload refers to.
	Blobs []Digest
	// Invalid is the rule that the payload breaks by itself. It matches ErrInvalid.
	Invalid error
}

// Facts reads the facts of an event that is not stored yet. A payload of another shape
// is ErrInvalidPayload, a version that this program does not know a *VersionError.
func (e *Event) Facts() (Facts, error) {
	if e.rare != nil && e.rare.made.of(e.Data) {
		return e.rare.made.facts, nil
	}
	p, err := e.Payload()
	if err != nil {
		return Facts{}, err
	}
	f := factsOf(p)
	if e.Type.Name() == Lost {
		f.Outline, _, _ = OutlineOf(e)
	}
	return f, nil
}

func factsOf(payload Payload) (f Facts) {
	switch p := payload.(type) {
	case nil:
		return f
	case Message:
		f.Outline = p.Outline()
	case HeadMove:
		f.Moves, f.To = true, p.To
	case Fork:
		p.Extra = nil
		f.Fork = &p
	case Child:
		f.Child = p.ChildSessionID
	case Snapshot:
		f.Body = !p.IsMark()
	}
	f.Blobs = BlobsOf(payload)
	f.Invalid = Validate(payload)
	return f
}

// made is what New knows of an event's data, so that an append need not decode it.
type made struct {
	facts Facts
	err   error // the payload cannot be encoded
	data  *byte // identifies the encoded bytes
	size  int
}

// of reports whether the facts are those of data.
func (m *made) of(data jsontext.Value) bool {
	return m != nil && m.data != nil && m.data == unsafe.SliceData(data) && m.size == len(data)
}

// noteMade notes the facts of the payload that e's data encodes.
func (e *Event) noteMade(p Payload) {
	r := e.own()
	v := reflect.ValueOf(p)
	if v.Kind() == reflect.Pointer {
		if q, ok := v.Elem().Interface().(Payload); ok {
			p = q
		}
	}
	if info := vocabulary[e.Type.Name()]; info != nil && info.goType != reflect.TypeOf(p) || e.Type.Name() == Lost {
		return // another program's struct, or one whose facts depend on its data
	}
	r.made = &made{facts: factsOf(p), data: unsafe.SliceData(e.Data), size: len(e.Data)}
}

// notMade notes that a payload cannot be encoded.
func (e *Event) notMade(err error) {
	e.own().made = &made{err: fmt.Errorf("%w: %w", ErrInvalidPayload, err)}
}

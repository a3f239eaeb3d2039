package event

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
)

// Facts are the properties of a payload that a log needs to append or check its event.
// They share no bytes with the payload.
type Facts struct {
	// Outline is the outline of a message, or of a lost event that replaces one. Of a message
	// it is without Context, which is in the metadata.
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

// Facts reads the facts of an event, and of a stored event that was redacted what is left of
// them. A payload of another shape is ErrInvalidPayload, a version that this program does
// not know a *VersionError.
func (e *Event) Facts() (Facts, error) {
	if e.rare != nil && e.rare.encoding.of(e.Data) {
		return e.rare.encoding.facts, nil
	}
	p, err := e.Payload()
	if err != nil {
		return Facts{}, err
	}
	return e.factsOf(p), nil
}

// Check applies the rules of a stored event's type: its data must be compact JSON
// (ErrInvalidData), decode as a payload, obey the payload's own rules, list its blobs on the line, and move the
// head only backward. A rule that an import broke and marked is forgiven, and so is a word
// that only a newer program knows. Events of unknown types need compact JSON only.
// Check returns the facts also of a payload that breaks a rule; it needs e's data, not a
// spilled reference.
func (e *Event) Check() (Facts, error) {
	f, err := e.compactFacts()
	if err != nil {
		return Facts{}, err
	}
	if f.Invalid != nil && len(e.Broken()) == 0 && !errors.Is(f.Invalid, ErrUnknownWord) {
		return f, f.Invalid
	}
	if f.Moves && f.To >= e.Seq {
		return f, fmt.Errorf("%w: %w: to is %d", ErrInvalidTree, errMoveTo, f.To)
	}
	return f, e.checkBlobs(f.Blobs)
}

// compactFacts reads the facts of data that must be compact JSON.
func (e *Event) compactFacts() (Facts, error) {
	if e.Type == MessageAdded {
		if m, sure := skimMessage(e.Data); sure {
			return m.facts(), nil
		}
	}
	if err := line.CheckData(e.Data); err != nil {
		return Facts{}, fmt.Errorf("%w: %w", ErrInvalidData, err)
	}
	p, err := e.Payload()
	if err != nil {
		return Facts{}, err
	}
	return e.factsOf(p), nil
}

// factsOf returns the facts of the payload of e.
func (e *Event) factsOf(p Payload) Facts {
	f := factsOf(p)
	if e.Type.Name() == Lost {
		f.Outline, _, _ = OutlineOf(e)
	}
	return f
}

func factsOf(payload Payload) (f Facts) {
	switch p := payload.(type) {
	case nil:
		return f
	case Message:
		return p.facts()
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

func (m *Message) facts() Facts {
	return Facts{Outline: m.Outline(), Blobs: m.Blobs(), Invalid: invalidPayload(m.Validate())}
}

// encoding has the facts of data that New has encoded, so that an append need not decode
// it.
type encoding struct {
	facts Facts
	err   error // the payload cannot be encoded
	data  *byte // identifies the encoded bytes
	size  int
	// payload is a pointer to the payload as it would be decoded, if NewShared made the event.
	payload any
}

// of reports whether the facts belong to data.
func (m *encoding) of(data jsontext.Value) bool {
	return m != nil && m.data != nil && m.data == unsafe.SliceData(data) && m.size == len(data)
}

// setEncoding sets the facts of the payload that is encoded in the data of e. shared is nil,
// or a pointer to the payload.
func (e *Event) setEncoding(p Payload, shared any) {
	v := reflect.ValueOf(p)
	if v.Kind() == reflect.Pointer {
		if q, ok := v.Elem().Interface().(Payload); ok {
			p = q
		}
	}
	if info := vocabulary[e.Type.Name()]; info != nil && info.goType != reflect.TypeOf(p) || e.Type.Name() == Lost {
		return // another program's struct, or one whose facts depend on its data
	}
	made := &struct {
		rare
		of encoding
	}{of: encoding{facts: factsOf(p), data: unsafe.SliceData(e.Data), size: len(e.Data), payload: shared}}
	if e.rare != nil {
		made.rare = *e.rare
	}
	made.encoding, e.rare = &made.of, &made.rare
}

// setEncodingError sets the error of a payload that cannot be encoded.
func (e *Event) setEncodingError(err error) {
	e.own().encoding = &encoding{err: fmt.Errorf("%w: %w", ErrInvalidPayload, err)}
}

package event

import (
	"errors"
	"fmt"

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

// Facts reads the facts of an event from its data, and of a stored event that was redacted
// what is left of them. Only New knows the payload of an event of an unknown type: Invalid is
// the rule that this payload broke. A payload of another shape is ErrInvalidPayload, a version
// that this program does not know a *VersionError.
func (e *Event) Facts() (Facts, error) {
	if f, sure := e.messageFacts(); sure {
		return f, nil
	}
	return e.decodedFacts()
}

// messageFacts reads the facts of a message without decoding it. sure is false if a decoder
// must read the data, and for all other events.
func (e *Event) messageFacts() (f Facts, sure bool) {
	if e.Type != MessageAdded {
		return f, false
	}
	m, sure := skimMessage(e.Data)
	if !sure {
		return f, false
	}
	return m.facts(), true
}

// decodedFacts decodes the payload and returns its facts.
func (e *Event) decodedFacts() (Facts, error) {
	p, err := e.Payload()
	if err != nil {
		return Facts{}, err
	}
	f := factsOf(p)
	switch {
	case e.Type.Name() == Lost:
		f.Outline, _, _ = OutlineOf(e)
	case !e.Type.Known() && e.rare != nil:
		f.Invalid = e.rare.fault
	}
	return f, nil
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
	if f.Invalid != nil && len(e.Broken()) == 0 && !errors.Is(f.Invalid, unknownWord) {
		return f, f.Invalid
	}
	if f.Moves && f.To >= e.Seq {
		return f, fmt.Errorf("%w: %w: to is %d", ErrInvalidTree, errMoveTo, f.To)
	}
	return f, e.checkBlobs(f.Blobs)
}

// compactFacts reads the facts of data that must be compact JSON.
func (e *Event) compactFacts() (Facts, error) {
	if f, sure := e.messageFacts(); sure {
		return f, nil
	}
	if err := line.CheckData(e.Data); err != nil {
		return Facts{}, fmt.Errorf("%w: %w", ErrInvalidData, err)
	}
	return e.decodedFacts()
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
	f.Blobs = blobsOf(payload)
	f.Invalid = Validate(payload)
	return f
}

func (m *Message) facts() Facts {
	return Facts{Outline: m.Outline(), Blobs: m.Blobs(), Invalid: invalidPayload(m.Validate())}
}

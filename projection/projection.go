package projection

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// Projection folds the events of a session into a state of type S. Its functions must
// be pure: they depend on the state and the event alone, so that a replay gives the
// same state at any time and on any machine.
type Projection[S any] struct {
	// Name and Version identify the encoding of the state in a snapshot. Raise
	// Version when the encoding changes: Load then skips the snapshots of older
	// versions and replays.
	Name    string
	Version int
	// Scope selects the events that Apply gets. PathScope: the events of the active
	// path whose type has path or tree scope. SessionScope: all events by seq, also
	// orphaned events and the prefix that a fork shares. Apply of a SessionScope
	// projection selects its events by type, and at session_forked it clears the
	// state that a fork does not inherit.
	Scope event.Scope
	// New makes the state before the first event. If New is nil, it is the zero S.
	New func() S
	// Apply folds one event. It may keep the event, and must not modify it. An error
	// ends the load.
	Apply func(s *S, e *event.Event) error
	// Encode and Decode convert a state to one JSON value and back. If one is nil,
	// package json does it. Decode must reject all values that Encode cannot make.
	Encode func(s *S) (jsontext.Value, error)
	Decode func(body jsontext.Value) (S, error)
	// Digest identifies the content of the state. If it is nil, it is the digest of
	// the canonical JSON of the encoding. Leave out ids, seqs and times. An empty
	// digest means that the state is not content: the digest of a set leaves it out.
	Digest func(s *S) (event.Digest, error)

	builtin bool // a projection of this package
	// stream is Decode for a body that memory does not hold; nil if Decode is used.
	stream func(body io.Reader) (S, error)
}

// Part is a Projection of any state, as an element of a Set. Only Projection
// implements it.
type Part interface {
	// ProjectionName is the Name of the projection.
	ProjectionName() string

	begin() fold
}

// ProjectionName returns p.Name.
func (p Projection[S]) ProjectionName() string { return p.Name }

func (p Projection[S]) begin() fold {
	f := &typedFold[S]{Projection: p}
	f.reset()
	return f
}

// fold is a projection and its state.
type fold interface {
	name() string
	version() int
	check() error // the error makes the projection unusable
	scope() event.Scope
	reset()
	apply(e *event.Event) error
	encode() (jsontext.Value, error)
	decode(body jsontext.Value) error
	decodeFrom(body io.Reader) error
	digest() (event.Digest, error)
	// save copies the state. restore sets the state to the copy; it may be called
	// several times.
	save() (restore func() error, err error)
}

// cloner is a pointer to a state that can be copied. Applying events to the state
// does not change the copy.
type cloner[S any] interface{ clone() S }

// typedFold is the fold of a Projection[S].
type typedFold[S any] struct {
	Projection[S]
	state S
}

func (f *typedFold[S]) name() string       { return f.Name }
func (f *typedFold[S]) version() int       { return f.Version }
func (f *typedFold[S]) scope() event.Scope { return f.Scope }

func (f *typedFold[S]) check() error {
	if f.builtin {
		return nil
	}
	if err := checkName(f.Name); err != nil {
		return err
	}
	if f.Apply == nil {
		return fmt.Errorf("%w: projection %q has no Apply", errInvalidSet, f.Name)
	}
	return nil
}

func (f *typedFold[S]) reset() {
	var zero S
	f.state = zero
	if f.New != nil {
		f.state = f.New()
	}
}

func (f *typedFold[S]) apply(e *event.Event) error {
	if err := f.Apply(&f.state, e); err != nil {
		return &FoldError{Projection: f.Name, Session: e.SessionID, Seq: e.Seq, Type: e.Type, Err: err}
	}
	return nil
}

func (f *typedFold[S]) encode() (jsontext.Value, error) {
	if f.Encode != nil {
		return f.Encode(&f.state)
	}
	body, err := json.Marshal(&f.state, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	return body, err
}

func (f *typedFold[S]) decode(body jsontext.Value) (err error) {
	f.reset()
	if f.Decode != nil {
		f.state, err = f.Decode(body)
	} else {
		err = json.Unmarshal(body, &f.state, json.RejectUnknownMembers(true))
	}
	if err != nil {
		f.reset()
	}
	return err
}

func (f *typedFold[S]) decodeFrom(body io.Reader) (err error) {
	if f.stream == nil {
		b, err := engine.ReadBlob(body)
		if err != nil {
			return err
		}
		return f.decode(b)
	}
	if f.state, err = f.stream(body); err != nil {
		f.reset()
	}
	return err
}

func (f *typedFold[S]) digest() (event.Digest, error) {
	if f.Digest != nil {
		return f.Digest(&f.state)
	}
	body, err := f.encode()
	if err != nil {
		return "", err
	}
	return CanonicalDigest(body)
}

func (f *typedFold[S]) save() (restore func() error, err error) {
	if b, ok := any(&f.state).(cloner[S]); ok {
		saved := b.clone()
		return func() error { f.state = saved; return nil }, nil
	}
	body, err := f.encode()
	return func() error { return f.decode(body) }, err
}

package projection

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Projection folds the events of a session into a state of type S. Functions
// must be pure: of the state and the event alone, so that a replay gives the
// same state at any time, on any machine.
type Projection[S any] struct {
	// Name and Version say what a snapshot's body holds. Raise Version when a
	// body written before must not be read any more; sessions replay then.
	Name    string
	Version int
	// Scope says which events are folded. PathScope: those of the active path
	// whose type is of path or tree scope. SessionScope: every event by seq,
	// orphaned ones and a fork's shared prefix included; Apply picks those of
	// session scope, and cost and usage of all, and clears at session_forked
	// what a fork does not inherit.
	Scope event.Scope
	// New makes the state before the first event; nil is the zero S.
	New func() S
	// Apply folds one event. The event may be kept, not modified. An error ends
	// the replay.
	Apply func(s *S, e *event.Event) error
	// Encode and Decode turn a state into one JSON value and back; nil is
	// encoding by package json. Decode must accept no more than Encode makes.
	Encode func(s *S) (jsontext.Value, error)
	Decode func(body jsontext.Value) (S, error)
	// Digest identifies the state's content; nil is the digest of the canonical
	// JSON of its encoding. Where ids, seqs or times are part of the encoding it
	// leaves them out. An empty digest says that the state is no content: it
	// then has no part in the digest of a set.
	Digest func(s *S) (event.Digest, error)

	builtin bool // of this package
}

// Part is a Projection of any state, as an element of a Set. Only Projection
// implements it.
type Part interface {
	// ProjectionName is the Name of the projection.
	ProjectionName() string

	begin() fold
}

// ProjectionName is p's Name.
func (p Projection[S]) ProjectionName() string { return p.Name }

func (p Projection[S]) begin() fold {
	f := &folded[S]{Projection: p}
	f.reset()
	return f
}

// fold is a projection with its state.
type fold interface {
	name() string
	version() int
	check() error // says why the projection cannot be used
	scope() event.Scope
	reset()
	apply(e *event.Event) error
	encode() (jsontext.Value, error)
	decode(body jsontext.Value) error
	digest() (event.Digest, error)
	// keep gives a function that puts the state back to what it is now, as often as
	// it is called.
	keep() (back func() error, err error)
}

// brancher is a pointer to a state that can be copied: neither moves on with the
// other.
type brancher[S any] interface{ branch() S }

type folded[S any] struct {
	Projection[S]
	state S
}

func (f *folded[S]) name() string       { return f.Name }
func (f *folded[S]) version() int       { return f.Version }
func (f *folded[S]) scope() event.Scope { return f.Scope }

func (f *folded[S]) check() error {
	if f.builtin {
		return nil
	}
	if err := checkName(f.Name); err != nil {
		return err
	}
	if f.Apply == nil {
		return fmt.Errorf("%w: projection %q has no Apply", ErrInvalidSet, f.Name)
	}
	return nil
}

func (f *folded[S]) reset() {
	var zero S
	f.state = zero
	if f.New != nil {
		f.state = f.New()
	}
}

func (f *folded[S]) apply(e *event.Event) error {
	if err := f.Apply(&f.state, e); err != nil {
		return &FoldError{Projection: f.Name, Session: e.SessionID, Seq: e.Seq, Type: e.Type, Err: err}
	}
	return nil
}

func (f *folded[S]) encode() (jsontext.Value, error) {
	if f.Encode != nil {
		return f.Encode(&f.state)
	}
	body, err := json.Marshal(&f.state, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	return body, err
}

func (f *folded[S]) decode(body jsontext.Value) (err error) {
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

func (f *folded[S]) digest() (event.Digest, error) {
	if f.Digest != nil {
		return f.Digest(&f.state)
	}
	body, err := f.encode()
	if err != nil {
		return "", err
	}
	return CanonicalDigest(body)
}

func (f *folded[S]) keep() (back func() error, err error) {
	if b, ok := any(&f.state).(brancher[S]); ok {
		kept := b.branch()
		return func() error { f.state = kept; return nil }, nil
	}
	body, err := f.encode()
	return func() error { return f.decode(body) }, err
}

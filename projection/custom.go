package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// CustomStates is the custom states of a session, by name.
type CustomStates struct {
	states map[string]CustomState
}

// CustomState is a JSON document that patches made. The zero CustomState is the
// document null, the document before the first patch.
type CustomState struct {
	// Version is the version in the last patch that has one; 0 if no patch has one.
	Version int
	// Incomplete reports that a patch of the state was redacted. Later patches may
	// not apply then.
	Incomplete bool
	// Skipped counts the patches that did not apply: they did not change the state.
	// Refused are the newest 32 of them, oldest first. A patch that replaces the
	// whole document makes the state complete again and clears both.
	Skipped int
	Refused []PatchError

	doc *document
}

// Custom is the custom states on the active path: custom_patched events applied in
// order. An event that does not apply changes only Skipped and Refused. Patch does
// not append such an event.
func Custom() Projection[CustomStates] {
	return Projection[CustomStates]{
		builtin: true, Name: "custom", Version: 1, Apply: (*CustomStates).apply,
		Encode: (*CustomStates).encode, Decode: decodeCustom, Digest: (*CustomStates).digest,
	}
}

// Raw returns a copy of the document. Number literals are unchanged.
func (c CustomState) Raw() jsontext.Value { return c.document().value() }

func (c CustomState) document() *document {
	if c.doc == nil {
		return nullDocument()
	}
	return c.doc
}

// Get returns the state with the name, or the zero CustomState if there is none.
func (s *CustomStates) Get(name string) CustomState { return s.states[name] }

// Names returns the names of all states, sorted.
func (s *CustomStates) Names() []string { return slices.Sorted(maps.Keys(s.states)) }

var errStateShape = errors.New("custom state has another type")

// Migrations convert a state of one version to the next version: the function at key
// n returns version n+1. A state without a version has version 0.
type Migrations map[int]func(jsontext.Value) (jsontext.Value, error)

// Typed decodes a custom state into a T. It first migrates an older state, in memory.
// The error is a *event.VersionError for a newer state. A
// missing migration, members that T lacks and another type are errors too. The document
// null is the zero T.
func Typed[T any](c CustomState, version int, migrations Migrations) (T, error) {
	var state T
	if c.Version > version {
		return state, &event.VersionError{What: "custom state", Got: c.Version, Max: version}
	}
	if c.document().kind == jsontext.KindNull {
		return state, nil
	}
	raw := c.Raw()
	for v := c.Version; v < version; v++ {
		migrate, ok := migrations[v]
		if !ok {
			return state, fmt.Errorf("%w: it has version %d, and there is no migration from it", errStateShape, v)
		}
		var err error
		if raw, err = migrate(raw); err != nil {
			return state, fmt.Errorf("migrate custom state from version %d: %w", v, err)
		}
	}
	if err := json.Unmarshal(raw, &state, json.RejectUnknownMembers(true)); err != nil {
		var zero T
		return zero, fmt.Errorf("%w: %w", errStateShape, err)
	}
	return state, nil
}

// Patch applies a patch to the state of its name on the active path and appends it
// after the head. If another writer appends meanwhile, it tries again. The error is a
// *PatchError if the patch does not apply; Patch then appends nothing. It is
// eventlog.ErrNotFound for a missing session.
func Patch(ctx context.Context, log *eventlog.Log, session string, p event.CustomPatch) (CustomState, event.Head, error) {
	if err := event.Validate(p); err != nil {
		return CustomState{}, event.Head{}, fmt.Errorf("patch state %q of session %q: %w", p.Name, session, err)
	}
	e := event.New(p)
	for {
		v, err := Load(ctx, log, session, Custom())
		if err != nil {
			return CustomState{}, event.Head{}, err
		}
		c, err := v.State.Get(p.Name).patched(&p)
		if err != nil {
			return CustomState{}, event.Head{}, fmt.Errorf("patch state %q of session %q: %w", p.Name, session, err)
		}
		head, err := log.Append(ctx, session, eventlog.At(v.Head), e)
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return CustomState{}, event.Head{}, fmt.Errorf("patch state %q of session %q: %w", p.Name, session, err)
		}
		return c, head, nil
	}
}

// SetState replaces the whole state of a name by value, encoded as JSON. Patch lists
// the errors.
func SetState(ctx context.Context, log *eventlog.Log, session, name string, version int, value any) (CustomState, event.Head, error) {
	raw, err := json.Marshal(value, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return CustomState{}, event.Head{}, fmt.Errorf("encode state %q: %w", name, err)
	}
	patch := append(append([]byte(`[{"op":"add","path":"","value":`), raw...), '}', ']')
	return Patch(ctx, log, session, event.CustomPatch{Name: name, StateVersion: version, Patch: patch})
}

func (s *CustomStates) apply(e *event.Event) error {
	if e.Type.Name() != event.CustomPatched {
		return nil
	}
	p, err := event.DecodeKept[event.CustomPatch](e)
	if err != nil {
		return err
	}
	if s.states == nil {
		s.states = map[string]CustomState{}
	}
	s.states[p.Name] = s.Get(p.Name).next(e, &p)
	return nil
}

// next returns the state after the patch in e.
func (c CustomState) next(e *event.Event, p *event.CustomPatch) CustomState {
	if e.Redacted() {
		c.Version, c.Incomplete = cmp.Or(p.StateVersion, c.Version), true
		return c
	}
	after, err := c.patched(p)
	if err == nil {
		return after
	}
	if c.Incomplete { // the patch did apply to the state before the redaction
		c.Version = cmp.Or(p.StateVersion, c.Version)
	}
	c.Skipped++
	c.Refused = recent(append(slices.Clone(c.Refused), refusedPatch(e.Seq, err)))
	return c
}

// patched returns the state after a patch. The error is a *PatchError if the patch
// does not apply.
func (c CustomState) patched(p *event.CustomPatch) (CustomState, error) {
	doc, err := c.document().patched(p.Patch)
	if err != nil {
		return c, err
	}
	c.Version, c.doc = cmp.Or(p.StateVersion, c.Version), doc
	if replacesAll(p.Patch) {
		return CustomState{Version: c.Version, doc: doc}, nil
	}
	return c, nil
}

// refusedPatch describes a patch that does not apply. It does not depend on the state.
func refusedPatch(seq int64, err error) PatchError {
	var where *PatchError
	if !errors.As(err, &where) {
		where = newPatchError(-1, err)
	}
	return PatchError{Seq: seq, Index: where.Index, Op: where.Op, Path: where.Path, Reason: where.Reason}
}

// replacesAll reports whether a patch that applies sets the whole document.
func replacesAll(patch jsontext.Value) bool {
	var ops []operation
	err := json.Unmarshal(patch, &ops)
	return err == nil && slices.ContainsFunc(ops, func(o operation) bool {
		return *o.Path == "" && (o.Op == "add" || o.Op == "replace")
	})
}

// customBody is a state in a snapshot.
type customBody struct {
	Version    int            `json:"version,omitzero"`
	Incomplete bool           `json:"incomplete,omitzero"`
	Skipped    int            `json:"skipped,omitzero"`
	Refused    []PatchError   `json:"refused,omitzero"`
	State      jsontext.Value `json:"state"`
}

func (s *CustomStates) encode() (jsontext.Value, error) {
	bodies := map[string]customBody{}
	for name, c := range s.states {
		bodies[name] = customBody{c.Version, c.Incomplete, c.Skipped, c.Refused, c.Raw()}
	}
	return json.Marshal(bodies, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

func decodeCustom(body jsontext.Value) (CustomStates, error) {
	var bodies map[string]customBody
	if err := json.Unmarshal(body, &bodies, json.RejectUnknownMembers(true)); err != nil {
		return CustomStates{}, err
	}
	s := CustomStates{}
	for name, b := range bodies {
		doc, err := parseDocument(b.State)
		if err != nil {
			return CustomStates{}, err
		}
		if s.states == nil {
			s.states = map[string]CustomState{}
		}
		s.states[name] = CustomState{b.Version, b.Incomplete, b.Skipped, b.Refused, doc}
	}
	return s, nil
}

// digest leaves out the list of refused patches.
func (s *CustomStates) digest() (event.Digest, error) {
	c := CustomStates{states: map[string]CustomState{}}
	for name, state := range s.states {
		state.Refused = nil
		c.states[name] = state
	}
	body, err := c.encode()
	if err != nil {
		return "", err
	}
	return CanonicalDigest(body)
}

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

// CustomStates are the states of programs, by name.
type CustomStates struct {
	states map[string]CustomState
}

// CustomState is a program's own state: a JSON document that patches made. The
// zero CustomState is the document null, which the first patch finds.
type CustomState struct {
	// Version is the state's shape, as the last patch that said one; 0 if none did.
	Version int
	// Incomplete says that a patch of it was redacted, so that later ones may not
	// apply any more.
	Incomplete bool
	// Skipped counts the patches that did not apply and left the state as it was;
	// Refused are the newest 32 of them, oldest first. A patch that replaces the
	// whole document makes it complete again, and forgets them.
	Skipped int
	Refused []RefusedPatch

	doc *document
}

// RefusedPatch is a patch that stands in the log and does not apply.
type RefusedPatch struct {
	Seq int64 `json:"seq"`
	// Index, Op and Path name the operation, as in a PatchError.
	Index int    `json:"index"`
	Op    string `json:"op,omitzero"`
	Path  string `json:"path,omitzero"`
	// Reason is the text of one of the errors that a PatchError wraps.
	Reason string `json:"reason"`
}

// Custom is the state of programs on the active path: custom_patched events
// applied in order. One that does not apply, which Patch would not have appended,
// changes nothing; the state says that it was refused.
func Custom() Projection[CustomStates] {
	return Projection[CustomStates]{
		builtin: true, Name: "custom", Version: 1, Apply: (*CustomStates).apply,
		Encode: (*CustomStates).encode, Decode: decodeCustom, Digest: (*CustomStates).digest,
	}
}

// Raw is the document; the caller's own copy. Number literals are as they were
// written.
func (c CustomState) Raw() jsontext.Value { return c.document().value() }

func (c CustomState) document() *document {
	if c.doc == nil {
		return null()
	}
	return c.doc
}

// Get is the state of a name; the zero CustomState if nothing was patched.
func (s *CustomStates) Get(name string) CustomState { return s.states[name] }

// Names are those of all states, sorted.
func (s *CustomStates) Names() []string { return slices.Sorted(maps.Keys(s.states)) }

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

// next is the state after the patch that stands at e.
func (c CustomState) next(e *event.Event, p *event.CustomPatch) CustomState {
	if e.Redacted() {
		c.Version, c.Incomplete = cmp.Or(p.StateVersion, c.Version), true
		return c
	}
	after, err := c.patched(p)
	if err == nil {
		return after
	}
	if c.Incomplete { // it did apply, to the state that is not known any more
		c.Version = cmp.Or(p.StateVersion, c.Version)
	}
	c.Skipped++
	c.Refused = last(append(slices.Clone(c.Refused), refusalOf(e.Seq, err)))
	return c
}

// patched is the state after a patch; one that does not apply is a *PatchError.
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

// refusalOf says why a patch does not apply, in words that are the same whenever
// it is asked.
func refusalOf(seq int64, err error) RefusedPatch {
	r := RefusedPatch{Seq: seq, Index: -1, Reason: ErrInvalidPatch.Error()}
	var where *PatchError
	if errors.As(err, &where) {
		r.Index, r.Op, r.Path = where.Index, where.Op, where.Path
	}
	for _, reason := range []error{ErrNoTarget, ErrTestFailed, ErrDocumentTooLarge} {
		if errors.Is(err, reason) {
			r.Reason = reason.Error()
		}
	}
	return r
}

// replacesAll reports whether a patch that applied sets the whole document.
func replacesAll(patch jsontext.Value) bool {
	var ops []operation
	err := json.Unmarshal(patch, &ops)
	return err == nil && slices.ContainsFunc(ops, func(o operation) bool {
		return *o.Path == "" && (o.Op == "add" || o.Op == "replace")
	})
}

// customBody is a state as it stands in a snapshot.
type customBody struct {
	Version    int            `json:"version,omitzero"`
	Incomplete bool           `json:"incomplete,omitzero"`
	Skipped    int            `json:"skipped,omitzero"`
	Refused    []RefusedPatch `json:"refused,omitzero"`
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

// digest leaves out which patches were refused, and where.
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

// ErrStateShape: a custom state is not of the type that was asked for.
var ErrStateShape = errors.New("custom state has another shape")

// Migrations turn a state of one version into the next: the function of version
// n makes version n+1. A state without a version is of version 0.
type Migrations map[int]func(jsontext.Value) (jsontext.Value, error)

// Typed is a custom state as a T, of a version that the program knows; an older
// one is migrated first, in memory. A newer one is a *event.VersionError; one
// that has no migration, members that T lacks, or another shape, is
// ErrStateShape. The document null is the zero T.
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
			return state, fmt.Errorf("%w: it is of version %d, which nothing migrates", ErrStateShape, v)
		}
		var err error
		if raw, err = migrate(raw); err != nil {
			return state, fmt.Errorf("migrate custom state from version %d: %w", v, err)
		}
	}
	if err := json.Unmarshal(raw, &state, json.RejectUnknownMembers(true)); err != nil {
		var zero T
		return zero, fmt.Errorf("%w: %w", ErrStateShape, err)
	}
	return state, nil
}

// Patch applies a patch to the state of its name on the active path and appends
// it behind the head, trying again where others append meanwhile. One that does
// not apply is a *PatchError, and nothing is written. A missing session is
// eventlog.ErrNotFound.
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

// SetState replaces the whole state of a name by value, encoded as JSON; see
// Patch.
func SetState(ctx context.Context, log *eventlog.Log, session, name string, version int, value any) (CustomState, event.Head, error) {
	raw, err := json.Marshal(value, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return CustomState{}, event.Head{}, fmt.Errorf("encode state %q: %w", name, err)
	}
	patch := append(append([]byte(`[{"op":"add","path":"","value":`), raw...), '}', ']')
	return Patch(ctx, log, session, event.CustomPatch{Name: name, StateVersion: version, Patch: patch})
}

package projection

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	// Incomplete says that a patch of it was redacted; later ones that did not
	// apply any more are counted in Skipped. A patch that replaces the whole
	// document makes it complete again.
	Incomplete bool
	Skipped    int

	doc *document
}

// Custom is the state of programs on the active path: custom_patched events
// applied in order. A patch that does not apply is a *PatchError; Patch does not
// append such.
var Custom = Projection[CustomStates]{
	Name: "custom", Version: 1, Apply: (*CustomStates).apply,
	Encode: (*CustomStates).encode, Decode: decodeCustom,
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

func (s *CustomStates) apply(e *eventlog.Event) error {
	if e.Type.Name() != eventlog.CustomPatched {
		return nil
	}
	p, err := structure[eventlog.CustomPatch](e)
	if err != nil {
		return err
	}
	c, err := s.Get(p.Name).next(&p, e.Redacted())
	if err != nil {
		return err
	}
	if s.states == nil {
		s.states = map[string]CustomState{}
	}
	s.states[p.Name] = c
	return nil
}

// next is the state after a patch.
func (c CustomState) next(p *eventlog.CustomPatch, redacted bool) (CustomState, error) {
	c.Version = or(p.StateVersion, c.Version)
	if redacted {
		c.Incomplete = true
		return c, nil
	}
	doc, err := c.document().patched(p.Patch)
	switch {
	case err == nil && replacesAll(p.Patch):
		return CustomState{Version: c.Version, doc: doc}, nil
	case err == nil:
		c.doc = doc
	case c.Incomplete:
		c.Skipped++
	default:
		return c, err
	}
	return c, nil
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
	State      jsontext.Value `json:"state"`
}

func (s *CustomStates) encode() (jsontext.Value, error) {
	bodies := map[string]customBody{}
	for name, c := range s.states {
		bodies[name] = customBody{Version: c.Version, Incomplete: c.Incomplete, Skipped: c.Skipped, State: c.Raw()}
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
		s.states[name] = CustomState{Version: b.Version, Incomplete: b.Incomplete, Skipped: b.Skipped, doc: doc}
	}
	return s, nil
}

package flow

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// state is the custom state of a turn.
type state struct {
	// doc is the state that the turn function sees. committed is the state in the
	// log, of version.
	doc, committed jsontext.Value
	version        int
	target         int // the version of doc
	// loaded is doc at the newest record that the turn has reached.
	loaded   jsontext.Value
	streamed bool
}

// loadState sets the state to the state at the newest record that the turn has reached.
// The caller holds r.mu.
func (t *turn) loadState() error {
	states, _ := projection.State(t.states(), projection.Custom())
	custom := states.Get(t.r.name)
	doc, err := t.r.migrate(custom)
	if err != nil {
		return fmt.Errorf("state %q of session %q: %w", t.r.name, t.r.session, err)
	}
	t.state.committed, t.state.version = custom.Raw(), custom.Version
	t.state.doc, t.state.loaded, t.state.target = doc, doc, t.r.stateVersion
	return nil
}

// patch is the change from the state of the log to the state of the turn, as a JSON
// Patch. A state of an older version is replaced.
func (s *state) patch() (patch jsontext.Value, changed bool, err error) {
	if bytes.Equal(s.doc, s.committed) && s.version == s.target {
		return nil, false, nil
	}
	if isNull(s.committed) && isNull(s.doc) {
		return nil, false, nil
	}
	if s.version != s.target || isNull(s.committed) {
		return replacement(s.doc), true, nil
	}
	patch, err = diff(s.committed, s.doc)
	return patch, len(patch) > len("[]"), err
}

// stateChange is the event of the change since the last record; none if there is no change.
// The caller holds r.mu.
func (t *turn) stateChange() ([]event.Event, error) {
	patch, changed, err := t.state.patch()
	if err != nil || !changed {
		return nil, err
	}
	return []event.Event{t.r.patchEvent(patch)}, nil
}

// patchEvent is the event of a change of the custom state of the agent.
func (s *settings) patchEvent(patch jsontext.Value) event.Event {
	return event.New(event.CustomPatch{Name: s.name, StateVersion: s.stateVersion, Patch: patch})
}

// replacement is the patch that sets the whole document.
func replacement(doc jsontext.Value) jsontext.Value {
	return append(append([]byte(`[{"op":"add","path":"","value":`), doc...), '}', ']')
}

func isNull(doc jsontext.Value) bool { return len(doc) == 0 || doc.Kind() == jsontext.KindNull }

// encode encodes a value of the turn function. Equal values give equal bytes.
func encode(v any) (jsontext.Value, error) {
	if raw, ok := v.(jsontext.Value); ok {
		if len(raw) == 0 {
			return nil, nil
		}
		if !raw.IsValid() {
			return nil, fmt.Errorf("%w: it is no JSON", ErrNotPortable)
		}
		return raw, nil
	}
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotPortable, err)
	}
	return raw, nil
}

// update changes the state of the turn by f, which gets the document and returns the
// new one. The caller holds r.mu.
func (t *turn) update(f func(doc jsontext.Value) (jsontext.Value, error)) error {
	doc, err := f(t.state.doc)
	if err != nil {
		return err
	}
	before := t.state.doc
	t.state.doc = doc
	if t.replaying() || bytes.Equal(before, doc) {
		return nil
	}
	return t.streamState(before)
}

// streamState gives the client the change of the state: the whole state at first.
func (t *turn) streamState(before jsontext.Value) error {
	doc := t.state.doc
	whole := func() (jsontext.Value, error) { return replacement(doc), nil }
	patch := whole
	if t.state.streamed {
		patch = func() (jsontext.Value, error) { return diff(before, doc) }
	}
	t.state.streamed = true
	return t.r.out.putPatch(patch, whole)
}

package projection

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

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

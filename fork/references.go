package fork

import (
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// references is the registry of payload members that hold the id of an event of
// the same lineage: a copy, whose events have fresh ids, has them follow.
//
// Not in it: ids of events of other sessions (session_started.parent.event_id,
// session_forked.event_id, which says nothing any more in a copy), and ids that
// programs mint themselves.
var references = map[event.Type]string{
	event.TurnCompleted:   "turn_id",
	event.TurnHibernated:  "turn_id",
	event.TurnResumed:     "turn_id",
	event.StepStarted:     "turn_id",
	event.StepCompleted:   "turn_id",
	event.AbortRequested:  "turn_id",
	event.EffectIntended:  "turn_id",
	event.EffectCompleted: "turn_id",
	event.ChildRequested:  "parent_event_id",
	event.ChildStarted:    "parent_event_id",
	event.ChildProgressed: "parent_event_id",
	event.ChildBlocked:    "parent_event_id",
	event.ChildCompleted:  "parent_event_id",
	event.ChildFailed:     "parent_event_id",
	event.ChildCanceled:   "parent_event_id",
	event.ChildMerged:     "parent_event_id",
}

// renaming gives each event id of a copy its fresh one: the same for the same,
// so that references agree without any list of ids.
type renaming struct{ seed [16]byte }

// newRenaming draws a renaming that no other copy has.
func newRenaming() (r renaming) {
	a, b := event.NewID(), event.NewID()
	copy(r.seed[:8], a[8:])
	copy(r.seed[8:], b[8:])
	return r
}

// id keeps the time of the old id.
func (r *renaming) id(old ulid.ULID) (fresh ulid.ULID) {
	sum := sha256.Sum256(append(r.seed[:], old[:]...))
	copy(fresh[:6], old[:6])
	copy(fresh[6:], sum[:])
	return fresh
}

// apply renames what a payload of type t refers to; all else stays byte for
// byte.
func (r *renaming) apply(t event.Type, data jsontext.Value) (jsontext.Value, error) {
	name, ok := references[t.Name()]
	if !ok {
		return data, nil
	}
	members, err := rawjson.Members(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", t, event.ErrInvalidPayload, err)
	}
	value, ok := rawjson.Value(members, name)
	if !ok {
		return data, nil
	}
	var old ulid.ULID
	if err := json.Unmarshal(value, &old); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %w", name, t, event.ErrInvalidPayload, err)
	}
	if old.IsZero() {
		return data, nil
	}
	return rawjson.Object(rawjson.Set(members, name, jsontext.Value(`"`+r.id(old).String()+`"`))), nil
}

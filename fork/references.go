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

// references lists the payload members that hold the id of an event of the same
// lineage. The events of a copy have new ids, so a copy changes these members too.
//
// Ids of events of other sessions are not listed (session_started.parent.event_id,
// session_forked.event_id), nor ids that programs make.
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

// renaming maps the event ids of a source to the ids of its copy. It is a function of
// the id, so it needs no list of ids.
type renaming struct{ seed [16]byte }

// newRenaming is a renaming for one copy.
func newRenaming() (r renaming) {
	a, b := event.NewID(), event.NewID()
	copy(r.seed[:8], a[8:])
	copy(r.seed[8:], b[8:])
	return r
}

// id maps an id. The time in it stays.
func (r *renaming) id(old ulid.ULID) (fresh ulid.ULID) {
	sum := sha256.Sum256(append(r.seed[:], old[:]...))
	copy(fresh[:6], old[:6])
	copy(fresh[6:], sum[:])
	return fresh
}

// apply renames the ids in a payload of type t. All other bytes stay.
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

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
var references = func() map[event.Type][]string {
	all := map[event.Type][]string{event.EffectCompleted: {"turn_id", "event_ids"}}
	for _, t := range []event.Type{
		event.TurnCompleted, event.TurnHibernated, event.TurnResumed, event.StepStarted, event.StepCompleted,
		event.AbortRequested, event.EffectIntended, event.ApprovalRequested, event.WaitStarted,
	} {
		all[t] = []string{"turn_id"}
	}
	for _, t := range []event.Type{
		event.ChildRequested.Type(), event.ChildStarted.Type(), event.ChildProgressed.Type(), event.ChildBlocked.Type(),
		event.ChildCompleted.Type(), event.ChildFailed.Type(), event.ChildCanceled.Type(), event.ChildMerged.Type(),
	} {
		all[t] = []string{"parent_event_id"}
	}
	return all
}()

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
	names, ok := references[t.Name()]
	if !ok {
		return data, nil
	}
	members, err := rawjson.Members(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", t, event.ErrInvalidPayload, err)
	}
	changed := false
	for _, name := range names {
		value, ok := rawjson.Value(members, name)
		if !ok {
			continue
		}
		fresh, err := r.renamed(value)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w: %w", name, t, event.ErrInvalidPayload, err)
		}
		members, changed = rawjson.Set(members, name, fresh), true
	}
	if !changed {
		return data, nil
	}
	return rawjson.Object(members), nil
}

// renamed renames an id or a list of ids.
func (r *renaming) renamed(value jsontext.Value) (jsontext.Value, error) {
	if value.Kind() == jsontext.KindBeginArray {
		var ids []ulid.ULID
		if err := json.Unmarshal(value, &ids); err != nil {
			return nil, err
		}
		for i := range ids {
			ids[i] = r.id(ids[i])
		}
		return json.Marshal(ids)
	}
	var old ulid.ULID
	if err := json.Unmarshal(value, &old); err != nil || old.IsZero() {
		return value, err
	}
	return jsontext.Value(`"` + r.id(old).String() + `"`), nil
}

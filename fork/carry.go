package fork

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// The metadata of copied events (docs/FORMAT.md).
const (
	forkOriginKey = "fork_origin"
	inheritedKey  = "inherited"
	copyOfKey     = "copy_of"
)

// EventOrigin is the metadata member fork_origin: the event that one is a copy
// of.
type EventOrigin struct {
	Session string    `json:"session_id"`
	ID      ulid.ULID `json:"event_id"`
	Seq     int64     `json:"seq"`
}

// CopyOrigin is the metadata member copy_of of a copy's first event. A copy
// whose head is before Through was not finished.
type CopyOrigin struct {
	Session string `json:"session_id"`
	Through int64  `json:"through"`
}

// Origin reads which event e is a copy of; ok is false if it is none.
func Origin(e *event.Event) (o EventOrigin, ok bool) {
	value, ok := e.MetadataValue(forkOriginKey)
	return o, ok && json.Unmarshal(value, &o) == nil
}

// copyOrigin reads what session the copy that begins with e is of.
func copyOrigin(e *event.Event) (o CopyOrigin, ok bool) {
	value, ok := e.MetadataValue(copyOfKey)
	return o, ok && json.Unmarshal(value, &o) == nil && o.Session != ""
}

// accounted are the types whose usage or total counts in the original.
var accounted = map[event.Type]bool{
	event.MessageAdded: true, event.TurnCompleted: true, event.StepCompleted: true,
	event.EffectCompleted: true, event.AccountingFlushed: true,
	event.ChildRequested: true, event.ChildStarted: true, event.ChildProgressed: true, event.ChildBlocked: true,
	event.ChildCompleted: true, event.ChildFailed: true, event.ChildCanceled: true, event.ChildMerged: true,
}

// carry makes the copy of an event, not stored yet.
func carry(e *event.Event, r *renaming) (fresh event.Event, err error) {
	fresh = event.Event{Type: e.Type, Data: e.Data, Timestamp: e.Timestamp, Cost: e.Cost}
	switch {
	case e.Redacted():
		fresh, err = erased(e, r)
	case e.Type.Name() == event.SessionForked && e.Seq == 1:
		// Before all others it would make the copy a fork.
		fresh.Type = "copy:" + e.Type
	default:
		fresh.Data, err = r.apply(e.Type, e.Data)
	}
	fresh.ID, fresh.Metadata = r.id(e.ID), e.Metadata
	if err == nil {
		err = carryRest(&fresh, e)
	}
	if err != nil {
		return fresh, fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	return fresh, nil
}

// carryRest gives a copy its blobs, its unknown members and its origin.
func carryRest(fresh, e *event.Event) error {
	if blobs := bodies(e); len(blobs) > 0 {
		if err := fresh.AddBlobs(blobs...); err != nil {
			return err
		}
	}
	if extras := e.Extras(); len(extras) > 0 {
		if err := fresh.SetExtras(slices.Concat([]byte{'{'}, extras, []byte{'}'})); err != nil {
			return err
		}
	}
	return mark(fresh, EventOrigin{e.SessionID, e.ID, e.Seq}, e.Cost > 0 || accounted[e.Type.Name()])
}

// mark says in a copy's metadata what it is a copy of, and whether its cost and
// usage count there.
func mark(fresh *event.Event, origin EventOrigin, inherited bool) error {
	value, err := json.Marshal(origin)
	if err != nil {
		return err
	}
	if len(fresh.Metadata) == 0 { // as is most often; what follows does the same
		fresh.Metadata = slices.Concat([]byte(`{"`+forkOriginKey+`":`), value, inheritedTails[inherited])
		return nil
	}
	if err := fresh.SetMetadata(forkOriginKey, jsontext.Value(value)); err != nil || !inherited {
		return err
	}
	return fresh.SetMetadata(inheritedKey, true)
}

var inheritedTails = map[bool][]byte{true: []byte(`,"` + inheritedKey + `":true}`), false: {'}'}}

// bodies are the blobs that an event needs besides its own data.
func bodies(e *event.Event) []event.Digest {
	digest, _, _ := e.Spilled()
	return slices.DeleteFunc(slices.Clone(e.Blobs()), func(d event.Digest) bool { return d == digest })
}

// erased stands for a redacted event, whose line could not be that of another
// id: a lost event with what redaction kept.
func erased(e *event.Event, r *renaming) (event.Event, error) {
	kept, err := r.apply(e.Type, e.Kept())
	if err != nil {
		return event.Event{}, err
	}
	extra, err := json.Marshal(struct {
		Type event.Type     `json:"type"`
		Kept jsontext.Value `json:"kept"`
	}{e.Type, kept})
	if err != nil {
		return event.Event{}, err
	}
	lost := event.New(event.Loss{Reason: event.ErasedLoss, Source: event.LossSource{SessionID: e.SessionID}, Extra: extra})
	lost.Timestamp, lost.Cost = e.Timestamp, e.Cost
	return lost, err
}

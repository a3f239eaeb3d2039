package fork

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
)

// accounted are the types with usage or a total: it counts in the original only.
var accounted = map[event.Type]bool{
	event.MessageAdded: true, event.TurnCompleted: true, event.StepCompleted: true,
	event.EffectCompleted: true, event.AccountingFlushed: true,
	event.ChildRequested.Type(): true, event.ChildStarted.Type(): true, event.ChildProgressed.Type(): true, event.ChildBlocked.Type(): true,
	event.ChildCompleted.Type(): true, event.ChildFailed.Type(): true, event.ChildCanceled.Type(): true, event.ChildMerged.Type(): true,
}

// copyOf is the copy of an event, with a new id.
func copyOf(e *event.Event, r *renaming) (fresh event.Event, err error) {
	fresh = event.Event{Type: e.Type, Data: e.Data, Timestamp: e.Timestamp, Cost: e.Cost}
	if e.Redacted() && !e.Type.Spillable() { // readers need what was kept
		if fresh.Data, err = keptPayload(e); err != nil {
			return fresh, err
		}
	}
	switch {
	case fresh.Data == nil && e.Redacted():
		fresh, err = lostCopyOf(e, r)
	case e.Type.Name() == event.SessionForked && e.Seq == 1:
		// As the first event of the copy it would make the copy a fork.
		fresh.Type = "copy:" + e.Type
	default:
		fresh.Data, err = r.apply(e.Type, fresh.Data)
	}
	fresh.ID, fresh.Metadata = r.id(e.ID), e.Metadata
	if err == nil {
		err = copyRest(&fresh, e)
	}
	if err != nil {
		return fresh, fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	return fresh, nil
}

// keptPayload is the part of the payload of a tree or control event that a redaction keeps.
func keptPayload(e *event.Event) (jsontext.Value, error) {
	members, err := rawjson.Members(e.Kept())
	if err != nil {
		return nil, err
	}
	return rawjson.Object(slices.DeleteFunc(members, func(m rawjson.Member) bool { return m.Name == "metadata" })), nil
}

// copyRest copies the blobs and the unknown members of e, and marks the origin.
func copyRest(fresh, e *event.Event) error {
	if blobs := blobsOf(e); len(blobs) > 0 {
		if err := fresh.AddBlobs(blobs...); err != nil {
			return err
		}
	}
	if extras := e.Extras(); len(extras) > 0 {
		if err := fresh.SetExtras(slices.Concat([]byte{'{'}, extras, []byte{'}'})); err != nil {
			return err
		}
	}
	return markOrigin(fresh, event.Origin{Session: e.SessionID, ID: e.ID, Seq: e.Seq}, e.Cost > 0 || accounted[e.Type.Name()])
}

// markOrigin writes into a copy's metadata which event it is a copy of, and whether its
// cost and usage count there.
func markOrigin(fresh *event.Event, origin event.Origin, inherited bool) error {
	value, err := json.Marshal(origin)
	if err != nil {
		return err
	}
	if len(fresh.Metadata) == 0 { // the usual case, without parsing; the result is the same
		fresh.Metadata = slices.Concat([]byte(`{"`+mark.ForkOrigin+`":`), value, inheritedEnds[inherited])
		return nil
	}
	if err := fresh.SetMetadata(mark.ForkOrigin, jsontext.Value(value)); err != nil || !inherited {
		return err
	}
	return fresh.SetMetadata(mark.Inherited, true)
}

var inheritedEnds = map[bool][]byte{true: []byte(`,"` + mark.Inherited + `":true}`), false: {'}'}}

// blobsOf are the blobs that an event needs besides its spilled data.
func blobsOf(e *event.Event) []event.Digest {
	digest, _, _ := e.Spilled()
	return slices.DeleteFunc(slices.Clone(e.Blobs()), func(d event.Digest) bool { return d == digest })
}

// lostCopyOf is the copy of a redacted event: a lost event with the members that
// the redaction kept. A redacted line is bound to its id and cannot be copied.
func lostCopyOf(e *event.Event, r *renaming) (event.Event, error) {
	kept, err := r.apply(e.Type, e.Kept())
	if err != nil {
		return event.Event{}, err
	}
	var loss event.Loss
	loss.Source.SessionID = e.SessionID
	if err := loss.SetErased(e.Type, kept); err != nil {
		return event.Event{}, err
	}
	lost := event.New(loss)
	lost.Timestamp, lost.Cost = e.Timestamp, e.Cost
	return lost, nil
}

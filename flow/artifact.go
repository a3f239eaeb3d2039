package flow

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
)

// artifacts are the recorded artifacts, and the ones of the next append.
func (t *turn) artifacts() (list []event.Artifact) {
	for _, a := range t.recorded() {
		list = append(list, a.Artifact)
	}
	for i := range t.pending {
		if t.pending[i].Type.Name() != event.ArtifactRecorded {
			continue
		}
		a, _, err := event.Decode[event.Artifact](&t.pending[i])
		if err != nil {
			continue // made by setArtifact
		}
		list = withArtifact(list, a)
	}
	return list
}

// withArtifact is a list of artifacts after another record.
func withArtifact(list []event.Artifact, a event.Artifact) []event.Artifact {
	if a.Removed {
		return slices.DeleteFunc(list, func(x event.Artifact) bool { return x.ArtifactID == a.ArtifactID })
	}
	if i := slices.IndexFunc(list, func(x event.Artifact) bool { return a.Name != "" && x.Name == a.Name }); i >= 0 {
		list[i] = a
		return list
	}
	return append(list, a)
}

// setArtifacts removes all artifacts and records others.
func (t *turn) setArtifacts(artifacts []event.Artifact) error {
	t.r.mu.Lock()
	old := t.artifacts()
	t.r.mu.Unlock()
	var events []event.Event
	for _, a := range old {
		events = append(events, event.New(event.Artifact{ArtifactID: a.ArtifactID, Name: a.Name, Removed: true}))
	}
	for i, a := range artifacts {
		if a.ArtifactID == "" {
			a.ArtifactID = t.newID()
		}
		if err := event.Validate(a); err != nil {
			return fmt.Errorf("artifacts[%d]: %w", i, err)
		}
		events = append(events, event.New(a))
	}
	return t.add(events...)
}

func (t *turn) setArtifact(ctx context.Context, a event.Artifact, body []byte) error {
	if a.ArtifactID == "" {
		a.ArtifactID = t.newID()
	}
	if body != nil {
		ref, recorded := t.recordedBody(a.ArtifactID)
		if !recorded {
			var err error
			if ref, err = t.r.log.PutBlob(ctx, bytes.NewReader(body)); err != nil {
				return fmt.Errorf("artifact %q: %w", a.Name, err)
			}
		}
		a.Body = ref
	}
	if err := event.Validate(a); err != nil {
		return err
	}
	return t.add(event.New(a))
}

// recordedBody returns the body of an artifact that an earlier execution recorded; false
// if the turn is live. It may be erased since, so it is not stored again.
func (t *turn) recordedBody(id string) (ref event.BlobRef, recorded bool) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if !t.replaying() {
		return ref, false
	}
	for i := t.folded; i < len(t.rec.events); i++ {
		e := &t.rec.events[i]
		if e.Type.Name() != event.ArtifactRecorded {
			continue
		}
		if a, _, err := event.Decode[event.Artifact](e); err == nil && a.ArtifactID == id {
			return a.Body, true
		}
	}
	return ref, true
}

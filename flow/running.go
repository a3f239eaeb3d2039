package flow

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
)

// Add adds messages to the history, from inside the effect. They are appended together with
// the result of the effect, after it: once, however often the effect runs, and not at all if it
// fails. Models get them after the results of all tool calls of the same answer.
func (r Running) Add(messages ...event.Message) error {
	events := make([]event.Event, len(messages))
	for i, m := range messages {
		if err := event.Validate(m); err != nil {
			return err
		}
		events[i] = event.New(m)
	}
	return r.add(events...)
}

// SetArtifact records an artifact, as Add adds messages. It replaces an artifact of the same
// name. Body is stored as a blob, if it is not nil.
func (r Running) SetArtifact(ctx context.Context, a event.Artifact, body []byte) error {
	x := r.effect
	if x == nil {
		return fmt.Errorf("artifact %q: %w", a.Name, errOutside)
	}
	if a.ArtifactID == "" {
		x.turn.r.mu.Lock()
		x.artifacts++
		a.ArtifactID = uuid.NewSHA1(uuid.Nil, []byte("artifact/"+r.Key+"/"+strconv.Itoa(x.artifacts))).String()
		x.turn.r.mu.Unlock()
	}
	if body != nil {
		var err error
		if a.Body, err = x.turn.r.log.PutBlob(ctx, bytes.NewReader(body)); err != nil {
			return fmt.Errorf("artifact %q: %w", a.Name, err)
		}
	}
	if err := event.Validate(a); err != nil {
		return err
	}
	return r.add(event.New(a))
}

// Progress gives the client of the turn a value. It is not recorded.
func (r Running) Progress(v any) {
	if r.effect != nil {
		r.effect.turn.r.out.put(Chunk{Progress: v, Attempt: r.Attempt})
	}
}

// add adds events to the append of the result.
func (r Running) add(events ...event.Event) error {
	if r.effect == nil {
		return fmt.Errorf("add to the session: %w", errOutside)
	}
	r.effect.turn.r.mu.Lock()
	defer r.effect.turn.r.mu.Unlock()
	r.effect.added = append(r.effect.added, events...)
	return nil
}

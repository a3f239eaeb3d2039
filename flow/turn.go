package flow

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Turn is a running turn, for the goroutine of the turn function. State, messages and
// artifacts are copies. Changes are recorded with the next effect, or at the end of the
// turn. A change inside an effect is ErrNestedEffect, since it would be lost if the turn
// is run again.
type Turn[S any] struct{ t *turn }

// ID identifies the turn.
func (t *Turn[S]) ID() ulid.ULID { return t.t.rec.turn }

// Index is the number of turns of the path before this one.
func (t *Turn[S]) Index() int { return t.t.rec.start.Index }

// Session is the id of the session.
func (t *Turn[S]) Session() string { return t.t.r.session }

// SnapshotID is the id that is reserved for the snapshot at the end of the turn.
func (t *Turn[S]) SnapshotID() string { return t.t.rec.snapshotID() }

// Input is the input that began the turn.
func (t *Turn[S]) Input() Input { return t.t.rec.input.clone() }

// State is the custom state of the session.
func (t *Turn[S]) State() (S, error) {
	t.t.r.mu.Lock()
	defer t.t.r.mu.Unlock()
	return decodeState[S](t.t.state.doc)
}

// Update changes the custom state. If f returns an error, the state stays. f must not use
// the turn. Inside an effect, use the function Update.
func (t *Turn[S]) Update(f func(*S) error) error {
	if t.t.busy.Load() {
		return t.t.stop(ErrNestedEffect)
	}
	t.t.r.mu.Lock()
	defer t.t.r.mu.Unlock()
	return t.t.update(func(doc jsontext.Value) (jsontext.Value, error) { return updateDocument(doc, f) })
}

// Messages is the effective history, without contexts.
func (t *Turn[S]) Messages() ([]event.Message, error) {
	entries, err := t.History()
	return messagesOf(entries), err
}

// History is the effective history, as a model gets it.
func (t *Turn[S]) History() ([]projection.Entry, error) {
	t.t.r.mu.Lock()
	defer t.t.r.mu.Unlock()
	states, err := t.t.reachedStates()
	if err != nil {
		return nil, err
	}
	entries, err := t.t.entriesIn(states)
	for i := range entries { // the runner keeps them
		entries[i].Message.Parts = slices.Clone(entries[i].Message.Parts)
	}
	return entries, err
}

// Add adds messages to the history. It returns an error if a message breaks a rule of
// package event.
func (t *Turn[S]) Add(messages ...event.Message) error {
	events := make([]event.Event, len(messages))
	for i, m := range messages {
		if err := event.Validate(m); err != nil {
			return err
		}
		events[i] = event.New(m)
	}
	return t.t.add(events...)
}

// SetMessages replaces the history by messages. The log keeps the earlier messages.
func (t *Turn[S]) SetMessages(messages ...event.Message) error {
	c := event.Compaction{Replace: true, Strategy: "replace", Trigger: "agent", Entries: make([]event.CompactionEntry, len(messages))}
	for i := range messages {
		c.Entries[i].Message = &messages[i]
	}
	if err := event.Validate(c); err != nil {
		return err
	}
	return t.t.add(event.New(c))
}

// Artifacts are the artifacts of the session.
func (t *Turn[S]) Artifacts() []event.Artifact {
	t.t.r.mu.Lock()
	defer t.t.r.mu.Unlock()
	return t.t.artifacts()
}

// SetArtifact records an artifact. It replaces an artifact of the same name. Body is
// stored as a blob, if it is not nil.
func (t *Turn[S]) SetArtifact(ctx context.Context, a event.Artifact, body []byte) error {
	return t.t.setArtifact(ctx, a, body)
}

// SetArtifacts replaces all artifacts of the session. An artifact of Artifacts keeps its body.
func (t *Turn[S]) SetArtifacts(artifacts ...event.Artifact) error {
	return t.t.setArtifacts(artifacts)
}

// Progress gives the client a value. It is not recorded.
func (t *Turn[S]) Progress(v any) { t.t.r.out.put(Chunk{Progress: v}) }

// Stop sets the stop reason of the turn. The default is the stop reason of the last
// answer of a model, or "stop".
func (t *Turn[S]) Stop(reason string) {
	t.t.r.mu.Lock()
	defer t.t.r.mu.Unlock()
	t.t.stopReason = reason
}

// Now is the time of the newest record that the turn has reached: the same time in each
// execution.
func (t *Turn[S]) Now() time.Time {
	t.t.r.mu.Lock()
	defer t.t.r.mu.Unlock()
	return t.t.point.time
}

// NewID returns a new id. The n-th call returns the same id in each execution of the turn.
func (t *Turn[S]) NewID() string { return t.t.newID() }

// Patched reports whether the turn runs with the change of that name. It is true, and
// recorded, if the turn reaches this place for the first time. It is false if older code
// has passed this place.
func (t *Turn[S]) Patched(name string) (bool, error) { return t.t.patched(name) }

// NewWait begins to wait for something outside. The wait is durable when NewWait returns,
// so that its token can be given away. Await returns its value. After the timeout the wait
// ends without a value; 0 is never.
func (t *Turn[S]) NewWait(ctx context.Context, name string, timeout time.Duration) (Pending, error) {
	return t.t.newWait(ctx, name, timeout)
}

// First returns the wait of several that ended first: with a value, by its time-out, or because
// it was canceled. Await returns its value or error then. Until one ends, the turn hibernates. The others stay
// open until the turn ends, and can be awaited later. Which one was first is recorded. The error is
// ErrNotOpen for a wait of another turn, and without waits.
func (t *Turn[S]) First(ctx context.Context, waits ...Pending) (Pending, error) {
	return t.t.first(ctx, waits)
}

// Sleep waits for a time. A turn that sleeps longer than Options.InProcess hibernates.
func (t *Turn[S]) Sleep(ctx context.Context, d time.Duration) error { return t.t.sleep(ctx, d) }

// add adds events to the next append, if they are not in the log already.
func (t *turn) add(events ...event.Event) error {
	if t.busy.Load() {
		return t.stop(ErrNestedEffect)
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.pending = append(t.pending, events...)
	if !t.replaying() {
		t.emit(events)
	}
	return nil
}

// patched answers and records Turn.Patched.
func (t *turn) patched(name string) (bool, error) {
	if err := t.enter(t.ctx); err != nil {
		return false, err
	}
	defer t.leave()
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if answer, known := t.patches[name]; known {
		return answer, nil
	}
	ordinal := strconv.Itoa(t.next)
	x := t.rec.at[ordinal]
	if x != nil && x.intent != nil && x.intent.Kind == kindPatch && x.intent.Name == name {
		t.patches[name] = true
		t.next++
		return true, nil // it was appended with the next record
	}
	if t.rec.step(t.next) || t.r.player != nil && !t.r.player.Patched(t.next, name) {
		t.patches[name] = false
		return false, nil
	}
	t.patches[name] = true
	t.next++
	p := event.EffectIntent{Key: t.key(ordinal), TurnID: t.rec.turn, Ordinal: ordinal, Kind: kindPatch, Name: name, Class: event.EffectPure, Attempt: 1}
	done := event.EffectCompletion{Key: p.Key, TurnID: p.TurnID, Ordinal: ordinal, Attempt: 1}
	t.pending = append(t.pending, event.New(p), event.New(done))
	return true, nil
}

// emit gives the client the messages and artifacts among events.
func (t *turn) emit(events []event.Event) {
	for i := range events {
		switch e := &events[i]; e.Type.Name() {
		case event.MessageAdded:
			if m, _, err := event.Decode[event.Message](e); err == nil {
				t.r.out.put(Chunk{Message: &m})
			}
		case event.ArtifactRecorded:
			if a, _, err := event.Decode[event.Artifact](e); err == nil {
				t.r.out.put(Chunk{Artifact: &a})
			}
		}
	}
}

package genkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// The custom states of a session, by name: the custom state of the agent, and its list of artifacts.
const (
	customState   = "genkit"
	artifactState = "genkit:artifacts"
)

var states = projection.Of("genkit:states", rowsOf, projection.Custom())

// encodeState makes the events that lead from the active path at head to a state: the messages that the path lacks, after a move
// of the head to the last common message, and the changed custom states.
func (s *Store[S]) encodeState(ctx context.Context, logID string, head event.Head, state *exp.SessionState[S]) (events []event.Event, err error) {
	path, err := s.messages(ctx, logID, head.Seq)
	if err != nil {
		return nil, err
	}
	enc := encoder{map[string][]string{}, map[event.Digest][]byte{}}
	encoded, err := enc.encode(state.Messages)
	if err != nil {
		return nil, err
	}
	common, err := s.common(ctx, path, encoded, state.Messages)
	if err != nil {
		return nil, err
	}
	moved := common < len(path)
	if moved {
		move := event.HeadMove{Reason: "a snapshot with other messages"}
		if common > 0 {
			move.To = path[common-1].Seq
		}
		events = append(events, event.New(move))
	}
	for _, m := range encoded[common:] {
		if err := enc.putBlobs(ctx, s.log, m); err != nil {
			return nil, err
		}
		events = append(events, event.New(m))
	}
	var view projection.View[projection.CustomStates]
	if head.Seq > 0 {
		if view, err = projection.Load(ctx, s.log, logID, projection.Custom(), projection.Options{At: head.Seq}); err != nil {
			return nil, err
		}
	}
	for _, doc := range []struct {
		name  string
		value any
	}{{customState, state.Custom}, {artifactState, state.Artifacts}} {
		raw, err := marshal(doc.value)
		if err != nil {
			return nil, err
		}
		if stored := view.State.Get(doc.name).Raw(); moved || !bytes.Equal(stored, raw) {
			patch := event.CustomPatch{Name: doc.name, Patch: jsontext.Value(fmt.Sprintf(`[{"op":"add","path":"","value":%s}]`, raw))}
			events = append(events, event.New(patch))
		}
	}
	return events, nil
}

// decodeState reads the state of the path that ends with the event seq.
func (s *Store[S]) decodeState(ctx context.Context, logID string, seq int64, state *exp.SessionState[S]) error {
	path, err := s.messages(ctx, logID, seq)
	if err != nil {
		return err
	}
	for _, e := range path {
		m, err := decoder{s.log}.decodeMessage(ctx, &e)
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		state.Messages = append(state.Messages, m)
	}
	view, err := projection.Load(ctx, s.log, logID, projection.Custom(), projection.Options{At: seq})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(view.State.Get(customState).Raw(), &state.Custom); err != nil {
		return fmt.Errorf("the custom state of session %q is no %T: %w", logID, state.Custom, err)
	}
	return json.Unmarshal(view.State.Get(artifactState).Raw(), &state.Artifacts)
}

// messages are the messages of the path that ends with the event seq.
func (s *Store[S]) messages(ctx context.Context, logID string, seq int64) (all []event.Event, err error) {
	if seq == 0 {
		return nil, nil
	}
	for e, err := range s.log.Read(ctx, logID, eventlog.Between(0, seq).OnPath()) {
		if err != nil {
			return nil, err
		}
		if e.Type.Name() == event.MessageAdded {
			all = append(all, e)
		}
	}
	return all, nil
}

// common is the number of messages at the start of the path that are the messages of a state.
func (s *Store[S]) common(ctx context.Context, path []event.Event, encoded []event.Message, messages []*ai.Message) (n int, err error) {
	for n < min(len(path), len(messages)) {
		if e := event.New(encoded[n]); !bytes.Equal(path[n].Data, e.Data) { // other bytes may be the same message, for example a redacted one
			stored, err := decoder{s.log}.decodeMessage(ctx, &path[n])
			if err != nil {
				return 0, fmt.Errorf("event %d: %w", path[n].Seq, err)
			}
			if !sameMessage(stored, messages[n]) {
				return n, nil
			}
		}
		n++
	}
	return n, nil
}

func sameMessage(a, b *ai.Message) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// snapshotEvery is the number of events between two snapshots. A load of a state reads about as many.
const snapshotEvery = 128

// snapshot appends a snapshot of the states if the session has grown past a multiple of snapshotEvery. An error is
// no error of the append before it: the next snapshot covers the same events.
func snapshot(ctx context.Context, log *eventlog.Log, logID string, set projection.Set, before, head event.Head) {
	if before.Seq/snapshotEvery == head.Seq/snapshotEvery {
		return
	}
	if live, err := projection.Resume(ctx, log, logID, set); err == nil {
		_, _, _ = live.Snapshot(ctx, projection.Request{Trigger: "genkit"})
	}
}

package adk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// snapshotEvery is the number of events between two snapshots. A load of a state reads about as many.
const snapshotEvery = 128

var states = projection.Of("adk:states", projection.Custom(), projection.Artifacts())

// loadState decodes a custom state of a session into value, as of head.
func loadState(ctx context.Context, log *eventlog.Log, logID, name string, value any) (head event.Head, err error) {
	view, err := projection.Load(ctx, log, logID, projection.Custom())
	if err != nil {
		return event.Head{}, err
	}
	if err := json.Unmarshal(view.State.Get(name).Raw(), value); err != nil {
		return event.Head{}, fmt.Errorf("decode the state %q of session %q: %w", name, logID, err)
	}
	return view.Head, nil
}

// snapshot appends a snapshot of the states if the session has grown past a multiple of snapshotEvery. An error is
// no error of the append before it: the next snapshot covers the same events.
func snapshot(ctx context.Context, log *eventlog.Log, logID string, before, head event.Head) event.Head {
	if before.Seq/snapshotEvery == head.Seq/snapshotEvery {
		return head
	}
	live, err := projection.Resume(ctx, log, logID, states)
	if err != nil {
		return head
	}
	if _, _, err := live.Snapshot(ctx, projection.Request{Trigger: "adk", Body: true}); err != nil {
		return head
	}
	return live.Head
}

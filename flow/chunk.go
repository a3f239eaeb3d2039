package flow

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Chunk is what happened in a running turn. Each field may be set, also several at once: the
// chunk that ends a turn has its snapshot, too. Deltas, progress and patches are not in the
// log: a client that reads the log instead sees their results.
type Chunk struct {
	// Delta is a piece of an answer.
	Delta *eventlog.Delta `json:"delta,omitzero"`
	// Message is a message of the turn, and Artifact an artifact.
	Message  *event.Message  `json:"message,omitzero"`
	Artifact *event.Artifact `json:"artifact,omitzero"`
	// Progress is a value of Turn.Progress or Progress.
	Progress any `json:"progress,omitzero"`
	// Patch is a change of the custom state, a JSON Patch. The first patch of a turn
	// replaces the whole state, and so does a patch that takes the place of unread ones.
	Patch jsontext.Value `json:"patch,omitzero"`
	// Snapshot is the id of a snapshot that was made.
	Snapshot string `json:"snapshot_id,omitzero"`
	// Attempt is the attempt of the call that a delta or progress belongs to. The deltas of
	// earlier attempts are void.
	Attempt int `json:"attempt,omitzero"`
	// Lost is the number of deltas and progress values that were dropped since the chunk
	// before, because the client read too slowly. Message has the whole answer.
	Lost int `json:"lost,omitzero"`
	// EndTurn is the end of the turn.
	EndTurn *TurnEnd `json:"end_turn,omitzero"`
}

// Text is the text of a delta of an answer's text, else empty.
func (c Chunk) Text() string {
	if c.Delta == nil || c.Delta.Kind != event.TextPart {
		return ""
	}
	return c.Delta.Text
}

// TurnEnd says how a turn ended.
type TurnEnd struct {
	Turn       ulid.ULID        `json:"turn_id"`
	Status     event.TurnStatus `json:"status"`
	StopReason string           `json:"stop_reason,omitzero"`
	// Snapshot is the snapshot at the end of the turn, empty if the policy declined.
	Snapshot string `json:"snapshot_id,omitzero"`
}

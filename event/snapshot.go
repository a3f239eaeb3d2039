package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Snapshot is the payload of projection_snapshotted: the state of a projection
// at a point of the log. One without State and Body is a mark: it names the
// point and the state's digest.
type Snapshot struct {
	Projection string `json:"projection"`
	// Version is the version of the projection.
	Version int `json:"version,omitzero"`
	// SnapshotID identifies the occurrence, StateDigest the content.
	SnapshotID       string `json:"snapshot_id,omitzero"`
	ParentSnapshotID string `json:"parent_snapshot_id,omitzero"`
	StateDigest      Digest `json:"state_digest,omitzero"`
	// BodyDigest is the digest of the state's bytes, checked on load.
	BodyDigest Digest `json:"body_digest,omitzero"`
	// Index is the depth on the path of snapshots, TurnIndex the turn; both
	// from 0.
	Index     int    `json:"index"`
	TurnIndex int    `json:"turn_index"`
	Trigger   string `json:"trigger,omitzero"`
	Reason    string `json:"reason,omitzero"`
	// Seq is the last event that the state covers; 0 means no event.
	Seq int64 `json:"seq"`
	// Hash is the hash of event Seq, and so of all events up to it. A body with
	// another hash in its session is not used. Hash is zero if Seq is 0.
	Hash Hash `json:"hash,omitzero"`
	// State is the body inline, Body the body as a blob.
	State jsontext.Value `json:"state,omitzero"`
	Body  BlobRef        `json:"body,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// IsMark reports whether the snapshot has no body.
func (s Snapshot) IsMark() bool { return s.State == nil && s.Body.IsZero() }

// EventType is projection_snapshotted.
func (s Snapshot) EventType() Type { return ProjectionSnapshotted }

// Validate applies the rules of Snapshot that need no other event.
func (s Snapshot) Validate() error {
	if s.State != nil && !s.Body.IsZero() {
		return fmt.Errorf("%w: state and body exclude each other", ErrInvalidPayload)
	}
	return firstError(
		require("projection", s.Projection),
		requireMin("version", s.Version, 0),
		requireDigest("state_digest", s.StateDigest),
		requireDigest("body_digest", s.BodyDigest),
		requireMin("index", s.Index, 0),
		requireMin("turn_index", s.TurnIndex, 0),
		requireMin("seq", s.Seq, 0),
		s.Body.check("body"),
		requireExtra(s.Extra),
	)
}

// Blobs lists the blobs of Snapshot.
func (s Snapshot) Blobs() []Digest { return s.Body.needs() }

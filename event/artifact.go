package event

import "github.com/go-json-experiment/json/jsontext"

// Artifact is the payload of artifact_recorded: it describes something that a
// session made.
type Artifact struct {
	ArtifactID string `json:"artifact_id"`
	// Name is empty, or replaces the artifact of that name.
	Name        string `json:"name,omitzero"`
	Kind        string `json:"kind,omitzero"`
	MediaType   string `json:"media_type,omitzero"`
	Description string `json:"description,omitzero"`
	// Body is the artifact itself, where the log keeps it; URI where others do.
	Body BlobRef `json:"body,omitzero"`
	URI  string  `json:"uri,omitzero"`
	// ChildID and SessionID say which run made it, if another one did.
	ChildID   string `json:"child_id,omitzero"`
	SessionID string `json:"session_id,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is artifact_recorded.
func (a Artifact) EventType() Type { return ArtifactRecorded }

// Validate applies the rules of Artifact that need no other event.
func (a Artifact) Validate() error {
	return firstError(require("artifact_id", a.ArtifactID), a.Body.check("body"), requireExtra(a.Extra))
}

// Blobs lists the blobs of Artifact.
func (a Artifact) Blobs() []Digest { return a.Body.needs() }

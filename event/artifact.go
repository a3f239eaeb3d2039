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
	// Body or Parts are the artifact itself, if the log keeps it; URI is its place elsewhere.
	Body  BlobRef `json:"body,omitzero"`
	Parts []Part  `json:"parts,omitzero"`
	URI   string  `json:"uri,omitzero"`
	// ChildID and SessionID say which run made it, if another one did.
	ChildID   string `json:"child_id,omitzero"`
	SessionID string `json:"session_id,omitzero"`
	// Removed removes the artifact of this id. The other members mean nothing then.
	Removed bool `json:"removed,omitzero"`
	// Extra is the metadata, an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is artifact_recorded.
func (a Artifact) EventType() Type { return ArtifactRecorded }

// Validate applies the rules of Artifact that need no other event.
func (a Artifact) Validate() error {
	return firstError(require("artifact_id", a.ArtifactID), a.Body.check("body"), checkParts(a.Parts), requireExtra(a.Extra))
}

// Blobs lists the blobs of Artifact.
func (a Artifact) Blobs() []Digest { return append(a.Body.needs(), partsNeed(a.Parts)...) }

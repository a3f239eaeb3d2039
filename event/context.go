package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Placement is the place of a context in the model's input.
type Placement string

// InHistory places a context at its event.
const InHistory Placement = "history"

// AsPrefix places a context before all messages.
const AsPrefix Placement = "prefix"

// ContextEntry is the payload of context_added: material for the model that is not a
// message.
type ContextEntry struct {
	Kind      string    `json:"kind,omitzero"`
	Placement Placement `json:"placement"`
	Parts     []Part    `json:"parts,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is context_added.
func (c ContextEntry) EventType() Type { return ContextAdded }

// Validate applies the rules of ContextEntry that need no other event.
func (c ContextEntry) Validate() error {
	if len(c.Parts) == 0 {
		return fmt.Errorf("%w: parts are empty", ErrInvalidPayload)
	}
	return firstError(requireOneOf("placement", c.Placement, InHistory, AsPrefix), checkParts(c.Parts), requireExtra(c.Extra))
}

// Blobs lists the blobs of ContextEntry.
func (c ContextEntry) Blobs() []Digest { return partsNeed(c.Parts) }

package httpapi

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Event is an event in JSON: what --json and the handlers print.
type Event struct {
	Seq       int64          `json:"seq"`
	ID        string         `json:"id"`
	Session   string         `json:"session"`
	Type      event.Type     `json:"type"`
	Timestamp time.Time      `json:"time"`
	Cost      event.Cost     `json:"cost,omitzero"`
	Hash      string         `json:"hash"`
	Metadata  jsontext.Value `json:"metadata,omitzero"`
	Redacted  bool           `json:"redacted,omitzero"`
	Orphaned  bool           `json:"orphaned,omitzero"`
	Kept      jsontext.Value `json:"kept,omitzero"`
	Data      jsontext.Value `json:"data,omitzero"`
}

// NewEvent is the JSON of an event.
func NewEvent(e *event.Event) Event {
	return Event{
		Seq: e.Seq, ID: e.ID.String(), Session: e.SessionID, Type: e.Type, Timestamp: e.Timestamp, Cost: e.Cost,
		Hash: e.Hash().String(), Metadata: e.Metadata, Redacted: e.Redacted(), Kept: e.Kept(), Data: e.Data,
	}
}

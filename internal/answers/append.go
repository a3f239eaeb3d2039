package answers

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
)

// NewEvent is an event to append. Without an ID, it gets one.
type NewEvent struct {
	ID       ulid.ULID      `json:"id,omitzero"`
	Type     event.Type     `json:"type"`
	Data     jsontext.Value `json:"data"`
	Metadata jsontext.Value `json:"metadata,omitzero"`
	Cost     event.Cost     `json:"cost,omitzero"`
}

// Event makes the event.
func (x *NewEvent) Event() event.Event {
	id := x.ID
	if id.IsZero() {
		id = event.NewID()
	}
	return event.Event{ID: id, Type: x.Type, Data: x.Data, Metadata: x.Metadata, Cost: x.Cost}
}

// Head is the new head of a session, and the number of events that were appended.
type Head struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
	Events  int    `json:"events"`
}

// NewHead is the JSON of a head.
func NewHead(session string, head event.Head, events int) Head {
	return Head{session, head.Seq, head.Hash.String(), events}
}

// Fork is a new fork.
type Fork struct {
	Head   `json:",inline"`
	Parent string `json:"parent"`
	At     int64  `json:"at"`
	Label  string `json:"label,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// NewFork is the JSON of a fork that was made with options.
func NewFork(child fork.Session, opts fork.Options) Fork {
	return Fork{NewHead(child.ID, child.Head, 1), child.Parent, child.Seq, opts.Label, opts.Reason}
}

// Move is a rewind or a recovery.
type Move struct {
	Head `json:",inline"`
	From int64    `json:"from"`
	To   int64    `json:"to"`
	Open []string `json:"open_calls,omitzero"` // calls without a result
}

// NewMove is the JSON of a move of a head.
func NewMove(m fork.Moved) Move {
	x := Move{Head: NewHead(m.Session, m.Head, 1), From: m.From, To: m.To}
	for _, call := range m.Open {
		x.Open = append(x.Open, call.CallID)
	}
	return x
}

// InJSON is a JSON error without the names of Go types.
func InJSON(err error) error {
	var meaning *json.SemanticError
	switch {
	case !errors.As(err, &meaning):
		return err
	case meaning.Err == nil:
		return fmt.Errorf("%s may not be a %v", meaning.JSONPointer, meaning.JSONKind)
	case meaning.JSONPointer == "":
		return meaning.Err
	}
	return fmt.Errorf("%s: %w", meaning.JSONPointer, meaning.Err)
}

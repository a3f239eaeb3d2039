package projection

import (
	"github.com/convlog/convlog/event"
)

// PostedInput is an external_input with messages that no message_added and no
// turn_started has named yet.
type PostedInput struct {
	Seq     int64  `json:"seq"`
	InputID string `json:"input_id"`
	// Steer asks for the input to go into the open turn.
	Steer bool `json:"steer,omitzero"`
	// Store is the store of the input: of the newest claim after it, else the store to which
	// it was sent. It is empty if neither is known.
	Store string `json:"store,omitzero"`
}

func (p *PostedInput) lookupKey() (lookupKey, int64) { return lookupKey{id: p.InputID}, p.Seq }

// post folds an external_input. A repeated input is void.
func (s *ControlState) post(e *event.Event) error {
	p, err := event.DecodeKept[event.External](e)
	if err != nil || p.InputID == "" || len(p.Messages) == 0 {
		return err
	}
	if !s.inbox.has(&s.Inbox, lookupKey{id: p.InputID}) {
		s.inbox.add(&s.Inbox, PostedInput{Seq: e.Seq, InputID: p.InputID, Steer: p.Steer, Store: p.Store})
	}
	return nil
}

// takeMessage takes the input that a message is part of.
func (s *ControlState) takeMessage(e *event.Event) error {
	id, err := e.InputID()
	if id != "" && !e.Copied() {
		s.take(id)
	}
	return err
}

// take removes an input from the inbox.
func (s *ControlState) take(id string) {
	if id != "" {
		s.inbox.remove(&s.Inbox, lookupKey{id: id})
	}
}

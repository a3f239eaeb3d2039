package event

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// External is the payload of external_input: something that reached the
// session from outside.
type External struct {
	Source string `json:"source,omitzero"`
	// InputID tells a repeated input from a new one.
	InputID string `json:"input_id,omitzero"`
	Kind    string `json:"kind,omitzero"`
	// Steer asks for the input to go into the running turn, before its next model call.
	Steer bool `json:"steer,omitzero"`
	// Store is the id of the store to which the input was sent.
	Store string `json:"store,omitzero"`
	// Messages are the messages of the input.
	Messages []Message `json:"messages,omitzero"`
	// Value is any JSON value, verbatim.
	Value jsontext.Value `json:"value,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is external_input.
func (x External) EventType() Type { return ExternalInput }

// Validate applies the rules of External that need no other event.
func (x External) Validate() error {
	for i := range x.Messages {
		if err := x.Messages[i].Validate(); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return requireExtra(x.Extra)
}

// Blobs lists the blobs of the messages.
func (x External) Blobs() (digests []Digest) {
	for i := range x.Messages {
		digests = append(digests, x.Messages[i].Blobs()...)
	}
	return digests
}

// InputID returns the id of the input that a message_added or a turn_started names. It is
// empty if the event names none, and for events of other types. The errors are the errors
// of DecodeKept.
func (e *Event) InputID() (id string, err error) {
	if name := e.Type.Name(); name != MessageAdded && name != TurnStarted {
		return "", nil
	}
	if err := e.Type.CheckVersion(); err != nil {
		return "", err
	}
	if data := e.content(); !bytes.Contains(data, []byte(`"input_id"`)) && !bytes.Contains(data, []byte(`\u`)) {
		return "", nil // most messages, without parsing
	}
	p, err := DecodeKept[struct {
		InputID string `json:"input_id"`
	}](e)
	return p.InputID, err
}

// Handoff is the payload of handoff: one agent gives the conversation to
// another.
type Handoff struct {
	FromAgent string `json:"from_agent,omitzero"`
	ToAgent   string `json:"to_agent"`
	Reason    string `json:"reason,omitzero"`
	// Input is the input of the next agent: any JSON value, verbatim.
	Input jsontext.Value `json:"input,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is handoff.
func (h Handoff) EventType() Type { return HandoffMade }

// Validate applies the rules of Handoff that need no other event.
func (h Handoff) Validate() error {
	return firstError(require("to_agent", h.ToAgent), requireExtra(h.Extra))
}

// Escalation is the payload of escalation_retried: an error that was kept from
// the caller and retried.
type Escalation struct {
	Agent   string `json:"agent,omitzero"`
	Scope   string `json:"scope,omitzero"`
	Target  string `json:"target,omitzero"`
	Attempt int    `json:"attempt,omitzero"`
	Error   string `json:"error,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is escalation_retried.
func (x Escalation) EventType() Type { return EscalationRetried }

// Validate applies the rules of Escalation that need no other event.
func (x Escalation) Validate() error {
	return firstError(requireMin("attempt", x.Attempt, 0), requireExtra(x.Extra))
}

// Op is the payload of op_logged: a line of a program's own log, one node of
// its tree of operations.
type Op struct {
	OpID     string `json:"op_id,omitzero"`
	ParentID string `json:"parent_id,omitzero"`
	Kind     string `json:"kind,omitzero"`
	Level    string `json:"level,omitzero"`
	Text     string `json:"text,omitzero"`
	// Value is any JSON value, verbatim.
	Value jsontext.Value `json:"value,omitzero"`
	// Body is the raw bytes of a request or an answer. No state depends on them, so they
	// can be erased without the events after them.
	Body BlobRef `json:"body,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is op_logged.
func (o Op) EventType() Type { return OpLogged }

// Validate applies the rules of Op that need no other event.
func (o Op) Validate() error { return firstError(o.Body.check("body"), requireExtra(o.Extra)) }

// Blobs lists the blobs of Op.
func (o Op) Blobs() []Digest { return o.Body.needs() }

package eventlog

import "github.com/go-json-experiment/json/jsontext"

// External is the payload of external_input: something that reached the
// session from outside.
type External struct {
	Source string `json:"source,omitzero"`
	// InputID tells a repeated input from a new one.
	InputID string `json:"input_id,omitzero"`
	Kind    string `json:"kind,omitzero"`
	// Value is any JSON value, verbatim.
	Value jsontext.Value `json:"value,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewExternalInput makes an external_input.
func NewExternalInput(x External) (Event, error) { return NewEvent(x) }

// External reads an external_input; ok and err are as for Message.
func (e *Event) External() (x External, ok bool, err error) {
	return decode[External](e, ExternalInput)
}

// EventType is external_input.
func (x External) EventType() Type { return ExternalInput }
func (x External) check() error    { return requireExtra(x.Extra) }
func (x External) needs() []Digest { return nil }

// Handoff is the payload of handoff: one agent gives the conversation to
// another.
type Handoff struct {
	FromAgent string `json:"from_agent,omitzero"`
	ToAgent   string `json:"to_agent"`
	Reason    string `json:"reason,omitzero"`
	// Input is what the next agent is given: any JSON value, verbatim.
	Input jsontext.Value `json:"input,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewHandoff makes a handoff. The agent it goes to is required.
func NewHandoff(h Handoff) (Event, error) { return NewEvent(h) }

// Handoff reads a handoff; ok and err are as for Message.
func (e *Event) Handoff() (h Handoff, ok bool, err error) { return decode[Handoff](e, HandoffMade) }

// EventType is handoff.
func (h Handoff) EventType() Type { return HandoffMade }
func (h Handoff) check() error {
	return firstError(require("to_agent", h.ToAgent), requireExtra(h.Extra))
}
func (h Handoff) needs() []Digest { return nil }

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

// NewEscalationRetried makes an escalation_retried.
func NewEscalationRetried(x Escalation) (Event, error) { return NewEvent(x) }

// Escalation reads an escalation_retried; ok and err are as for Message.
func (e *Event) Escalation() (x Escalation, ok bool, err error) {
	return decode[Escalation](e, EscalationRetried)
}

// EventType is escalation_retried.
func (x Escalation) EventType() Type { return EscalationRetried }
func (x Escalation) check() error {
	return firstError(requireMin("attempt", x.Attempt, 0), requireExtra(x.Extra))
}
func (x Escalation) needs() []Digest { return nil }

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
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewOpLogged makes an op_logged.
func NewOpLogged(o Op) (Event, error) { return NewEvent(o) }

// Op reads an op_logged; ok and err are as for Message.
func (e *Event) Op() (o Op, ok bool, err error) { return decode[Op](e, OpLogged) }

// EventType is op_logged.
func (o Op) EventType() Type { return OpLogged }
func (o Op) check() error    { return requireExtra(o.Extra) }
func (o Op) needs() []Digest { return nil }

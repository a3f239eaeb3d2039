package event

// Outline is the structure of a message: its role, the tool calls that it makes, and
// the calls that it answers. A redacted message keeps its outline.
type Outline struct {
	Role Role
	// Calls are the tool calls the message makes, Results the ids of the calls it
	// answers, both in order.
	Calls   []OutlineCall
	Results []string
	// Parts is how many parts the message has; 0 if it was redacted.
	Parts int
	// Context says that a program wrote the message in the user's name; see Event.IsContext.
	Context bool
}

// OutlineCall is a tool call. Name is empty if the message was redacted.
type OutlineCall struct{ ID, Name string }

// OutlineOf reads the outline of a message_added event, or of a lost event that
// replaces one. ok is false for any other event. A payload of another shape is
// ErrInvalidPayload.
func OutlineOf(e *Event) (o Outline, ok bool, err error) {
	if e == nil {
		return o, false, nilArgument("the event of OutlineOf")
	}
	if e.Type.Name() == Lost {
		e = e.Effective()
	}
	if e.Type.Name() != MessageAdded {
		return o, false, nil
	}
	if m := remembered[Message](e.memo, e.Data); m != nil && !e.Redacted() {
		o = m.Outline()
		o.Context = m.Role == User && e.IsContext()
		return o, true, nil
	}
	m, err := DecodeKept[struct {
		Role    Role     `json:"role"`
		Calls   []string `json:"calls"`   // of a redacted message
		Results []string `json:"results"` // of a redacted message
		Parts   []struct {
			Type   PartType `json:"type"`
			CallID string   `json:"call_id"`
			Name   string   `json:"name"`
		} `json:"parts"`
	}](e)
	if err != nil {
		return o, true, err
	}
	o = Outline{Role: m.Role, Results: m.Results, Parts: len(m.Parts), Context: m.Role == User && e.IsContext()}
	for _, id := range m.Calls {
		o.Calls = append(o.Calls, OutlineCall{ID: id})
	}
	for _, p := range m.Parts {
		switch p.Type {
		case ToolCallPart:
			o.Calls = append(o.Calls, OutlineCall{p.CallID, p.Name})
		case ToolResultPart:
			o.Results = append(o.Results, p.CallID)
		}
	}
	return o, true, nil
}

// Outline is the outline of a message, without Context.
func (m Message) Outline() Outline {
	o := Outline{Role: m.Role, Parts: len(m.Parts)}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Type {
		case ToolCallPart:
			o.Calls = append(o.Calls, OutlineCall{p.CallID, p.Name})
		case ToolResultPart:
			o.Results = append(o.Results, p.CallID)
		}
	}
	return o
}

func (o *Outline) callIDs() []string {
	ids := make([]string, len(o.Calls))
	for i := range o.Calls {
		ids[i] = o.Calls[i].ID
	}
	return ids
}

// Asks reports whether the message is one of the user's that says something
// besides giving results, and that no program wrote in the user's name.
func (o *Outline) Asks() bool {
	return o.Role == User && !o.Context && (len(o.Results) == 0 || o.Parts > len(o.Results))
}

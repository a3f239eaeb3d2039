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
	// Context says that a program wrote the message in the user's name (ContextKey).
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

// PendingCalls is the set of tool calls on a path that have no result yet. Feed it
// the messages of the path forward (Add), and, if it does not know a call, older
// messages backward (AddOlder). The newest message that names a call decides.
type PendingCalls struct {
	pending map[string]struct{}
	// answered are calls that have a result, while older messages may be added.
	answered map[string]struct{}
	// Complete says that no older message will be added: answered calls need not be
	// remembered.
	Complete bool
}

// Has reports whether a call is pending, as far as the added messages tell.
func (c *PendingCalls) Has(id string) bool {
	_, ok := c.pending[id]
	return ok
}

// Knows reports whether an added message decides on a call.
func (c *PendingCalls) Knows(id string) bool {
	_, answered := c.answered[id]
	return answered || c.Has(id)
}

// Open adds a call.
func (c *PendingCalls) Open(id string) {
	delete(c.answered, id)
	insert(&c.pending, id)
}

// Answer ends a call.
func (c *PendingCalls) Answer(id string) {
	delete(c.pending, id)
	if !c.Complete {
		insert(&c.answered, id)
	}
}

// AddOlder adds the message before all messages that were added.
func (c *PendingCalls) AddOlder(o *Outline) {
	if o == nil {
		return
	}
	for _, call := range o.Calls {
		if !c.Knows(call.ID) {
			insert(&c.pending, call.ID)
		}
	}
	for _, id := range o.Results {
		if !c.Knows(id) {
			insert(&c.answered, id)
		}
	}
}

func insert(set *map[string]struct{}, id string) {
	if *set == nil {
		*set = map[string]struct{}{}
	}
	(*set)[id] = struct{}{}
}

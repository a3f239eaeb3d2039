package openai

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/internal/render"
)

// Texts for missing or moved parts of the conversation.
const (
	missingResult = "[No result: the call was interrupted.]"
	toolMedia     = "[What the tools showed:]"
)

// calls pairs the calls of a message with the results after it.
type calls struct {
	ids render.CallIDs
	// open are the calls of the last message with calls, until a message other than
	// a result follows.
	open []call
}

// call is a tool call; result is nil until the result arrives.
type call struct {
	logID, id, name, arguments string
	result                     any
}

func newCalls(maxID int) calls { return calls{ids: render.CallIDs{Limit: maxID}} }

// next names a call of the current message.
func (c *calls) next(p *event.Part) call {
	return call{
		logID: p.CallID, id: c.ids.Next(p.CallID), name: modelapi.OpenAIToolName(p.Name),
		arguments: string(render.Arguments(p.Arguments)),
	}
}

// openCall returns the first call with an id and without a result; nil if there is
// none.
func (c *calls) openCall(logID string) *call {
	for i := range c.open {
		if o := &c.open[i]; o.logID == logID && o.result == nil {
			return o
		}
	}
	return nil
}

// roleOf returns the role of a message that is not from the assistant. Parts next to
// results belong to the user.
func roleOf(m *event.Message) event.Role {
	if m.Role == event.System || m.Role == event.Developer {
		return m.Role
	}
	return event.User
}

// renderer builds a request of one shape.
type renderer interface {
	// addResult adds a result.
	addResult(p *event.Part) error
	// part renders any other part, and images and documents only with bodies; nil if
	// the part has no content.
	part(p *event.Part, bodies bool) (any, error)
}

// renderOther renders a message that is not from the assistant. Results are added to
// the renderer, other parts are returned.
func renderOther(m *event.Message, r renderer) (event.Role, []any, error) {
	role := roleOf(m)
	parts, err := renderAll(m.Parts, func(p *event.Part) (any, error) {
		if p.Type == event.ToolResultPart {
			return nil, r.addResult(p)
		}
		return r.part(p, role == event.User)
	})
	return role, parts, err
}

// renderAll renders each part, and leaves out parts without content.
func renderAll(parts []event.Part, one func(*event.Part) (any, error)) (list []any, err error) {
	for i := range parts {
		value, err := one(&parts[i])
		if err != nil {
			return nil, err
		}
		if value != nil {
			list = append(list, value)
		}
	}
	return list, nil
}

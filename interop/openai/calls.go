package openai

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/render"
)

// Texts that stand where the log has nothing.
const (
	unanswered = "[No result: the call was interrupted.]"
	showing    = "[What the tools showed:]"
)

// calls pairs the calls of a message with the results behind it.
type calls struct {
	ids render.CallIDs
	// open are those of the newest message that makes any, until another message
	// follows the results.
	open []call
}

// call is a call of a tool; result is nil until there is one.
type call struct {
	logID, id, name, arguments string
	result                     any
}

func newCalls(maxID int) calls { return calls{ids: render.CallIDs{Limit: maxID}} }

// next names a call of the message that is being rendered.
func (c *calls) next(p *event.Part) call {
	return call{
		logID: p.CallID, id: c.ids.Next(p.CallID), name: render.Name(p.Name, maxName),
		arguments: string(render.Arguments(p.Arguments)),
	}
}

// waiting is the first open call with an id that has no result; nil if there
// is none.
func (c *calls) waiting(logID string) *call {
	for i := range c.open {
		if o := &c.open[i]; o.logID == logID && o.result == nil {
			return o
		}
	}
	return nil
}

// speaker is whose a message is that is not the assistant's. What came along
// with results is the user's.
func speaker(m *event.Message) event.Role {
	if m.Role == event.System || m.Role == event.Developer {
		return m.Role
	}
	return event.User
}

// renderer makes a request of one shape.
type renderer interface {
	// answer takes in a result.
	answer(p *event.Part) error
	// part renders any other part, bodies only where they may stand; nil where
	// nothing is said.
	part(p *event.Part, bodies bool) (any, error)
}

// rest renders what a message says that is not the assistant's, but for its
// results, which become answers.
func rest(m *event.Message, r renderer) (event.Role, []any, error) {
	role := speaker(m)
	parts, err := rendered(m.Parts, func(p *event.Part) (any, error) {
		if p.Type == event.ToolResultPart {
			return nil, r.answer(p)
		}
		return r.part(p, role == event.User)
	})
	return role, parts, err
}

// rendered are the parts of which one makes anything.
func rendered(parts []event.Part, one func(*event.Part) (any, error)) (list []any, err error) {
	for i := range parts {
		made, err := one(&parts[i])
		if err != nil {
			return nil, err
		}
		if made != nil {
			list = append(list, made)
		}
	}
	return list, nil
}

package openai

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/rawjson"
)

// toolCall is a call that grows.
type toolCall struct {
	index, id string
	// holder is the member with name and arguments: "function", or "custom" for a tool
	// whose input is a text.
	holder    string
	name      jsontext.Value
	arguments bytes.Buffer
	// rest and inner are the other members of the call and of the holder.
	rest, inner []rawjson.Member
}

// argumentsName are the names of the member that grows, by holder.
var argumentsName = map[string]string{"function": "arguments", "custom": "input"}

// addCalls adds the pieces of calls in an array.
func (s *stream) addCalls(list jsontext.Value) error {
	pieces, err := rawjson.Elements(list)
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		members, err := rawjson.Members(piece)
		if err != nil {
			return err
		}
		if err := s.addCall(members); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) addCall(members []rawjson.Member) error {
	c := s.callOf(members)
	piece := ""
	for _, m := range members {
		switch {
		case m.Name == "index" || m.Name == "id":
		case argumentsName[m.Name] != "" && m.Value.Kind() == '{':
			inner, err := rawjson.Members(m.Value)
			if err != nil {
				return err
			}
			c.holder = m.Name
			piece += c.addInner(inner)
		default:
			c.rest = httpmodel.Merge(c.rest, m)
		}
	}
	s.emitPiece(c, event.ToolCallPart, piece)
	return nil
}

// callOf returns the call that a piece belongs to, or a new one. The index of a piece
// decides. Some servers send no index, or 0 for every call: there the id decides.
func (s *stream) callOf(members []rawjson.Member) *toolCall {
	index, _ := rawjson.Value(members, "index")
	raw, _ := rawjson.Value(members, "id")
	id, _ := rawjson.Text(raw)
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := s.calls[i]
		sameIndex := index == nil || c.index == string(index)
		sameID := id == "" || c.id == "" || c.id == id
		if sameIndex && sameID && (index != nil || id == "" || c.id == id) {
			if c.id == "" {
				c.id = id
			}
			return c
		}
	}
	c := &toolCall{index: string(index), id: id}
	s.calls = append(s.calls, c)
	return c
}

// addInner adds name and arguments, and returns the piece of the arguments.
func (c *toolCall) addInner(inner []rawjson.Member) (piece string) {
	for _, m := range inner {
		switch {
		case m.Name == "name" && m.Value.Kind() == '"':
			if string(m.Value) != `""` {
				c.name = m.Value // some servers repeat the name in every piece
			}
		case m.Name == argumentsName[c.holder] && m.Value.Kind() != 'n':
			text, ok := rawjson.Text(m.Value)
			if !ok {
				text = string(m.Value) // an object, from some servers
			}
			c.arguments.WriteString(text)
			piece += text
		default:
			c.inner = httpmodel.Merge(c.inner, m)
		}
	}
	return piece
}

// json is the call as the API gives it without streaming.
func (c *toolCall) json() jsontext.Value {
	call, inner := httpmodel.Body(c.rest), httpmodel.Body(c.inner)
	if c.id != "" {
		call.Set("id", c.id)
	}
	if c.name != nil {
		inner.Set("name", c.name)
	}
	if c.holder != "" {
		inner.Set(argumentsName[c.holder], c.arguments.String())
		call.Set(c.holder, inner.JSON())
	}
	return call.JSON()
}

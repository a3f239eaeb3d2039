package anthropic

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow/internal/httpmodel"
	"github.com/convlog/convlog/internal/rawjson"
)

// block is a content block that grows.
type block struct {
	kind    string
	members []rawjson.Member
	texts   []*text
}

// text is a member of a block that grows.
type text struct {
	name string
	strings.Builder
}

// inputName is the member of a delta with a piece of the input of a call, which is JSON
// when all pieces are joined.
const inputName = "partial_json"

// grows reports whether a text in the first event of a block may get more pieces.
func grows(name string) bool { return name == "text" || name == "thinking" || name == "signature" }

// write adds a piece to a text.
func (b *block) write(name, piece string) {
	i := slices.IndexFunc(b.texts, func(t *text) bool { return t.name == name })
	if i < 0 {
		i = len(b.texts)
		b.texts = append(b.texts, &text{name: name})
	}
	b.texts[i].WriteString(piece)
}

// add adds any other member of a delta.
func (b *block) add(m rawjson.Member) { b.members = httpmodel.Merge(b.members, m) }

// partType is the type of the part that a piece of a text is shown as; empty if it is not
// shown.
func (b *block) partType(name string) event.PartType {
	switch b.kind + " " + name {
	case "text text":
		return event.TextPart
	case "thinking thinking":
		return event.ReasoningPart
	case "tool_use " + inputName:
		return event.ToolCallPart
	case "server_tool_use " + inputName:
		return event.ServerToolCallPart
	}
	return ""
}

// json is the block as the API gives it without streaming. An input that is no JSON,
// because the answer was too long, becomes a JSON string.
func (b *block) json() jsontext.Value {
	all := httpmodel.Body(b.members)
	for _, t := range b.texts {
		if t.name != inputName {
			all.Set(t.name, t.String())
		} else if input := jsontext.Value(t.String()); input.IsValid() {
			all.Set("input", input)
		} else {
			all.Set("input", t.String())
		}
	}
	return all.JSON()
}

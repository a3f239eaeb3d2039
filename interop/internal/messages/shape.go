package messages

import (
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// Shape is the API whose shape a list of messages has.
type Shape string

// The shapes, by the names of their formats in the log and in exports.
const (
	Chat      Shape = "openai"
	Responses Shape = "responses"
	Anthropic Shape = "anthropic"
)

// provider is the provider with the shape; empty for Chat Completions, which many
// providers have.
func (s Shape) provider() string {
	switch s {
	case Responses:
		return "openai"
	case Anthropic:
		return "anthropic"
	}
	return ""
}

// ShapeOf is the shape of the first message with a member or block that only one
// shape has; Chat Completions if there is none. The settings are the members around the
// list; they may be nil.
func ShapeOf(elements iter.Seq[jsontext.Value], settings jsontext.Value) Shape {
	for v := range elements {
		if s := elementShape(v); s != "" {
			return s
		}
	}
	o, err := parts.Open(settings)
	if err == nil && (o.Has("anthropic_version") || o.Has("stop_sequences")) {
		return Anthropic
	}
	return Chat
}

// itemTypes are the types of items without the suffix _call or _call_output.
var itemTypes = []string{"reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}

func isItemType(kind string) bool {
	return slices.Contains(itemTypes, kind) || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

func elementShape(v jsontext.Value) Shape {
	o, err := parts.Open(v)
	if err != nil {
		return ""
	}
	role := o.PeekText("role")
	kind := o.PeekText("type")
	switch {
	case role == "" && isItemType(kind):
		return Responses
	case role == "tool", role == "function", o.Has("tool_calls"), o.Has("function_call"), o.Has("refusal"):
		return Chat
	case o.Has("stop_reason"):
		return Anthropic
	}
	blocks, err := rawjson.Elements(o.Peek("content"))
	for i := 0; err == nil && i < len(blocks); i++ {
		if s := blockShape(blocks[i]); s != "" {
			return s
		}
	}
	if kind == "message" && len(blocks) > 0 {
		return Responses
	}
	return ""
}

// blockShape is the only shape with such a block; empty if several have it.
func blockShape(v jsontext.Value) Shape {
	o, err := parts.Open(v)
	if err != nil {
		return ""
	}
	switch kind := o.PeekText("type"); kind {
	case "image_url", "input_audio", "file":
		return Chat
	case "input_text", "output_text", "input_image", "input_file":
		return Responses
	case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use", "search_result":
		return Anthropic
	}
	if o.Has("cache_control") {
		return Anthropic
	}
	return ""
}

// IsMessage reports whether a value is a message or an item.
func IsMessage(v jsontext.Value) bool {
	o, err := parts.Open(v)
	if err != nil {
		return false
	}
	role := o.PeekText("role")
	kind := o.PeekText("type")
	return IsRole(role) && (o.Has("content") || o.Has("tool_calls") || o.Has("function_call") || o.Has("refusal")) ||
		role == "" && isItemType(kind) && (o.Has("call_id") || o.Has("id") || o.Has("summary") || o.Has("encrypted_content"))
}

// IsRole reports whether messages can have the role.
func IsRole(role string) bool {
	switch event.Role(role) {
	case event.System, event.Developer, event.User, event.Assistant, event.Tool:
		return true
	}
	return role == LegacyTool
}

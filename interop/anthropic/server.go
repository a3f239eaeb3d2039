package anthropic

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/render"
)

// serverCall is a call of a tool that the provider runs itself.
type serverCall toolUse

// serverBlocks renders a call or a result of the provider's tools. The part must come
// from a message of this provider.
func serverBlocks(p *event.Part) []any {
	switch p.Type {
	case event.ServerToolCallPart:
		if slices.Contains(modelapi.ServerTools, p.Name) && modelapi.IsServerID(p.CallID) {
			return []any{serverCall{"server_tool_use", p.CallID, p.Name, render.Arguments(p.Arguments)}}
		}
	case event.ServerToolResultPart:
		if content := serverContent(p); content != nil && slices.Contains(modelapi.ServerTools, p.Name) && modelapi.IsServerID(p.CallID) {
			return []any{serverResult{p.Name + modelapi.ResultSuffix, p.CallID, content}}
		}
	case event.OpaquePart:
		return opaqueServerResult(p.Value)
	}
	return nil
}

// opaqueServerResult renders a result that is stored in the format of the provider.
func opaqueServerResult(v jsontext.Value) []any {
	var r serverResult
	if v.Kind() != '{' || json.Unmarshal(v, &r) != nil {
		return nil
	}
	tool, ok := strings.CutSuffix(r.Type, modelapi.ResultSuffix)
	if !ok || !slices.Contains(modelapi.ServerTools, tool) || !modelapi.IsServerID(r.ToolUseID) || !isServerContent(tool, r.Content) {
		return nil
	}
	return []any{r}
}

// serverContent returns the content of a server result, verbatim; nil if it has other
// content.
func serverContent(p *event.Part) jsontext.Value {
	if len(p.Content) == 1 && p.Content[0].Type == event.OpaquePart && isServerContent(p.Name, p.Content[0].Value) {
		return p.Content[0].Value
	}
	var values []jsontext.Value
	for i := range p.Content {
		if p.Content[i].Type != event.OpaquePart {
			return nil
		}
		values = append(values, p.Content[i].Value)
	}
	list := rawjson.Array(values)
	if !isServerContent(p.Name, list) {
		return nil
	}
	return list
}

// isServerContent reports whether v is valid content for a result of the tool. A web
// search gives a list of typed objects or an error, any other tool gives a typed
// object.
func isServerContent(tool string, v jsontext.Value) bool {
	if tool != modelapi.WebSearch {
		return kindOf(v) != ""
	}
	found, err := rawjson.Elements(v)
	if err != nil {
		return strings.HasSuffix(kindOf(v), "_error")
	}
	return !slices.ContainsFunc(found, func(v jsontext.Value) bool { return kindOf(v) == "" })
}

// kindOf returns the type of an object; empty if there is none.
func kindOf(v jsontext.Value) string {
	var o struct {
		Type jsontext.Value `json:"type"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &o) != nil {
		return ""
	}
	kind, _ := rawjson.Text(o.Type)
	return kind
}

// dropUnpaired removes calls of the provider's tools without a result in the same
// message, results without a call, and calls with a duplicate id.
func (b *builder) dropUnpaired(blocks []any) []any {
	open := map[string]int{}
	for i, block := range blocks {
		switch x := block.(type) {
		case serverCall:
			if _, again := open[x.ID]; again || b.ids.Taken(x.ID) {
				blocks[i] = nil
				continue
			}
			open[x.ID] = i
		case serverResult:
			if at, calling := open[x.ToolUseID]; !calling || blocks[at].(serverCall).Name+modelapi.ResultSuffix != x.Type {
				blocks[i] = nil
				continue
			}
			delete(open, x.ToolUseID)
			b.ids.Take(x.ToolUseID)
		}
	}
	for _, i := range open {
		blocks[i] = nil
	}
	return slices.DeleteFunc(blocks, func(x any) bool { return x == nil })
}

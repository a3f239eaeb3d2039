package anthropic

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/render"
)

// serverCall is a call of a tool that the provider runs itself.
type serverCall toolUse

// serverTools are those whose calls and results a request may hold.
var serverTools = []string{webSearch, "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution"}

const (
	webSearch    = "web_search"
	resultSuffix = "_tool_result"
)

// served renders calls of the provider's own tools, and their results. It was
// the provider's own message that had them.
func served(p *event.Part) []any {
	switch p.Type {
	case event.ServerToolCallPart:
		if slices.Contains(serverTools, p.Name) && isServerID(p.CallID) {
			return []any{serverCall{"server_tool_use", p.CallID, p.Name, render.Arguments(p.Arguments)}}
		}
	case event.ServerToolResultPart:
		if content := verbatim(p); content != nil && slices.Contains(serverTools, p.Name) && isServerID(p.CallID) {
			return []any{serverResult{p.Name + resultSuffix, p.CallID, content}}
		}
	case event.OpaquePart:
		return servedOpaque(p.Value)
	}
	return nil
}

// servedOpaque renders a result that the log keeps as the provider sent it.
func servedOpaque(v jsontext.Value) []any {
	var r serverResult
	if v.Kind() != '{' || json.Unmarshal(v, &r) != nil {
		return nil
	}
	tool, ok := strings.CutSuffix(r.Type, resultSuffix)
	if !ok || !slices.Contains(serverTools, tool) || !isServerID(r.ToolUseID) || !gives(tool, r.Content) {
		return nil
	}
	return []any{r}
}

// verbatim is the content of a server's result: what only the provider
// understands, as it sent it. It is nil where the content is something else.
func verbatim(p *event.Part) jsontext.Value {
	if len(p.Content) == 1 && p.Content[0].Type == event.OpaquePart && gives(p.Name, p.Content[0].Value) {
		return p.Content[0].Value
	}
	list := jsontext.Value(`[`)
	for i := range p.Content {
		if p.Content[i].Type != event.OpaquePart {
			return nil
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, p.Content[i].Value...)
	}
	if list = append(list, ']'); !gives(p.Name, list) {
		return nil
	}
	return list
}

// gives reports whether a value is what a tool of the provider gives: a search of
// the web a list, all others, and errors, an object, each with its type.
func gives(tool string, v jsontext.Value) bool {
	if tool != webSearch {
		return kindOf(v) != ""
	}
	found, err := rawjson.Elements(v)
	if err != nil {
		return strings.HasSuffix(kindOf(v), "_error")
	}
	return !slices.ContainsFunc(found, func(v jsontext.Value) bool { return kindOf(v) == "" })
}

// kindOf is the type of an object; empty where there is none.
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

func isServerID(id string) bool {
	return strings.HasPrefix(id, "srvtoolu_") && render.IsName(id, maxID)
}

// settled leaves out calls of the provider's own tools without a result in the
// same message, results without a call, and calls whose id is taken.
func (b *builder) settled(blocks []any) []any {
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
			if at, asked := open[x.ToolUseID]; !asked || blocks[at].(serverCall).Name+resultSuffix != x.Type {
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

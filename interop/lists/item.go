package lists

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
)

// item reads an item of Responses that has no role.
func (r *reader) item(o *parts.Members, kind string, v jsontext.Value) (m event.Message, ok bool, err error) {
	if strings.HasSuffix(kind, "_call") && !o.Has("call_id") || kind == "mcp_list_tools" {
		// The provider's own tools: what they did stays as it is.
		m.Role, m.Parts = event.Assistant, []event.Part{event.Opaque(kind, v)}
		*o = parts.Members{}
		return m, true, nil
	}
	role, p, ok, err := r.Item(o)
	m.Role, m.Parts = role, []event.Part{p}
	return m, ok, err
}

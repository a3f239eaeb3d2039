package messages

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
)

// item parses an item of Responses without a role.
func (r *Reader) item(o *parts.Members, kind string, v jsontext.Value) (m event.Message, ok bool, err error) {
	if strings.HasSuffix(kind, "_call") && !o.Has("call_id") || kind == "mcp_list_tools" {
		// A call of a server tool stays as it is.
		m.Role, m.Parts = event.Assistant, []event.Part{event.Opaque(kind, v)}
		*o = parts.Members{}
		return m, true, nil
	}
	role, p, ok, err := r.parts.Item(o)
	m.Role, m.Parts = role, []event.Part{p}
	return m, ok, err
}

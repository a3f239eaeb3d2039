package sessions

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
)

// reading checks how much of the messages of a session the format has understood. A
// program can change its format: an importer would then give messages without content, and
// calls without results.
type reading struct {
	roles map[event.Role]*roleReading
	// calls are the calls without a result, by id.
	calls map[string]*callReading
	// done are the ids of calls with a result.
	done map[records.ID]bool
	// stored says that the log has the session.
	stored bool
	raw    *unreadRecord // the first record that should have become a message
	// unread are the newest records with parts that are not understood; their calls can be
	// among them.
	unread      []unreadRecord
	unreadBytes int
	// failed is the first call or result that is not understood; nil if there is none.
	failed *unreadRecord
}

// roleReading counts the messages of a role.
type roleReading struct {
	understood bool          // a part of a message is understood
	unread     *unreadRecord // the first message without an understood part
}

// callReading is a call without a result.
type callReading struct {
	unread *unreadRecord // the first later record that names the call in a part that is not understood
}

// unreadRecord is a record that is not understood, or not all of it.
type unreadRecord struct {
	data   []byte
	origin records.Origin
	reason string
}

// The records that unread keeps at most.
const (
	mostUnread      = 64
	mostUnreadBytes = 1 << 20
)

// outline is the part of a message that reading needs.
type outline struct {
	Role  event.Role     `json:"role"`
	Parts []partOutline  `json:"parts"`
	Extra jsontext.Value `json:"extra"`
}

type partOutline struct {
	Type   event.PartType `json:"type"`
	CallID string         `json:"call_id"`
	Kind   string         `json:"kind"`
	Value  jsontext.Value `json:"value"`
	Extra  jsontext.Value `json:"extra"`
}

// isKnown reports whether a format knows a kind of opaque parts: the part is a body or an
// address, or a call of a tool that the provider runs.
func isKnown(kind string) bool {
	switch kind {
	case "image", "document", "image_url", "input_image", "input_audio", "file", "input_file", "inlineData", "fileData",
		"item_reference", "mcp_list_tools":
		return true
	}
	return strings.HasSuffix(kind, "_call") && kind != "tool_call" && kind != "function_call"
}

func newReading() reading {
	return reading{roles: map[event.Role]*roleReading{}, calls: map[string]*callReading{}, done: map[records.ID]bool{}}
}

// note notes an event of the session. stored says that the log has it already: then only
// its calls and results count. isMessage says that a raw event is of a record that the
// format should have read as a message.
func (r *reading) note(e *event.Event, stored bool, isMessage func(event.Type) bool) error {
	r.stored = r.stored || stored
	if e.Type.Name() != event.MessageAdded {
		if !stored && isMessage != nil && isMessage(e.Type) {
			r.notUnderstood(e, e.Data)
			if r.raw == nil {
				r.raw = &unreadRecord{origin: originOf(e), reason: "no record is understood as a message"}
			}
		}
		return nil
	}
	if e.Redacted() {
		shape, err := KeptShape(e)
		for _, id := range shape.Results {
			r.answer(id, nil)
		}
		return err
	}
	var m outline
	if err := rawjson.Unmarshal(e.Data, &m, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil //nolint:nilerr // an append checks the message
	}
	r.message(e, &m, stored)
	return nil
}

// message notes a message.
func (r *reading) message(e *event.Event, m *outline, stored bool) {
	understood, opaque := false, false
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case event.ToolCallPart:
			if !r.done[records.IDOf(p.CallID)] {
				r.calls[p.CallID] = &callReading{}
			}
			if !stored && names(p.Extra, p.CallID) {
				r.notUnderstood(e, p.Extra)
			}
		case event.ToolResultPart:
			r.answer(p.CallID, e)
		case event.OpaquePart:
			if !stored {
				r.notUnderstood(e, p.Value)
			}
			if opaque = true; !isKnown(p.Kind) {
				continue
			}
		}
		understood = true
	}
	if m.Role == event.Assistant && m.Extra != nil && !stored {
		r.keep(unreadRecord{data: m.Extra, origin: originOf(e)})
	}
	role := r.roles[m.Role]
	if role == nil {
		role = &roleReading{}
		r.roles[m.Role] = role
	}
	role.understood = role.understood || understood
	if !understood && opaque && role.unread == nil && !stored {
		role.unread = &unreadRecord{origin: originOf(e)}
	}
}

// answer notes the result of a call. e is nil if the result is redacted.
func (r *reading) answer(id string, e *event.Event) {
	_, known := r.calls[id]
	delete(r.calls, id)
	short := records.IDOf(id)
	done := r.done[short]
	if r.done[short] = true; known || done || e == nil || r.failed != nil {
		return
	}
	for i := range r.unread {
		if u := &r.unread[i]; names(u.data, id) {
			r.failed = &unreadRecord{origin: u.origin, reason: fmt.Sprintf("the call %q has a result, and is not understood", id)}
			return
		}
	}
}

// notUnderstood notes data that the format did not understand.
func (r *reading) notUnderstood(e *event.Event, data []byte) {
	u := unreadRecord{data: data, origin: originOf(e)}
	for id, c := range r.calls {
		if c.unread == nil && names(data, id) {
			c.unread = &unreadRecord{origin: u.origin, reason: fmt.Sprintf("the result of the call %q is not understood", id)}
		}
	}
	r.keep(u)
}

// keep keeps a record in unread.
func (r *reading) keep(u unreadRecord) {
	r.unread = append(r.unread, u)
	r.unreadBytes += len(u.data)
	for len(r.unread) > mostUnread || r.unreadBytes > mostUnreadBytes && len(r.unread) > 1 {
		r.unreadBytes -= len(r.unread[0].data)
		r.unread = slices.Delete(r.unread, 0, 1)
	}
}

// names reports whether data have the string.
func names(data []byte, id string) bool {
	return id != "" && bytes.Contains(data, []byte(`"`+id+`"`))
}

// check returns the reason to refuse the events noted so far; nil if there is none.
func (r *reading) check(session string) error {
	first := r.failed
	for _, c := range r.calls {
		first = earlier(first, c.unread)
	}
	if first == nil && !r.stored && len(r.roles) == 0 && r.raw != nil {
		first = r.raw
	}
	for name, role := range r.roles {
		if role.unread != nil && !role.understood {
			u := *role.unread
			u.reason = fmt.Sprintf("no part of the messages of role %q is understood", name)
			first = earlier(first, &u)
		}
	}
	if first == nil {
		return nil
	}
	o := &first.origin
	return &records.UnreadError{Session: session, Source: o.Source, Line: o.Line, Offset: o.Offset, Reason: first.reason}
}

// earlier is the record that comes first in its file.
func earlier(a, b *unreadRecord) *unreadRecord {
	if a == nil || b != nil && b.origin.Offset < a.origin.Offset {
		return b
	}
	return a
}

// originOf is the record of an event.
func originOf(e *event.Event) (o records.Origin) {
	value, _ := e.MetadataValue(records.OriginKey)
	_ = json.Unmarshal(value, &o) // the import has written it
	return o
}

package claude

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// converter converts records to messages.
type converter struct {
	ctx context.Context
	// log stores the bodies of images and documents; nil stores none.
	log *eventlog.Log
	// calls are the names of tools, by call id.
	calls map[string]string
}

// content converts the content of a message or tool result.
func (c *converter) content(v jsontext.Value) ([]event.Part, error) {
	r := parts.Reader{Names: c.calls}
	if c.log != nil {
		r.Put = parts.PutBlob(c.ctx, c.log)
	}
	return r.Content(v)
}

// message converts a user or assistant record, or a queued message. Its extra is the
// record without the converted members. ok is false if the record holds no message.
func (c *converter) message(f *facts) (m event.Message, ok bool, err error) {
	if f.IsQueued {
		return c.queued(f)
	}
	if f.Message.Kind() != '{' {
		return m, false, nil
	}
	m.Role = event.Role(f.Type)
	rest := f.message[:0:0]
	for _, member := range f.message {
		converted, err := c.set(&m, member)
		if err != nil {
			return m, false, err
		}
		if !converted {
			rest = append(rest, member)
		}
	}
	if !slices.ContainsFunc(f.message, isContent) {
		m.Parts, rest = []event.Part{event.Opaque("message", rawjson.NonEmpty(rest))}, nil
	}
	if len(m.ToolResults()) > 0 && m.Role == event.User {
		m.Role = event.Tool
	}
	if m.Role == event.Assistant {
		m.Provider, m.Group = provider, m.ResponseID
	}
	m.Extra = f.extra("message", rawjson.NonEmpty(rest))
	return m, true, nil
}

func isContent(m rawjson.Member) bool { return m.Name == "content" }

// queued converts a queued message. ok is false if the record has none.
func (c *converter) queued(f *facts) (m event.Message, ok bool, err error) {
	o, err := parts.Open(f.Attachment)
	if err != nil {
		return m, false, nil
	}
	prompt := o.Take("prompt")
	if prompt == nil {
		return m, false, nil
	}
	m.Role = event.User
	if m.Parts, err = c.content(prompt); err != nil {
		return m, false, err
	}
	m.Extra = f.extra("attachment", o.Rest())
	return m, true, nil
}

// set converts one member of the provider's message. converted is false if the member
// must stay in the extra.
func (c *converter) set(m *event.Message, member rawjson.Member) (converted bool, err error) {
	switch member.Name {
	case "role":
		role, _ := rawjson.Text(member.Value)
		return role == string(m.Role), nil
	case "model":
		m.Model, converted = rawjson.Text(member.Value)
	case "id":
		m.ResponseID, converted = rawjson.Text(member.Value)
	case "stop_reason":
		m.StopReason, converted = rawjson.Text(member.Value)
	case "usage":
		m.Usage, converted = usageOf(member.Value)
	case "content":
		m.Parts, err = c.content(member.Value)
		return err == nil, err
	}
	return converted, nil
}

// extra is the record with rest in place of a member.
func (f *facts) extra(name string, rest jsontext.Value) jsontext.Value {
	members := make([]rawjson.Member, 0, len(f.members))
	for _, member := range f.members {
		if member.Name == name {
			member.Value = rest
		}
		if member.Value != nil {
			members = append(members, member)
		}
	}
	return rawjson.NonEmpty(members)
}

// usageOf reads token counts; ok is false if a count is invalid.
func usageOf(v jsontext.Value) (u event.Usage, ok bool) {
	members, err := rawjson.Members(v)
	if err != nil {
		return u, false
	}
	rest := members[:0]
	for _, m := range members {
		field := countOf(&u, m.Name)
		if field == nil || m.Value.Kind() != '0' {
			rest = append(rest, m)
		} else if *field, err = strconv.ParseInt(string(m.Value), 10, 64); err != nil || *field < 0 {
			return event.Usage{}, false
		}
	}
	u.Extra = rawjson.NonEmpty(rest)
	return u, true
}

// countOf is the counter for a member; nil if there is none.
func countOf(u *event.Usage, name string) *int64 {
	switch name {
	case "input_tokens":
		return &u.InputTokens
	case "output_tokens":
		return &u.OutputTokens
	case "cache_read_input_tokens":
		return &u.CacheReadTokens
	case "cache_creation_input_tokens":
		return &u.CacheWriteTokens
	}
	return nil
}

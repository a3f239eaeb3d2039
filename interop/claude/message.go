package claude

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// converter turns the messages of records into messages of the log.
type converter struct {
	ctx context.Context
	log *eventlog.Log
	// calls are the names of the tools called so far, by call id.
	calls map[string]string
}

// content converts what a message says.
func (c *converter) content(v jsontext.Value) ([]eventlog.Part, error) {
	r := parts.Reader{Names: c.calls, Put: parts.Keep(c.ctx, c.log)}
	return r.Content(v)
}

// message converts a user or assistant record. What the log's message has no
// member for stays in its extra: the record without what was converted. ok is
// false when the record holds no message.
func (c *converter) message(f *facts, record jsontext.Value) (m eventlog.Message, ok bool, err error) {
	inner, err := interop.Members(f.Message)
	if err != nil || len(f.Message) == 0 {
		return m, false, nil
	}
	m.Role = eventlog.Role(f.Type)
	rest := inner[:0:0]
	for _, member := range inner {
		taken, err := c.take(&m, member)
		if err != nil {
			return m, false, err
		}
		if !taken {
			rest = append(rest, member)
		}
	}
	if len(m.ToolResults()) > 0 && m.Role == eventlog.User {
		m.Role = eventlog.Tool
	}
	if m.Role == eventlog.Assistant {
		m.Provider, m.Group = "anthropic", m.ResponseID
	}
	m.Extra, err = extraOf(record, interop.Object(rest))
	return m, err == nil, err
}

// take converts one member of the provider's message.
func (c *converter) take(m *eventlog.Message, member interop.Member) (taken bool, err error) {
	switch member.Name {
	case "role":
		role, _ := interop.Text(member.Value)
		return role == string(m.Role), nil
	case "model":
		m.Model, taken = interop.Text(member.Value)
	case "id":
		m.ResponseID, taken = interop.Text(member.Value)
	case "stop_reason":
		m.StopReason, taken = interop.Text(member.Value)
	case "usage":
		m.Usage, taken = usageOf(member.Value)
	case "content":
		m.Parts, err = c.content(member.Value)
		return err == nil, err
	}
	return taken, nil
}

// extraOf is the record with rest in place of its message.
func extraOf(record, rest jsontext.Value) (jsontext.Value, error) {
	all, err := interop.Members(record)
	if err != nil {
		return nil, fmt.Errorf("split record: %w", err)
	}
	kept := all[:0]
	for _, member := range all {
		if member.Name == "message" {
			member.Value = rest
		}
		if member.Value != nil {
			kept = append(kept, member)
		}
	}
	return interop.Object(kept), nil
}

// usageOf reads token counts; ok is false when they are not what they should be.
func usageOf(v jsontext.Value) (u eventlog.Usage, ok bool) {
	members, err := interop.Members(v)
	if err != nil {
		return u, false
	}
	fields := map[string]*int64{
		"input_tokens": &u.InputTokens, "output_tokens": &u.OutputTokens,
		"cache_read_input_tokens": &u.CacheReadTokens, "cache_creation_input_tokens": &u.CacheWriteTokens,
	}
	rest := members[:0]
	for _, m := range members {
		field := fields[m.Name]
		if field == nil || m.Value.Kind() != '0' {
			rest = append(rest, m)
		} else if json.Unmarshal(m.Value, field) != nil || *field < 0 {
			return eventlog.Usage{}, false
		}
	}
	u.Extra = interop.Object(rest)
	return u, true
}

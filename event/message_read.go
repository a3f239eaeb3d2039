package event

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// unmarshalMessage decodes the payload of a message_added. It is json.Unmarshal, and
// faster for most messages.
func unmarshalMessage(data jsontext.Value, m *Message) error {
	*m = Message{}
	if rawjson.Read(data, func(c rawjson.Cursor) bool { return messageReader{Cursor: c}.message(m) }) {
		return nil
	}
	*m = Message{}
	return rawjson.Unmarshal(data, m)
}

// skimMessage reads a message of compact JSON without its texts: a text that is not empty
// is "…", and values share the bytes of data. The rules of messages hold for it exactly if
// they hold for the message. sure is false if a decoder must read the data.
func skimMessage(data jsontext.Value) (m Message, sure bool) {
	sure = rawjson.ReadCompact(data, func(c rawjson.Cursor) bool { return messageReader{c, true}.message(&m) })
	return m, sure
}

// unmarshal decodes a payload.
func unmarshal(data jsontext.Value, payload any) error {
	if m, ok := payload.(*Message); ok {
		return unmarshalMessage(data, m)
	}
	return rawjson.Unmarshal(data, payload)
}

// messageReader reads messages. Its methods return false for a message that a decoder
// must read.
type messageReader struct {
	rawjson.Cursor
	skim bool // leave out texts
}

func (r messageReader) message(m *Message) bool {
	return r.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "role":
			var role string
			role, ok = r.Word()
			m.Role = Role(role)
		case "provider":
			m.Provider, ok = r.Word()
		case "model":
			m.Model, ok = r.Word()
		case "response_id":
			m.ResponseID, ok = r.text()
		case "stop_reason":
			m.StopReason, ok = r.Word()
		case "group":
			m.Group, ok = r.text()
		case "input_id":
			m.InputID, ok = r.text()
		case "usage":
			ok = r.usage(&m.Usage)
		case "parts":
			m.Parts, ok = r.parts()
		case "extra":
			m.Extra, ok = r.value()
		default:
			_, ok = r.Skip()
		}
		return ok
	})
}

// text reads a string that a reader without texts leaves out.
func (r messageReader) text() (text string, ok bool) {
	if !r.skim {
		return r.string()
	}
	quoted, ok := r.Skip()
	if len(quoted) > len(`""`) {
		text = "…"
	}
	return text, ok && quoted.Kind() == jsontext.KindString
}

func (r messageReader) string() (text string, ok bool) {
	b, ok := r.Text()
	return string(b), ok
}

// value reads a value that is not null.
func (r messageReader) value() (v jsontext.Value, ok bool) {
	v, ok = r.Skip()
	if !r.skim {
		v = v.Clone()
	}
	return v, ok && v.Kind() != jsontext.KindNull
}

func (r messageReader) usage(u *Usage) bool {
	return r.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "input_tokens":
			u.InputTokens, ok = r.Int()
		case "output_tokens":
			u.OutputTokens, ok = r.Int()
		case "cache_read_tokens":
			u.CacheReadTokens, ok = r.Int()
		case "cache_write_tokens":
			u.CacheWriteTokens, ok = r.Int()
		case "reasoning_tokens":
			u.ReasoningTokens, ok = r.Int()
		case "extra":
			u.Extra, ok = r.value()
		default:
			_, ok = r.Skip()
		}
		return ok
	})
}

func (r messageReader) parts() (parts []Part, ok bool) {
	parts = []Part{}
	ok = r.Array(func() bool {
		if len(parts) == 0 {
			parts = make([]Part, 1) // most messages have one
		} else {
			parts = append(parts, Part{})
		}
		return r.part(&parts[len(parts)-1])
	})
	return parts, ok
}

// part reads a part whose first member is a known type.
func (r messageReader) part(p *Part) bool {
	return r.Object(func(name []byte) (ok bool) {
		if p.Type == "" {
			var t string
			t, ok = r.Word()
			p.Type = PartType(t)
			return ok && string(name) == "type" && p.Type.Known()
		}
		switch string(name) {
		case "id":
			p.ID, ok = r.text()
		case "text":
			p.Text, ok = r.text()
		case "signature":
			p.Signature, ok = r.text()
		case "encrypted":
			p.Encrypted, ok = r.text()
		case "media_type":
			p.MediaType, ok = r.Word()
		case "call_id":
			p.CallID, ok = r.string()
		case "name":
			p.Name, ok = r.Word()
		case "arguments":
			p.Arguments, ok = r.value()
		case "content":
			p.Content, ok = r.parts()
		case "is_error":
			p.IsError, ok = r.Bool()
		case "interrupted":
			p.Interrupted, ok = r.Bool()
		case "extra":
			p.Extra, ok = r.value()
		case "redacted", "blob", "url", "data", "kind", "value":
			ok = false // rare
		default:
			_, ok = r.Skip()
		}
		return ok
	}) && p.Type != ""
}

package gemini

import (
	"bytes"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// record is a parsed message, header or change.
type record struct {
	records.Record // its value has no white space; its key is the digest of the value
	id, kind       string
	members        parts.Members
	at             time.Time // time of the previous record if it has none
}

// readRecord parses a record.
func readRecord(rec records.Record) (r record, err error) {
	r.Record = rec
	r.Value = rec.Value.Clone()
	if err := r.Value.Compact(); err != nil {
		return r, err
	}
	r.Key = event.DigestOf(r.Value)
	if r.members, err = parts.Open(r.Value); err != nil {
		return r, err
	}
	r.id, r.kind = r.text("id"), r.text("type")
	r.at = records.Time(r.text("timestamp"), r.text("startTime"))
	return r, nil
}

// text is the value of a string member; empty if there is none.
func (r *record) text(name string) string {
	return r.members.PeekText(name)
}

// isMessage reports whether the record is a message of the user or the model.
func (r *record) isMessage() bool { return r.id != "" && (r.kind == "user" || r.kind == "gemini") }

// begins reports whether a session can begin with the record: it has a message that is no
// context.
func (r *record) begins() bool {
	if r.isMessage() {
		return !r.isContext()
	}
	if r.change() == nil {
		return false
	}
	var c converter
	list, err := c.setting(r)
	return err == nil && list != nil && !list.context
}

// question returns the words of the user that the record begins the session with; empty if
// there are none.
func (r *record) question() (string, error) {
	var c converter
	if r.isMessage() {
		pieces, err := c.pieces(r)
		return questionOf(r, pieces), err
	}
	list, err := c.setting(r)
	if err != nil || list == nil {
		return "", err
	}
	return list.question, nil
}

// isHeader reports whether the record is the header of a session.
func (r *record) isHeader() bool {
	return r.id == "" && r.text("sessionId") != "" && r.members.Has("projectHash")
}

// change is the object in $set; nil if there is none.
func (r *record) change() jsontext.Value {
	if v := r.members.Peek("$set"); v.Kind() == '{' {
		return v
	}
	return nil
}

// typeName is the type of the record.
func (r *record) typeName() string {
	switch {
	case r.kind != "":
		return r.kind
	case r.isHeader():
		return "session"
	case r.members.Has("$set"):
		return "$set"
	case r.members.Has("$rewindTo"):
		return "$rewindTo"
	}
	return "untyped"
}

// splitDocument splits a document, which may be truncated, into the header and the
// messages. ok is false if the record is not a document.
func splitDocument(rec *records.Record) (header records.Record, messages []records.Record, ok bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(rec.Value))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return header, nil, false
	}
	var members []rawjson.Member
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		member := name.String()
		if member == "messages" && d.PeekKind() == '[' {
			messages, err = elements(d, rec)
			ok = true
		} else if v, failed := d.ReadValue(); failed == nil {
			members = append(members, rawjson.Member{Name: member, Value: v.Clone()})
		} else {
			err = failed
		}
		if err != nil {
			break
		}
	}
	header = *rec
	header.Value = rawjson.NonEmpty(members)
	return header, messages, ok && len(members) > 0
}

// elements reads the messages of a document, up to the end or to where it is truncated.
func elements(d *jsontext.Decoder, rec *records.Record) (all []records.Record, err error) {
	if _, err = d.ReadToken(); err != nil {
		return nil, err
	}
	line, at := rec.Line, int64(0)
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return all, err
		}
		start := d.InputOffset() - int64(len(v))
		line += int64(bytes.Count(rec.Value[at:start], []byte{'\n'}))
		at = start
		all = append(all, records.Record{
			Source: rec.Source, Line: line, Offset: rec.Offset + start, Value: v.Clone(),
			Digest: event.DigestOf(v), Size: int64(len(v)), Repaired: rec.Repaired,
		})
	}
	_, err = d.ReadToken()
	return all, err
}

// usage parses the token counts; zero if one is invalid. The input includes the tokens
// read from a cache.
func (r *record) usage() (u event.Usage) {
	members, err := rawjson.Members(r.members.Peek("tokens"))
	if err != nil {
		return u
	}
	var input, cached, output, thoughts, tool int64
	fields := map[string]*int64{"input": &input, "cached": &cached, "output": &output, "thoughts": &thoughts, "tool": &tool}
	rest := members[:0]
	for _, m := range members {
		field := fields[m.Name]
		if field == nil || m.Value.Kind() != '0' {
			rest = append(rest, m)
		} else if json.Unmarshal(m.Value, field) != nil || *field < 0 {
			return u
		}
	}
	if input < cached {
		return u
	}
	u = event.Usage{
		InputTokens: input - cached + tool, OutputTokens: output + thoughts, CacheReadTokens: cached, ReasoningTokens: thoughts,
	}
	if !u.IsZero() {
		u.Extra = rawjson.NonEmpty(rest)
	}
	return u
}

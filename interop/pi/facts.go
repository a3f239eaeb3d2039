package pi

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// facts are the members of a record that the import needs.
type facts struct {
	kind, id, parent string
	// hasParent is true if the record has an id and a parentId.
	hasParent bool
	// members are the members of the record, message the members of its message.
	members []rawjson.Member
	message parts.Members
	role    string
	at      time.Time // zero if it has none
	// digest identifies the content of the record.
	digest event.Digest
}

// read parses a record.
func read(rec *records.Record) (f facts, err error) {
	if f.members, err = rawjson.Members(rec.Value); err != nil {
		return f, err
	}
	f.kind, f.id, f.parent = f.text("type"), f.text("id"), f.text("parentId")
	f.hasParent = f.id != "" && f.value("parentId") != nil
	f.at = records.Time(f.text("timestamp"))
	if v := f.value("message"); v.Kind() == '{' {
		if f.message, err = parts.Open(v); err != nil {
			return f, err
		}
		f.role = f.message.PeekText("role")
	}
	if f.at.IsZero() {
		f.at = unixMilli(f.message.Peek("timestamp"))
	}
	f.digest = f.stableDigest()
	rec.Key = f.digest
	return f, nil
}

// key is the key of the record's event. pi gives ids to the records of an older file when
// it upgrades the file.
func (f *facts) key() sessions.Key { return sessions.Key{Own: f.id, Unsteady: true, Digest: f.digest} }

// shape is the shape of the record's event.
func (f *facts) shape() sessions.Shape {
	raw := records.RawType(formatName, f.typeName())
	switch f.kind {
	case "compaction":
		return sessions.ShapeOf(event.Compaction{}, raw)
	case "context_edit":
		return sessions.Shape{Types: []event.Type{event.CompactionTriggered, raw}}
	}
	var c converter
	p, _, err := c.payload(f)
	if err != nil {
		p = nil
	}
	return sessions.ShapeOf(p, raw)
}

// value is the value of a member; nil if there is none.
func (f *facts) value(name string) jsontext.Value {
	for _, m := range f.members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// text is the value of a string member; empty if there is none.
func (f *facts) text(name string) string {
	s, _ := rawjson.Text(f.value(name))
	return s
}

// count is the value of a member that is a non-negative integer; ok is false for others.
func (f *facts) count(name string) (n int64, ok bool) {
	v := f.value(name)
	if v.Kind() != '0' || json.Unmarshal(v, &n) != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// stableDigest is a digest of the record that stays the same when pi upgrades the file.
func (f *facts) stableDigest() event.Digest {
	members := make([]rawjson.Member, 0, len(f.members))
	for _, m := range f.members {
		switch m.Name {
		case "id", "parentId", "firstKeptEntryId", "firstKeptEntryIndex":
			continue
		case "message":
			if f.role == "hookMessage" { // the name in version 2
				m.Value = bytes.Replace(m.Value, []byte(`"hookMessage"`), []byte(`"custom"`), 1)
			}
		}
		members = append(members, m)
	}
	return event.DigestOf(rawjson.NonEmpty(members))
}

// typeName is the type of the record, with the role of a message.
func (f *facts) typeName() string {
	switch {
	case f.kind == "":
		return "untyped"
	case f.kind == "message" && f.role != "":
		return "message:" + f.role
	}
	return f.kind
}

// beginsSession reports whether a session can begin with the record: a message other
// than the context of an extension, a compaction or a summary.
func (f *facts) beginsSession() bool {
	switch f.kind {
	case "compaction", "branch_summary":
		return true
	case "message":
		return f.role == "user" || f.role == "assistant" || f.role == "toolResult" || f.role == "bashExecution"
	}
	return false
}

// prompt is the text of a user message; empty for other records.
func (f *facts) prompt() string {
	if f.role != "user" {
		return ""
	}
	content := f.message.Peek("content")
	if s, ok := rawjson.Text(content); ok {
		return s
	}
	var blocks []struct {
		Text jsontext.Value `json:"text"`
	}
	if content == nil || json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	for _, b := range blocks {
		if s, ok := rawjson.Text(b.Text); ok && titles.Of(s) != "" {
			return s
		}
	}
	return ""
}

// replaceMember is the record with v as the value of a member. A nil v removes the
// member.
func (f *facts) replaceMember(name string, v jsontext.Value) jsontext.Value {
	members := make([]rawjson.Member, 0, len(f.members))
	for _, m := range f.members {
		if m.Name == name {
			m.Value = v
		}
		if m.Value != nil {
			members = append(members, m)
		}
	}
	return rawjson.NonEmpty(members)
}

// withoutMembers is the record without some of its members.
func (f *facts) withoutMembers(names ...string) jsontext.Value {
	members := make([]rawjson.Member, 0, len(f.members))
	for _, m := range f.members {
		if !slices.Contains(names, m.Name) {
			members = append(members, m)
		}
	}
	return rawjson.NonEmpty(members)
}

// files returns the paths in the details of a summary.
func (f *facts) files() (read, modified []string) {
	var details struct {
		Read     []string `json:"readFiles"`
		Modified []string `json:"modifiedFiles"`
	}
	if v := f.value("details"); v.Kind() != '{' || json.Unmarshal(v, &details) != nil {
		return nil, nil
	}
	return details.Read, details.Modified
}

// isHeader reports whether a line is the header of a session.
func isHeader(line []byte) bool {
	var header struct {
		Type      jsontext.Value `json:"type"`
		ID        jsontext.Value `json:"id"`
		Timestamp jsontext.Value `json:"timestamp"`
		CWD       jsontext.Value `json:"cwd"`
	}
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true))
	if json.UnmarshalDecode(d, &header) != nil {
		return false
	}
	kind, _ := rawjson.Text(header.Type)
	id, _ := rawjson.Text(header.ID)
	return kind == "session" && id != "" && (header.Timestamp.Kind() == '"' || header.CWD.Kind() == '"')
}

// unixMilli parses a time in milliseconds; zero if malformed.
func unixMilli(v jsontext.Value) time.Time {
	var ms int64
	if v.Kind() != '0' || json.Unmarshal(v, &ms) != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

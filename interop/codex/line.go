package codex

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// The types of records with special handling.
const (
	metaKind  = "session_meta"
	itemKind  = "response_item"
	eventKind = "event_msg"
)

// line is a parsed record of a file.
type line struct {
	rec     *records.Record
	kind    string
	payload jsontext.Value // the record itself if it has no payload
	members parts.Members  // of the payload, if it is an object
	at      time.Time      // zero if it has none
	// envelope are the members other than type, timestamp and payload.
	envelope []rawjson.Member
}

// olderItems are the types of items in older files. The provider runs a web_search_call, which has
// no id and no result: it counts as a call without a result.
var olderItems = []string{
	"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "local_shell_call_output",
	"custom_tool_call", "custom_tool_call_output", "web_search_call",
}

// readLine parses a record. The line shares the bytes of rec. The record's key identifies
// the type and the payload, without the timestamp.
func readLine(rec *records.Record) (*line, error) {
	members, err := rawjson.Members(rec.Value)
	if err != nil {
		return nil, err
	}
	l := &line{rec: rec}
	for _, m := range members {
		l.addMember(m)
	}
	if l.payload == nil {
		l.readOlder()
	}
	l.members, _ = parts.Open(l.payload)
	if l.at.IsZero() {
		l.at = records.Time(l.text("timestamp"))
	}
	l.rec.Key = event.DigestOf(slices.Concat([]byte(l.kind), []byte{'\n'}, l.payload))
	return l, nil
}

func (l *line) addMember(m rawjson.Member) {
	switch m.Name {
	case "type":
		l.kind, _ = rawjson.Text(m.Value)
	case "payload":
		l.payload = m.Value
	case "timestamp":
		timestamp, _ := rawjson.Text(m.Value)
		if l.at = records.Time(timestamp); l.at.IsZero() {
			l.envelope = append(l.envelope, m)
		}
	default:
		l.envelope = append(l.envelope, m)
	}
}

// readOlder makes the record its own payload, for older files.
func (l *line) readOlder() {
	around := parts.Members{}
	for _, m := range l.envelope {
		around.Put(m.Name, m.Value)
	}
	record := around.PeekText("record_type")
	switch {
	case slices.Contains(olderItems, l.kind):
		l.kind = itemKind
	case l.kind != "":
	case record != "":
		l.kind = record
	case around.Has("id") && !l.at.IsZero():
		l.kind = metaKind
	}
	l.payload, l.envelope = l.rec.Value, nil
}

// text is the value of a string member of the payload; empty if there is none.
func (l *line) text(name string) string {
	return l.members.PeekText(name)
}

// decode decodes the payload into v. Members of the wrong type stay zero.
func (l *line) decode(v any) {
	_ = json.Unmarshal(l.payload, v) // a malformed payload counts as empty
}

// payloadType is the type of the payload, for items and events.
func (l *line) payloadType() string {
	if l.kind == itemKind || l.kind == eventKind {
		return l.text("type")
	}
	return ""
}

// isEvent reports whether the record is an event_msg of one of the types.
func (l *line) isEvent(names ...string) bool {
	return l.kind == eventKind && slices.Contains(names, l.text("type"))
}

// rawType is the event type for the raw record.
func (l *line) rawType() event.Type {
	kind := cmp.Or(l.kind, "untyped")
	if name := l.payloadType(); name != "" {
		kind += ":" + name
	}
	return records.RawType(formatName, kind)
}

// key is the key of the record's event.
func (l *line) key() sessions.Key { return sessions.Key{Digest: l.rec.Key} }

// extra joins rest, the remaining members of the payload, with the envelope.
func (l *line) extra(rest jsontext.Value) jsontext.Value {
	if len(l.envelope) == 0 {
		return rest
	}
	var all []rawjson.Member
	if rest != nil {
		all, _ = rawjson.Members(rest) // rest is an object
	}
	return rawjson.NonEmpty(append(all, rawjson.Member{Name: "record", Value: rawjson.NonEmpty(l.envelope)}))
}

// payloadExtra is the whole payload as an extra.
func (l *line) payloadExtra() jsontext.Value { return l.extra(l.payload) }

// isObject reports whether the payload is an object.
func (l *line) isObject() bool { return l.payload.Kind() == '{' }

// member is the value of a member; nil if there is none.
func member(object jsontext.Value, name string) jsontext.Value {
	if object.Kind() != '{' {
		return nil
	}
	members, err := rawjson.Members(object)
	if err != nil {
		return nil
	}
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// extraText is the value of a string member of an extra; empty if there is none.
func extraText(extra jsontext.Value, name string) string {
	s, _ := rawjson.Text(member(extra, name))
	return s
}

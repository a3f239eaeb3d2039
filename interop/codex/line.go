package codex

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// The types of records that this package tells apart.
const (
	metaKind  = "session_meta"
	itemKind  = "response_item"
	eventKind = "event_msg"
)

// line is a record of a file.
type line struct {
	rec     *interop.Record
	kind    string
	payload jsontext.Value // the record itself where it has none
	members parts.Members  // of the payload, if it is an object
	at      time.Time      // zero if it does not say
	// around are the members beside type, timestamp and payload.
	envelope []rawjson.Member
	// digest identifies what is recorded, whenever it was.
	digest event.Digest
}

// bareItems are the types of items in files of older versions.
var olderItems = []string{
	"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "local_shell_call_output",
	"custom_tool_call", "custom_tool_call_output", "web_search_call",
}

// readLine reads a record. It shares the bytes of rec.
func readLine(rec *interop.Record) (*line, error) {
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
		l.at = interop.Time(l.text("timestamp"))
	}
	l.digest = event.DigestOf(slices.Concat([]byte(l.kind), []byte{'\n'}, l.payload))
	return l, nil
}

func (l *line) addMember(m rawjson.Member) {
	switch m.Name {
	case "type":
		l.kind, _ = rawjson.Text(m.Value)
	case "payload":
		l.payload = m.Value
	case "timestamp":
		said, _ := rawjson.Text(m.Value)
		if l.at = interop.Time(said); l.at.IsZero() {
			l.envelope = append(l.envelope, m)
		}
	default:
		l.envelope = append(l.envelope, m)
	}
}

// bare makes the record its own payload, as in files of older versions.
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

// text is a member of the payload that is a string; empty if it is none.
func (l *line) text(name string) string {
	return l.members.PeekText(name)
}

// into decodes the payload, as far as it is of the shape; the rest stays zero.
func (l *line) decode(v any) {
	_ = json.Unmarshal(l.payload, v) // a payload of another shape says nothing
}

// name is the type of the payload, of items and events.
func (l *line) payloadType() string {
	if l.kind == itemKind || l.kind == eventKind {
		return l.text("type")
	}
	return ""
}

// is reports whether the record is an event of one of the types.
func (l *line) isEvent(names ...string) bool {
	return l.kind == eventKind && slices.Contains(names, l.text("type"))
}

// rawType is the type of the event that the record is kept raw in.
func (l *line) rawType() event.Type {
	kind := cmp.Or(l.kind, "untyped")
	if name := l.payloadType(); name != "" {
		kind += ":" + name
	}
	return interop.RawType(Name, kind)
}

// extra is what of the record an event keeps in its extra: rest, of the payload,
// and what stands around that.
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

// all is the whole payload as an extra.
func (l *line) payloadExtra() jsontext.Value { return l.extra(l.payload) }

// isObject reports whether the payload has members.
func (l *line) isObject() bool { return l.payload.Kind() == '{' }

// member is a member of an object; nil if there is none.
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

// extraText is a member of an extra that is a string; empty if it is none.
func extraText(extra jsontext.Value, name string) string {
	s, _ := rawjson.Text(member(extra, name))
	return s
}

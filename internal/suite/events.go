package suite

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// The suite writes payloads as JSON, by docs/FORMAT.md. So it tests the log against
// the format and not against the log's own structs.

// NewEvent returns an event with a type and a payload.
func NewEvent(typ event.Type, data string) event.Event {
	return event.Event{ID: event.NewID(), Type: typ, Data: jsontext.Value(data)}
}

// Note returns an event of an unknown type.
func Note(n int) event.Event { return NewEvent("test:note", fmt.Sprintf(`{"n":%d}`, n)) }

// Notes returns n notes.
func Notes(n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = Note(i)
	}
	return events
}

// NoteWithMetadata returns a note with metadata.
func NoteWithMetadata(n int, metadata string) event.Event {
	e := Note(n)
	e.Metadata = jsontext.Value(metadata)
	return e
}

// User returns a message of the user.
func User(text string) event.Event {
	return NewEvent(event.MessageAdded, fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q}]}`, text))
}

// Calls returns a message of the assistant with one tool call per id.
func Calls(ids ...string) event.Event {
	parts := ""
	for i, id := range ids {
		if i > 0 {
			parts += ","
		}
		parts += fmt.Sprintf(`{"type":"tool_call","call_id":%q,"name":"lookup","arguments":{}}`, id)
	}
	return NewEvent(event.MessageAdded, `{"role":"assistant","parts":[`+parts+`]}`)
}

// Result returns the result of a call.
func Result(id string) event.Event { return resultWith(id, "") }

// Interrupted returns the result of an interrupted call.
func Interrupted(id string) event.Event { return resultWith(id, `,"interrupted":true`) }

func resultWith(id, more string) event.Event {
	return NewEvent(event.MessageAdded, fmt.Sprintf(
		`{"role":"tool","parts":[{"type":"tool_result","call_id":%q,"name":"lookup","content":[{"type":"text","text":"ok"}]%s}]}`, id, more))
}

// Image returns a message with a blob.
func Image(ref event.BlobRef) event.Event {
	return NewEvent(event.MessageAdded, fmt.Sprintf(
		`{"role":"user","parts":[{"type":"image","media_type":"image/png","blob":{"blob":"%s","bytes":%d}}]}`, ref.Blob, ref.Bytes))
}

// HeadMove returns an event that moves the session's head.
func HeadMove(to int64) event.Event {
	return NewEvent(event.HeadMoved, fmt.Sprintf(`{"to":%d}`, to))
}

// HostileIDs returns the invalid and the tricky ids.
func HostileIDs() []string {
	ids := append(InvalidIDs(), TrickyIDs()...)
	for i, id := range ids {
		if id == "a" {
			return append(ids[:i:i], ids[i+1:]...)
		}
	}
	return ids
}

// InvalidIDs returns ids that no session can have.
func InvalidIDs() []string {
	return []string{"", "\x00", "a\x00b", "a\nb", "a\rb", "\t", "\x1b[0m", "\x7f", "\u0085", "a\u009f", "\xff", "a\xc3", "\xed\xa0\x80",
		Text("x", 201), strings.Repeat("é", 100) + "x"}
}

// TrickyIDs returns valid ids that a store may handle wrongly.
func TrickyIDs() []string {
	return []string{".", "..", "../x", "../../x", "a/b", "/etc/passwd", "/", "//", `a\b`, `\\host\share`, "C:", "c:\\x", "ancestry", "blobs",
		"blobs/aa", ".lock", ".a", "a.", "a.jsonl", "a.jsonl.jsonl", "a.torn-0", "a~0123456789abcdef0123456789abcdef", "con", "nul", "aux.jsonl",
		"a%2fb", "%", "%%", "%zz", "%2e%2e", "a b", " ", " a", "a ", "-", "-rf", "--", "~", "*", "?", "a|b", "<a>", `"`, `'`, "'; drop table events; --",
		"$HOME", "`id`", "#", "&", "名前", "é", "e\u0301", "😀", "\u202e", "\ufeff", "\u00a0", "\u2028", "ı", "ß", "SS", "null", "0", "-1", "1e9", "{}", "sqlite_master",
		"main", "head", "a", "A", "aA", "Aa", Text("x", 200), Text("X", 200), Text("%", 200), strings.Repeat("é", 100), Text("x", 199) + "y", Text("./", 200)}
}

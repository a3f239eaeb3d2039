package storetest

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
)

// The suite writes payloads as JSON, as docs/FORMAT.md has them, so that it
// holds the log to the format and not to its own structs.

// event makes an event of a type and a payload.
func event(typ eventlog.Type, data string) eventlog.Event {
	return eventlog.Event{ID: eventlog.NewID(), Type: typ, Data: jsontext.Value(data)}
}

// note is an event of a type that no program knows.
func note(n int) eventlog.Event { return event("test:note", fmt.Sprintf(`{"n":%d}`, n)) }

// notes are n of them.
func notes(n int) []eventlog.Event {
	events := make([]eventlog.Event, n)
	for i := range events {
		events[i] = note(i)
	}
	return events
}

// noted is a note with metadata.
func noted(n int, metadata string) eventlog.Event {
	e := note(n)
	e.Metadata = jsontext.Value(metadata)
	return e
}

func user(text string) eventlog.Event {
	return event(eventlog.MessageAdded, fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q}]}`, text))
}

// calls is an assistant message that calls a tool once for each id.
func calls(ids ...string) eventlog.Event {
	parts := ""
	for i, id := range ids {
		if i > 0 {
			parts += ","
		}
		parts += fmt.Sprintf(`{"type":"tool_call","call_id":%q,"name":"lookup","arguments":{}}`, id)
	}
	return event(eventlog.MessageAdded, `{"role":"assistant","parts":[`+parts+`]}`)
}

// result is the result of a call.
func result(id string) eventlog.Event { return resultWith(id, "") }

// interrupted is the result of a call that did not finish.
func interrupted(id string) eventlog.Event { return resultWith(id, `,"interrupted":true`) }

func resultWith(id, more string) eventlog.Event {
	return event(eventlog.MessageAdded, fmt.Sprintf(
		`{"role":"tool","parts":[{"type":"tool_result","call_id":%q,"name":"lookup","content":[{"type":"text","text":"ok"}]%s}]}`, id, more))
}

// moved moves the session's head.
func moved(to int64) eventlog.Event {
	return event(eventlog.HeadMoved, fmt.Sprintf(`{"to":%d}`, to))
}

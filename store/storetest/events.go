package storetest

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// The suite writes payloads as JSON, as docs/FORMAT.md has them, so that it
// holds the log to the format and not to its own structs.

// event makes an event of a type and a payload.
func newEvent(typ event.Type, data string) event.Event {
	return event.Event{ID: event.NewID(), Type: typ, Data: jsontext.Value(data)}
}

// note is an event of a type that no program knows.
func note(n int) event.Event { return newEvent("test:note", fmt.Sprintf(`{"n":%d}`, n)) }

// notes are n of them.
func notes(n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = note(i)
	}
	return events
}

// noted is a note with metadata.
func noted(n int, metadata string) event.Event {
	e := note(n)
	e.Metadata = jsontext.Value(metadata)
	return e
}

func user(text string) event.Event {
	return newEvent(event.MessageAdded, fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q}]}`, text))
}

// calls is an assistant message that calls a tool once for each id.
func calls(ids ...string) event.Event {
	parts := ""
	for i, id := range ids {
		if i > 0 {
			parts += ","
		}
		parts += fmt.Sprintf(`{"type":"tool_call","call_id":%q,"name":"lookup","arguments":{}}`, id)
	}
	return newEvent(event.MessageAdded, `{"role":"assistant","parts":[`+parts+`]}`)
}

// result is the result of a call.
func result(id string) event.Event { return resultWith(id, "") }

// interrupted is the result of a call that did not finish.
func interrupted(id string) event.Event { return resultWith(id, `,"interrupted":true`) }

func resultWith(id, more string) event.Event {
	return newEvent(event.MessageAdded, fmt.Sprintf(
		`{"role":"tool","parts":[{"type":"tool_result","call_id":%q,"name":"lookup","content":[{"type":"text","text":"ok"}]%s}]}`, id, more))
}

// moved moves the session's head.
func moved(to int64) event.Event {
	return newEvent(event.HeadMoved, fmt.Sprintf(`{"to":%d}`, to))
}

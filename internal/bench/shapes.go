//go:build unix

package main

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// shape is a kind of session.
type shape struct {
	name string
	// events returns n events of a new session.
	events func(n int) []event.Event
}

// shapes are the sessions of people, and sessions that break an algorithm whose cost
// depends on one kind of event.
var shapes = []shape{
	{"people", people},
	{"uncompacted", uncompacted},
	{"users", users},
	{"results", results},
	{"calls", toolEvents},
	{"rewinds", rewinds},
	{"returns", returns},
	{"compactions", compactions},
	{"patches", patches},
	{"children", children},
	{"steps", steps},
	{"tiny", tiny},
}

// tiny returns messages of one byte.
func tiny(n int) []event.Event {
	return repeat(n, func(int) event.Payload { return message("a") })
}

func message(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

func repeat(n int, payload func(i int) event.Payload) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.New(payload(i))
	}
	return events
}

// results returns results of tools that no message has.
func results(n int) []event.Event {
	w := newWriter()
	return repeat(n, func(i int) event.Payload {
		return event.ToolCompletion{CallID: fmt.Sprintf("call_%d", i), Name: "read_file", Content: []event.Part{event.Text(w.text(100))}}
	})
}

// rewinds returns messages, each orphaned by a move to the first one.
func rewinds(n int) []event.Event {
	return repeat(n, func(i int) event.Payload {
		if i == 0 || i%2 == 1 {
			return message("what about this?")
		}
		return event.HeadMove{To: 1}
	})
}

// returns returns messages and moves to the message before the newest one: half of the
// messages are on the path.
func returns(n int) []event.Event {
	return repeat(n, func(i int) event.Payload {
		if i%3 == 2 {
			return event.HeadMove{To: int64(i - 1)} // the first one of two messages
		}
		return message("what about this?")
	})
}

// compactions returns messages, and a compaction of the older ones after every ten.
func compactions(n int) []event.Event {
	return repeat(n, func(i int) event.Payload {
		if i%10 != 9 {
			return message("and then?")
		}
		summary := message("so far")
		return event.Compaction{Covers: event.Stretch{From: 1, To: int64(i - 3)}, Entries: []event.CompactionEntry{{Message: &summary}}}
	})
}

// patches returns patches that add an item to a list of a custom state, and replace a
// member that the patch before added.
func patches(n int) []event.Event {
	return repeat(n, func(i int) event.Payload {
		if i == 0 {
			return event.CustomPatch{Name: "bench", Patch: jsontext.Value(`[{"op":"add","path":"","value":{"items":[{"done":false}],"last":0}}]`)}
		}
		patch := fmt.Sprintf(`[{"op":"add","path":"/items/-","value":{"n":%d,"done":false}},{"op":"replace","path":"/last","value":%d},{"op":"replace","path":"/items/%d/done","value":true}]`, i, i, (i-1)/2)
		return event.CustomPatch{Name: "bench", Patch: jsontext.Value(patch)}
	})
}

// children returns runs of children. Every third run is never completed.
func children(n int) []event.Event {
	states := []event.ChildState{event.ChildRequested, event.ChildStarted, event.ChildCompleted}
	return repeat(n, func(i int) event.Payload {
		state := states[i%3]
		if i%9 == 8 {
			state = event.ChildProgressed
		}
		id := fmt.Sprintf("child-%d", i/3)
		return event.Child{State: state, ChildID: id, ChildSessionID: "session-of-" + id, Task: "look at it"}
	})
}

// steps returns requests to a model: a message, step_started, step_completed, an answer.
func steps(n int) []event.Event {
	w := newWriter()
	return repeat(n, func(i int) event.Payload {
		switch i % 4 {
		case 0:
			return message(w.text(100))
		case 1:
			return event.StepStart{Step: i / 4, Provider: "example", Model: "example-1"}
		case 2:
			return event.StepCompletion{Step: i / 4, Provider: "example", Model: "example-1", Usage: event.Usage{InputTokens: 100, OutputTokens: 10}}
		default:
			return assistant(event.Text(w.text(100)))
		}
	})
}

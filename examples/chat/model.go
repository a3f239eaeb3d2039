package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// askModel is a scripted model: it looks three parcels up, one after the other, and
// then answers. done means that the last message is its answer.
func askModel(messages []projection.Entry) (answer event.Event, done bool) {
	last, calls := messages[len(messages)-1].Message, 0
	for _, m := range messages {
		if m.Message.Role == event.Tool {
			calls++
		}
	}
	switch {
	case last.Role == event.Assistant:
		return event.Event{}, true
	case calls < 3:
		call := event.ToolCall(fmt.Sprint("call-", calls), "parcel", []byte(fmt.Sprintf(`{"n":%d}`, calls)))
		return event.New(event.Message{Role: event.Assistant, Parts: []event.Part{call}}), false
	default:
		return event.AssistantMessage("All three parcels are in Leipzig."), false
	}
}

// useTool looks a parcel up, and notes in a file beside the log that it did.
func useTool(dir string, call projection.PendingCall) event.Event {
	name := filepath.Join(filepath.Dir(dir), "lookups.txt")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, call.CallID, string(call.Arguments))
		err = errors.Join(err, f.Close())
	}
	time.Sleep(20 * time.Millisecond) // a slow tool
	if err != nil {
		return event.ToolOutput(call.CallID, call.Name, []byte(err.Error()), true)
	}
	return event.ToolOutput(call.CallID, call.Name, []byte("in Leipzig"), false)
}

func isExists(err error) bool { return errors.Is(err, eventlog.ErrExists) }

func show(messages []projection.Entry) error {
	for _, m := range messages {
		for _, p := range m.Message.Parts {
			fmt.Println(m.Message.Role, p.Type, p.CallID, p.Text)
		}
	}
	return nil
}

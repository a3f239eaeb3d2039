package stats_test

import "github.com/convlog/convlog/event"

func asks(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

func says(parts ...event.Part) event.Message {
	return event.Message{Role: event.Assistant, Parts: parts}
}

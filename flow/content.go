package flow

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Content is the content of a conversation.
type Content[S any] struct {
	Session   string
	Messages  []event.Message
	Custom    S
	Artifacts []event.Artifact
}

// contentOf is the content of loaded states.
func contentOf[S any](s *settings, l *projection.Loaded) (c Content[S], err error) {
	c.Session = l.Session
	history, _ := projection.State(l, projection.History())
	entries, err := history.Messages(s.options.Render)
	if err != nil {
		return c, err
	}
	c.Messages = messagesOf(entries)
	custom, _ := projection.State(l, projection.Custom())
	doc, err := s.migrate(custom.Get(s.name))
	if err != nil {
		return c, err
	}
	if c.Custom, err = decodeState[S](doc); err != nil {
		return c, err
	}
	artifacts, _ := projection.State(l, projection.Artifacts())
	for _, a := range artifacts.Items {
		c.Artifacts = append(c.Artifacts, a.Artifact)
	}
	return c, nil
}

// messagesOf are the messages of a history, without contexts.
func messagesOf(entries []projection.Entry) (messages []event.Message) {
	for _, x := range entries {
		if x.Context == "" {
			messages = append(messages, x.Message)
		}
	}
	return messages
}

// events are the events of a session that begins with the content.
func (c Content[S]) events(s *settings) (events []event.Event, err error) {
	for i, m := range c.Messages {
		if err := event.Validate(m); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		events = append(events, event.New(m))
	}
	doc, err := encode(c.Custom)
	if err != nil {
		return nil, fmt.Errorf("custom state: %w", err)
	}
	events = append(events, s.patchEvent(replacement(doc)))
	for _, a := range c.Artifacts {
		if a.ArtifactID == "" {
			a.ArtifactID = s.options.NewID()
		}
		if err := event.Validate(a); err != nil {
			return nil, fmt.Errorf("artifact %q: %w", a.Name, err)
		}
		events = append(events, event.New(a))
	}
	return events, nil
}

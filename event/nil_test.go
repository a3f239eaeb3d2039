package event_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// A nil argument of an exported function is ErrNilArgument, or an empty value where the
// function has no error.
func TestNilArguments(t *testing.T) {
	var noPayload *event.Artifact
	message := event.UserMessage("hello")
	for name, call := range map[string]func() error{
		"Decode":                func() error { _, _, err := event.Decode[event.Message](nil); return err },
		"DecodeKept":            func() error { _, err := event.DecodeKept[event.Message](nil); return err },
		"OutlineOf":             func() error { _, _, err := event.OutlineOf(nil); return err },
		"Upcast":                func() error { return (*event.Event)(nil).Upcast() },
		"Upcast, nil Cast":      func() error { return message.Upcast(event.Upcaster{From: message.Type, To: "shop:a"}) },
		"Validate":              func() error { return event.Validate(nil) },
		"Validate, nil pointer": func() error { return event.Validate(noPayload) },
		"Tree.Add":              func() error { return new(event.Tree).Add(nil) },
		"New":                   func() error { e := event.New(nil); return e.Normalize() },
		"New, nil pointer":      func() error { e := event.New(noPayload); return e.Normalize() },
	} {
		if err := call(); !errors.Is(err, event.ErrNilArgument) || !errors.Is(err, event.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A nil byte slice, list or value is empty: these functions neither fail nor panic.
func TestNilIsEmpty(t *testing.T) {
	var loss event.Loss
	if err := loss.SetErased(event.MessageAdded, nil); err != nil {
		t.Errorf("extra of nothing: %s, %v", loss.Extra, err)
	}
	if _, err := event.Parse(nil, "s"); err == nil {
		t.Error("no line was parsed")
	}
	e := event.UserMessage("hello")
	if err := errors.Join(e.SetMetadata("a", nil), e.MergeMetadata(nil), e.AddBlobs()); err != nil {
		t.Errorf("set nothing: %v", err)
	}
	if err := e.SetExtras(nil); !errors.Is(err, event.ErrInvalid) {
		t.Errorf("set nil extras: %v", err)
	}
	for name, made := range map[string]event.Event{
		"tool message": event.ToolMessage(event.ToolResult("c", "tool", nil...)),
		"tool output":  event.ToolOutput("c", "tool", nil, false),
		"tool call":    event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c", "tool", nil)}}),
		"opaque part":  event.New(event.Message{Role: event.User, Parts: []event.Part{event.Opaque("k", jsontext.Value(nil)), event.Text("x")}}),
	} {
		if _, err := made.Facts(); err != nil && !strings.Contains(err.Error(), "invalid") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

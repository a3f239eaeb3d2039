package event

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/convlog/convlog/internal/mark"
)

// Copies of an event that remembers its payload share the decoded payload. An event with
// other data decodes its own.
func TestRemember(t *testing.T) {
	e := New(EffectIntent{Key: "first", Ordinal: "1"})
	e.remember()
	decode := func(e Event) EffectIntent {
		t.Helper()
		p, err := DecodeKept[EffectIntent](&e)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := decode(e); p.Key != "first" {
		t.Fatalf("the first decoding has key %q", p.Key)
	}
	if kept := remembered[EffectIntent](e.memo, e.Data); kept == nil || kept.Key != "first" {
		t.Fatalf("the event remembers %v", kept)
	}
	if p, err := DecodeKept[struct {
		Ordinal string `json:"ordinal"`
	}](&e); err != nil || p.Ordinal != "1" {
		t.Fatalf("another type has ordinal %q: %v", p.Ordinal, err)
	}
	other := e
	other.Data = New(EffectIntent{Key: "second"}).Data
	if p := decode(other); p.Key != "second" {
		t.Fatalf("other data has key %q", p.Key)
	}
	if p := decode(e); p.Key != "first" {
		t.Fatalf("the original then has key %q", p.Key)
	}
	copy(e.Data, bytes.Replace(e.Data, []byte("first"), []byte("third"), 1))
	if p := decode(e); p.Key != "third" {
		t.Fatalf("data that was changed in place has key %q", p.Key)
	}
}

// The outline of a message is the same whether the event remembers the message or not.
func TestOutlineOfARememberedMessage(t *testing.T) {
	asks := New(Message{Role: User, Parts: []Part{Text("look"), ToolResult("c0", "f", Text("x"))}})
	context := asks
	if err := context.SetMetadata(mark.Context, true); err != nil {
		t.Fatal(err)
	}
	redacted := Event{Type: MessageAdded}
	*redacted.own() = rare{redacted: true, kept: []byte(`{"role":"assistant","calls":["c1"]}`)}
	for name, e := range map[string]Event{
		"calls": New(Message{Role: Assistant, Parts: []Part{ToolCall("c1", "f", []byte(`{}`)), ToolCall("c2", "g", []byte(`{}`))}}),
		"asks":  asks, "context": context,
		"redacted": redacted,
	} {
		want, _, err := OutlineOf(&e)
		if err != nil {
			t.Fatal(err)
		}
		e.remember()
		if _, err := DecodeKept[Message](&e); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := OutlineOf(&e); !ok || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the outline is %+v, %v, without the message %+v", name, got, err, want)
		}
	}
}

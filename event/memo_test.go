package event

import (
	"bytes"
	"testing"
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

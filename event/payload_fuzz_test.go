package event

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/internal/rawjson"
)

// Any data of a known type: a valid payload becomes an event that decodes to the
// same payload. The kept members of its redaction decode, and pair the same calls.
func FuzzPayload(f *testing.F) {
	types := Types()
	for i, name := range types {
		for _, data := range samplesOf(name) {
			f.Add(uint8(i), []byte(data), uint16(999), []byte(nil))
		}
	}
	message := uint8(slices.Index(types, MessageAdded))
	for _, parts := range partSamples {
		for _, part := range parts {
			f.Add(message, []byte(`{"role":"tool","parts":[{"type":"tool_result","call_id":"c"},`+part+`]}`), uint16(999), []byte(nil))
		}
	}
	f.Add(message, []byte(`{"role":"user","parts":[{"type":"text","text":"x","blob":{"blob":"x","bytes":1}}]}`), uint16(999), []byte(nil))
	for i := range uint16(400) {
		f.Add(uint8(i), []byte(samplesOf(types[int(i)%len(types)])[0]), i/uint16(len(types)), trickyValues[int(i)%len(trickyValues)])
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte, at uint16, value []byte) {
		name := types[int(kind)%len(types)]
		info := vocabulary[name]
		data, bad := rawjson.Compact(graft(data, int(at), value))
		p, err := info.decode(name, data)
		if err != nil {
			return
		}
		if bad != nil {
			t.Fatalf("%s is read of what is no JSON: %v\n%s", name, bad, data)
		}
		e := New(p)
		if broken := Validate(p); broken != nil {
			if !errors.Is(broken, ErrInvalid) {
				t.Fatalf("%s breaks a rule with another error: %v", name, broken)
			}
			return
		}
		if err := e.Normalize(); err != nil || e.Type != name {
			t.Fatalf("New of a %s gives a %s: %v", name, e.Type, err)
		}
		same(t, p, &e)
		kept(t, p, &e)
		kept(t, p, &Event{Type: name, Data: data})
	})
}

// trickyValues are put in the place of others.
var trickyValues = [][]byte{
	[]byte(`null`), []byte(`[]`), []byte(`{}`), []byte(`""`), []byte(`-1`), []byte(`1e400`), []byte(`[null]`), []byte(`[[]]`), []byte(`0.1`),
	[]byte(`9223372036854775807`), []byte(`true`), []byte(`"\u0000\ud83d\ude00"`), []byte(`{"blob":"x","bytes":1}`), []byte(`{"":null}`),
	[]byte(`{"type":"text","text":"x","blob":{"blob":"x","bytes":-1},"data":"eA==","content":[{"type":"text"}]}`),
	[]byte(`{"type":"tool_call","call_id":"1","name":"n"}`), []byte(`"0001-01-01T00:00:00Z"`), []byte(`"2026-11-20T19:05:00+23:59"`),
	[]byte(`"` + sampleID + `"`), []byte(`"` + sampleDigest + `"`),
}

// graft replaces the n-th value of data by value, in the order of their first bytes.
// It returns data unchanged if data has fewer values.
func graft(data []byte, n int, value []byte) []byte {
	if !jsontext.Value(data).IsValid() || !jsontext.Value(value).IsValid() {
		return data
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for i := -1; ; {
		kind := dec.PeekKind()
		if kind == jsontext.KindInvalid {
			return data
		}
		if container, length := dec.StackIndex(dec.StackDepth()); kind != '}' && kind != ']' && (container != '{' || length%2 == 1) {
			i++
		}
		if i == n {
			end := dec.InputOffset()
			old, err := dec.ReadValue()
			if err != nil {
				return data
			}
			at := int(end) + bytes.Index(data[end:], old)
			return slices.Concat(data[:at], value, data[at+len(old):])
		}
		if _, err := dec.ReadToken(); err != nil {
			return data
		}
	}
}

// same makes sure that e reads as p, and encodes as it did.
func same(t *testing.T, p Payload, e *Event) {
	t.Helper()
	if value, err := rawjson.Compact(e.Data); err != nil || !bytes.Equal(value, e.Data) {
		t.Fatalf("encoded %s is not compact JSON: %v\n%s", e.Type, err, e.Data)
	}
	q, err := vocabulary[e.Type].decode(e.Type, e.Data)
	if err != nil {
		t.Fatalf("encoded %s is not read: %v\n%s", e.Type, err, e.Data)
	}
	if diff := cmp.Diff(p, q); diff != "" {
		t.Fatalf("%s reads otherwise (-before +after):\n%s\n%s", e.Type, diff, e.Data)
	}
	again := New(q)
	if !bytes.Equal(again.Data, e.Data) {
		t.Fatalf("encoded again:\n%s\n%s", e.Data, again.Data)
	}
	for _, d := range e.Blobs() {
		if err := d.Check(); err != nil {
			t.Fatalf("needs a blob that is none: %v\n%s", err, e.Data)
		}
	}
}

// kept checks that redaction keeps an object of e that pairs the calls of p.
func kept(t *testing.T, p Payload, e *Event) {
	t.Helper()
	value, err := keptOf(e)
	if err != nil {
		t.Fatalf("kept of %s: %v\n%s", e.Type, err, e.Data)
	}
	if again, err := rawjson.Compact(value); err != nil || !bytes.Equal(again, value) || value.Kind() != jsontext.KindBeginObject {
		t.Fatalf("kept of %s is no compact object: %v\n%s", e.Type, err, value)
	}
	m, ok := p.(Message)
	if !ok {
		return
	}
	redacted := *e
	redacted.Data = nil
	*redacted.own() = rare{redacted: true, kept: value}
	want := m.Outline()
	got, _, err := OutlineOf(&redacted)
	if err != nil || !slices.Equal(got.callIDs(), want.callIDs()) || !slices.Equal(got.Results, want.Results) {
		t.Fatalf("kept %s gives %+v, %v; the message has %+v", value, got, err, want)
	}
}

package event

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

func TestSetMetadataKeepsTheOthersByteForByte(t *testing.T) {
	e := Event{Metadata: jsontext.Value(`{ "n" : 9007199254740993, "\u0062": "\u0061\/", "f": 1.0 }`)}
	before := e.Metadata
	for _, set := range []struct {
		name  string
		value any
		want  string
	}{
		{"x", int64(9007199254740993), `{"n":9007199254740993,"\u0062":"\u0061\/","f":1.0,"x":9007199254740993}`},
		{"b", jsontext.Value(`[1.0, "\u0061"]`), `{"n":9007199254740993,"\u0062":[1.0,"\u0061"],"f":1.0,"x":9007199254740993}`},
		{"n", map[string]int{"b": 1, "a": 2}, `{"n":{"a":2,"b":1},"\u0062":[1.0,"\u0061"],"f":1.0,"x":9007199254740993}`},
	} {
		if err := e.SetMetadata(set.name, set.value); err != nil {
			t.Fatalf("set %q: %v", set.name, err)
		}
		if got := string(e.Metadata); got != set.want {
			t.Fatalf("set %q: %s, want %s", set.name, got, set.want)
		}
	}
	if string(before) != `{ "n" : 9007199254740993, "\u0062": "\u0061\/", "f": 1.0 }` {
		t.Errorf("the bytes before were written over: %s", before)
	}
	if value, ok := e.MetadataValue("b"); !ok || string(value) != `[1.0,"\u0061"]` {
		t.Errorf("b is %s, %v", value, ok)
	}
	if value, ok := e.MetadataValue("absent"); ok {
		t.Errorf("absent is %s", value)
	}
}

// A member is found by its name, however the name is spelled.
func TestMetadataNames(t *testing.T) {
	for metadata, name := range map[string]string{
		`{"name":1}`: "name", `{"\u006eame":1}`: "name", `{"a\"b":1}`: `a"b`, `{"a\/b":1}`: "a/b", `{"":1}`: "", "{\"\ufffd\":1}": "\ufffd",
	} {
		e := Event{Metadata: jsontext.Value(metadata)}
		if value, ok := e.MetadataValue(name); !ok || string(value) != "1" {
			t.Errorf("%s: %q is %s, %v", metadata, name, value, ok)
		}
	}
	invalid := Event{Metadata: jsontext.Value("{\"\xff\":1}")}
	members, err := metadataMembers(invalid.Metadata)
	want, known := rawjson.Value(members, "\ufffd")
	if value, ok := invalid.MetadataValue("\ufffd"); ok != (err == nil && known) || string(value) != string(want) {
		t.Errorf("a name that is not UTF-8 is %s, %v, want %s, %v", value, ok, want, err)
	}
}

func TestSetMetadataRefuses(t *testing.T) {
	for name, e := range map[string]Event{
		"not an object": {Metadata: jsontext.Value(`[1]`)},
		"not JSON":      {Metadata: jsontext.Value(`{"a":`)},
		"two values":    {Metadata: jsontext.Value(`{} {}`)},
	} {
		if err := e.SetMetadata("x", 1); !errors.Is(err, errMetadata) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := e.MetadataValue("a"); ok {
			t.Errorf("%s: has a value", name)
		}
	}
	var e Event
	if err := e.SetMetadata("x", make(chan int)); !errors.Is(err, errMetadata) {
		t.Errorf("channel: %v", err)
	}
	if err := e.SetMetadata("\xff", 1); !errors.Is(err, errMetadata) {
		t.Errorf("name that is not UTF-8: %v", err)
	}
	if e.Metadata != nil {
		t.Errorf("metadata is %s", e.Metadata)
	}
}

func TestMergeMetadata(t *testing.T) {
	for _, test := range []struct{ ctx, own, want string }{
		{``, ``, ``},
		{``, `{ "a": 1 }`, `{"a":1}`},
		{`{"a":1}`, ``, `{"a":1}`},
		{`{"a":1,"n":9007199254740993}`, `{"b":9007199254740993.0,"a":2}`, `{"b":9007199254740993.0,"a":2,"n":9007199254740993}`},
		{`{"a":{"x":1}}`, `{"\u0061":{"y":2}}`, `{"\u0061":{"y":2}}`},
	} {
		e := Event{Metadata: jsontext.Value(test.own)}
		if err := e.MergeMetadata(jsontext.Value(test.ctx)); err != nil || string(e.Metadata) != test.want {
			t.Errorf("%s and %s: %s, %v, want %s", test.ctx, test.own, e.Metadata, err, test.want)
		}
	}
	for _, bad := range []string{`[]`, `{"a":1,"a":2}`, `x`, `{"a":1}}`} {
		e := Event{Metadata: jsontext.Value(bad)}
		if err := e.MergeMetadata(nil); !errors.Is(err, errMetadata) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

package document

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Every field of a part is content, except its id and its extra.
func TestEveryFieldIsContent(t *testing.T) {
	key := func(p event.Part) event.Digest {
		d, err := contentKey(&event.Message{Role: event.User, Parts: []event.Part{p}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	seen := map[event.Digest]string{key(event.Part{}): "nothing"}
	for i := range reflect.TypeFor[event.Part]().NumField() {
		var p event.Part
		name := reflect.TypeFor[event.Part]().Field(i).Name
		switch f := reflect.ValueOf(&p).Elem().Field(i).Addr().Interface().(type) {
		case *event.PartType:
			*f = "x"
		case *string:
			*f = "x"
		case *bool:
			*f = true
		case *[]byte:
			*f = []byte("x")
		case *jsontext.Value:
			*f = jsontext.Value(`["x"]`)
		case *event.BlobRef:
			f.Blob = "x"
		case *[]event.Part:
			*f = []event.Part{{}}
		default:
			t.Fatalf("%s is of type %T", name, f)
		}
		d := key(p)
		if omitted := name == "ID" || name == "Extra"; omitted != (seen[d] == "nothing") || !omitted && seen[d] != "" {
			t.Errorf("%s gives the key of %s", name, seen[d])
		}
		seen[d] = name
		if name == "ID" || name == "Extra" {
			seen[d] = "nothing"
		}
	}
}

// A body has one key, in the message and in a blob, and so have arguments of any layout.
func TestEqualContent(t *testing.T) {
	body := []byte("a body")
	a := event.Message{Parts: []event.Part{{Type: event.ImagePart, Data: body}, {Arguments: jsontext.Value(`{"a":1,"b":2}`)}}}
	b := event.Message{Parts: []event.Part{
		{Type: event.ImagePart, Blob: event.BlobRef{Blob: event.DigestOf(body), Bytes: 6}}, {Arguments: jsontext.Value(`{ "b": 2, "a": 1 }`)},
	}}
	one, err := contentKey(&a)
	other, err2 := contentKey(&b)
	if one != other || err != nil || err2 != nil {
		t.Errorf("%s and %s: %v, %v", one, other, err, err2)
	}
}

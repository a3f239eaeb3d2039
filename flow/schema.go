package flow

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/google/jsonschema-go/jsonschema"
)

// schema is a type with a JSON Schema of its own.
type schema interface{ JSONSchema() jsontext.Value }

// anyValue describes a member of any type. Its schema would be true otherwise, which some
// servers refuse.
const anyValue = "any JSON value"

// schemaOf infers the schema of an object.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	own := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():             {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[any]():                {Description: anyValue},
		reflect.TypeFor[jsontext.Value]():     {Description: anyValue},
		reflect.TypeFor[stdjson.RawMessage](): {Description: anyValue},
		reflect.TypeFor[stdjson.Number]():     {Type: "number"},
	}
	if err := findSchemas(t, own, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("the JSON Schema is of an object: %v is not a struct or a map", t)
	}
	return s, nil
}

// form is a JSON Schema that was inferred from a type. It checks the arguments of a tool, or an answer of a model.
type form struct {
	root     string // names the whole value in a problem
	schema   jsontext.Value
	resolved *jsonschema.Resolved
}

func newForm(root string, t reflect.Type) (*form, error) {
	s, err := schemaOf(t)
	if err != nil {
		return nil, err
	}
	f := &form{root: root}
	if f.resolved, err = s.Resolve(&jsonschema.ResolveOptions{}); err != nil {
		return nil, err
	}
	f.schema, err = s.MarshalJSON()
	return f, err
}

// findSchemas adds the schemas of all types in t that have their own.
func findSchemas(t reflect.Type, own map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	if seen[t] || own[t] != nil {
		return nil
	}
	seen[t] = true
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		if s, ok := reflect.New(t).Interface().(schema); ok {
			own[t] = new(jsonschema.Schema)
			err := stdjson.Unmarshal(s.JSONSchema(), own[t])
			if err == nil && typesOf(own[t]) == nil {
				err = errors.New("the type is missing")
			}
			if err != nil {
				return fmt.Errorf("the JSON Schema of %v: %w", t, err)
			}
			return nil
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findSchemas(t.Elem(), own, seen)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if err := findSchemas(f.Type, own, seen); f.IsExported() && err != nil {
				return err
			}
		}
	}
	return nil
}

// numbers keep their digits: a number in a value of any type is a json.Number of
// encoding/json, and such a number is written as it is.
var numbers = json.JoinOptions(
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		raw, err := dec.ReadValue()
		*v = stdjson.Number(raw)
		return err
	})),
	json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, n stdjson.Number) error {
		if n == "" {
			n = "0"
		}
		return enc.WriteValue(jsontext.Value(n))
	})),
	jsonv1.FormatDurationAsNano(true),
)

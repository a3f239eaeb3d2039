package flow

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/convlog/convlog/event"
)

// NewTool makes a tool of a function. The JSON Schema of its arguments is inferred from
// In, a struct or a map with string keys: names and optional members come from json tags
// (omitempty and omitzero make a member optional), descriptions from jsonschema tags. A
// type of a member may have its own schema: see Schema. An In without a schema, for
// example with a channel, a function or a cycle, is an error.
//
// Arguments of a call that do not fit the schema are an *ArgumentsError, and f is not
// called. A number in a member of type any is a json.Number of encoding/json, with all
// its digits.
//
// The result of f is a text if Out is a string type, the parts themselves if Out is
// event.Part or []event.Part, and JSON otherwise. Invalid UTF-8 in a result becomes
// U+FFFD.
//
// f is called concurrently.
func NewTool[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) (Tool, error) {
	if name == "" || f == nil {
		return Tool{}, fmt.Errorf("tool %q: name or function is missing", name)
	}
	a := &arguments{tool: name}
	parameters, err := a.infer(reflect.TypeFor[In]())
	if err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", name, err)
	}
	run := func(ctx context.Context, call event.Part) ([]event.Part, error) {
		var in In
		if err := a.decode(call.Arguments, &in); err != nil {
			return nil, err
		}
		out, err := f(ctx, in)
		if err != nil {
			return nil, err
		}
		return content(out)
	}
	return Tool{Name: name, Description: description, Parameters: parameters, Run: run}, nil
}

// MustTool is NewTool, and panics where NewTool returns an error.
func MustTool[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) Tool {
	t, err := NewTool(name, description, f)
	if err != nil {
		panic(err)
	}
	return t
}

// infer infers the schema of the arguments, and returns it as JSON.
func (a *arguments) infer(in reflect.Type) (jsontext.Value, error) {
	s, err := schemaOf(in)
	if err != nil {
		return nil, err
	}
	if a.resolved, err = s.Resolve(&jsonschema.ResolveOptions{}); err != nil {
		return nil, err
	}
	return s.MarshalJSON()
}

// content is the content of a result.
func content(out any) ([]event.Part, error) {
	switch out := out.(type) {
	case []event.Part:
		return out, nil
	case event.Part:
		return []event.Part{out}, nil
	}
	if v := reflect.ValueOf(out); v.Kind() == reflect.String {
		return []event.Part{event.Text(strings.ToValidUTF8(v.String(), "\uFFFD"))}, nil
	}
	raw, err := json.Marshal(out, numbers, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return []event.Part{event.Text(string(raw))}, nil
}

package flow

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// ToolSpec is a function that a model may call. Tool makes one of a Go function.
type ToolSpec struct {
	Name, Description string
	// Parameters is the JSON Schema of the arguments, an object; nil means no arguments.
	Parameters jsontext.Value
	// Class decides whether an interrupted call runs again; idempotent if empty.
	Class event.EffectClass
	// Retry says how often a failed call is tried. The zero Retry is once.
	Retry Retry
	// Timeout bounds an attempt; 0 is no bound.
	Timeout time.Duration
	// Review decides whether a person must approve the call; nil never asks.
	Review func(ctx context.Context, call event.Part) (*Question, error)
	// Run runs the call and returns the content of its result. An error is told to the
	// model.
	Run func(ctx context.Context, call event.Part) ([]event.Part, error)

	invalid error // of the agent that runs the tool
}

// ToolOption is an option of Tool: Once, Review or a Retry.
type ToolOption interface{ apply(t *ToolSpec) }

type toolOption func(t *ToolSpec)

func (f toolOption) apply(t *ToolSpec) { f(t) }

func (r Retry) apply(t *ToolSpec) { t.Retry = r }

// Once gives a tool the class unsafe_once: no call runs twice. It needs a review.
var Once ToolOption = toolOption(func(t *ToolSpec) { t.Class = event.EffectUnsafeOnce })

// Review asks a person about each call of a tool. ToolSpec.Review asks about some calls.
func Review(prompt string) ToolOption {
	return toolOption(func(t *ToolSpec) {
		t.Review = func(context.Context, event.Part) (*Question, error) { return &Question{Prompt: prompt}, nil }
	})
}

// Tool makes a tool of a function. The JSON Schema of its arguments is inferred from In, a
// struct or a map with string keys: names and optional members come from json tags (omitempty
// and omitzero make a member optional), descriptions from jsonschema tags. A type has a schema
// of its own if it has a method JSONSchema() jsontext.Value, for example for an enum; the
// schema has a type, and the method is called on the zero value. Tool panics without a name or a
// function, and if In has no schema, for example because of a channel, a function or a cycle.
//
// Arguments of a call that do not fit the schema are an error, which the model gets, and f is
// not called. A number in a member of type any is a json.Number of encoding/json, with all its
// digits.
//
// The result of f is a text if Out is a string type, the parts themselves if Out is
// event.Part or []event.Part, and JSON otherwise. Invalid UTF-8 in a result becomes
// U+FFFD.
//
// f is called concurrently.
func Tool[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error), options ...ToolOption) ToolSpec {
	if name == "" || f == nil {
		panic(fmt.Sprintf("flow.Tool %q: name or function is missing", name))
	}
	form, err := newForm("arguments", reflect.TypeFor[In]())
	if err != nil {
		panic(fmt.Sprintf("flow.Tool %q: %v", name, err))
	}
	t := ToolSpec{Name: name, Description: description, Parameters: form.schema, Run: func(ctx context.Context, call event.Part) ([]event.Part, error) {
		var in In
		if err := decodeArguments(name, form, call.Arguments, &in); err != nil {
			return nil, err
		}
		out, err := f(ctx, in)
		if err != nil {
			return nil, err
		}
		return content(out)
	}}
	for _, o := range options {
		o.apply(&t)
	}
	return t
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

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/anthropic"
	"github.com/convlog/convlog/flow/openai"
)

// newModel is the model with a name of the flag -model.
func newModel(name, url string) (flow.Model, error) {
	provider, name, _ := strings.Cut(name, ":")
	switch provider {
	case "script":
		return typist{flow.Script{Answers: []flow.ScriptAnswer{{Make: look}, {Make: act}, {Make: tell}}}}, nil
	case "openai":
		return &openai.Client{BaseURL: url, Key: os.Getenv("OPENAI_API_KEY"), Model: name}, nil
	case "anthropic":
		return &anthropic.Client{BaseURL: url, Key: os.Getenv("ANTHROPIC_API_KEY"), Model: name}, nil
	}
	return nil, fmt.Errorf("unknown model %q", provider)
}

// typist is a script that types like a person.
type typist struct{ flow.Script }

func (t typist) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	return t.Script.Generate(ctx, r, func(d eventlog.Delta) { time.Sleep(20 * time.Millisecond); emit(d) })
}

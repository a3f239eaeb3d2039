package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/anthropic"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/flow/openai"
)

// newModels are the models with a name of the flag -model.
func newModels(name, url string) (m models, err error) {
	if m.support, err = newModel(name, url, look, act, tell); err == nil {
		m.carrier, err = newModel(name, url, find, report)
	}
	return m, err
}

// newModel is a model. The script is for an agent without a network.
func newModel(name, url string, script ...step) (flow.Model, error) {
	provider, name, _ := strings.Cut(name, ":")
	switch provider {
	case "script":
		var t typist
		for _, s := range script {
			t.Script = append(t.Script, s)
		}
		return t, nil
	case "openai":
		return &openai.Client{BaseURL: url, Key: os.Getenv("OPENAI_API_KEY"), Model: name}, nil
	case "anthropic":
		return &anthropic.Client{BaseURL: url, Key: os.Getenv("ANTHROPIC_API_KEY"), Model: name}, nil
	}
	return nil, fmt.Errorf("unknown model %q", provider)
}

// typist is a script that types like a person, and counts a word as a token.
type typist struct{ flowtest.Script }

func (t typist) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	x, err := t.Script.Generate(ctx, r, func(d eventlog.Delta) { time.Sleep(20 * time.Millisecond); emit(d) })
	x.Message.Usage.OutputTokens = words(x.Message)
	for _, m := range r.Messages {
		x.Message.Usage.InputTokens += words(m.Message)
	}
	return x, err
}

func words(m event.Message) int64 { return int64(len(strings.Fields(m.Text()))) }

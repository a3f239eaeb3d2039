package runlog_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/runlog"
)

// A deeply nested payload is not indented: a megabyte would become gigabytes.
func TestDeepPayloadsAreNotIndented(t *testing.T) {
	for _, levels := range []int{3, 1000} {
		log := eventlog.Open(garden.Backends["jsonl"](t.TempDir()))
		g := &garden.Garden{T: t, Log: log}
		arguments := strings.Repeat(`["\"[\\",1,`, levels) + "0" + strings.Repeat("]", levels)
		g.Append("s", event.UserMessage("do it"))
		g.Append("s", event.New(event.Message{Role: event.Assistant,
			Parts: []event.Part{event.ToolCall("c", "run", jsontext.Value(arguments))}}))
		run, err := runlog.Load(garden.Bg, log, "s")
		g.Allow(err)
		var tree, list strings.Builder
		g.Allow(run.OpTreeFile().WriteJSON(&tree))
		g.Allow(run.Log(false).WriteJSON(&list))
		alone, err := rawjson.Indent(jsontext.Value(arguments))
		g.Allow(err)
		for what, text := range map[string]string{"op tree": tree.String(), "run log": list.String(), "value": string(alone)} {
			if indented := strings.Contains(text, "\n  "); indented != (levels == 3) || len(text) > 10_000+4*len(arguments) {
				t.Errorf("%s of %d levels: indented is %v, %d bytes", what, levels, indented, len(text))
			}
			if v := jsontext.Value(text); !v.IsValid() {
				t.Errorf("%s of %d levels is no JSON", what, levels)
			}
		}
		g.Allow(log.Close())
	}
	if v, err := rawjson.Indent(jsontext.Value(`{"a":[1]}`)); err != nil || string(v) != "{\n  \"a\": [\n    1\n  ]\n}" {
		t.Errorf("indented: %s, %v", v, err)
	}
}

// A model effect with many steps uses memory linear in the steps.
func TestStepsOfOneEffectAreReadOnce(t *testing.T) {
	steps := testsize.Pick(1000, 2000, 3000)
	few, many := bytesOfSteps(t, steps/4), bytesOfSteps(t, steps)
	if many > 2*4*few {
		t.Errorf("%d steps took %d bytes, and %d steps %d", steps/4, few, steps, many)
	}
}

// bytesOfSteps returns the number of bytes that a load of a model effect allocates.
func bytesOfSteps(t *testing.T, steps int) uint64 {
	t.Helper()
	log := eventlog.Open(garden.Backends["jsonl"](t.TempDir()))
	defer func() { _ = log.Close() }()
	g := &garden.Garden{T: t, Log: log}
	turn := event.New(event.TurnStart{})
	g.Append("s", turn)
	events := []event.Event{event.New(event.EffectIntent{Key: "k", Kind: "model", TurnID: turn.ID,
		Ordinal: "0", Class: event.EffectPure})}
	for i := range steps {
		events = append(events, event.New(event.StepStart{Step: i, TurnID: turn.ID, Model: "m"}))
	}
	g.Append("s", events...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run, err := runlog.Load(garden.Bg, log, "s")
	g.Allow(err)
	runtime.ReadMemStats(&after)
	ops := run.Turns[0].Ops
	if len(ops) != 1 || strings.Count(string(ops[0].Request), `"step":`) != steps || !ops[0].Request.IsValid() {
		t.Errorf("%d ops, the first of which has a request of %d bytes", len(ops), len(ops[0].Request))
	}
	return after.TotalAlloc - before.TotalAlloc
}

package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/store/memory"
)

type invoice struct {
	Number string   `json:"number" jsonschema:"as printed"`
	Cents  int64    `json:"cents"`
	Tags   []string `json:"tags,omitempty"`
}

// asking runs a turn that asks for a T, over a new log.
func asking[T any](t *testing.T, m flow.Model, r flow.Request) (value T, out flow.Output[notes], err error) {
	t.Helper()
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { log.Close() })
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) (err error) {
		value, err = flow.Ask[T](ctx, tn, m, r)
		return err
	}}
	out, err = a.Run(t.Context(), "s", flow.Text("Read it."))
	return value, out, err
}

func TestAskDecodesTheAnswer(t *testing.T) {
	var asked *flow.Request
	script := func(answer string) flowtest.Script {
		return flowtest.Script{func(ctx context.Context, r *flow.Request) (flow.Response, error) {
			asked = r
			return flowtest.Say(answer)(ctx, r)
		}}
	}
	got, _, err := asking[invoice](t, script("```json\n{\"number\":\"A1\",\"cents\":9007199254740993}\n```\n"), flow.Request{System: "Be exact."})
	if err != nil || got.Number != "A1" || got.Cents != 9007199254740993 {
		t.Fatalf("%v %+v", err, got)
	}
	if !strings.HasPrefix(asked.System, "Be exact.\n\n") || !strings.HasSuffix(asked.System, string(asked.Output)) || !strings.Contains(string(asked.Output), `"as printed"`) {
		t.Errorf("the request has the system text %q and the schema %s", asked.System, asked.Output)
	}
	if got, _, err := asking[bool](t, script(`{"answer":true}`), flow.Request{}); err != nil || !got {
		t.Errorf("bool: %v %v", err, got)
	}
	if got, _, err := asking[[]string](t, script(`{"answer":["a","b"]}`), flow.Request{}); err != nil || len(got) != 2 {
		t.Errorf("list: %v %q", err, got)
	}
	if got, _, err := asking[*invoice](t, script(`{"number":"A1","cents":1}`), flow.Request{}); err != nil || got.Cents != 1 {
		t.Errorf("pointer: %v %v", err, got)
	}
	if got, _, err := asking[map[string]int](t, script(`{"a":1}`), flow.Request{}); err != nil || got["a"] != 1 {
		t.Errorf("map: %v %v", err, got)
	}
}

func TestAskRefusesAnswers(t *testing.T) {
	for answer, problem := range map[string]string{
		"":                                    "not valid JSON",
		"The number is A1.":                   "not valid JSON",
		`{"number":"A1","cents":1} Done.`:     "not valid JSON",
		`["A1"]`:                              "answer: expected object, got array",
		`{"number":"A1"}`:                     "cents: missing, expected integer",
		`{"number":"A1","cents":"1"}`:         `cents: expected integer, got string "1"`,
		`{"number":"A1","cents":1,"total":1}`: "total: unknown member",
		`{"number":"A1","cents":1e40}`:        "cents: expected integer",
		`{"number":"A1","cents":99999999999999999999}`: "cents",
	} {
		var told []string
		m := flowtest.Script{flowtest.Say(answer), flowtest.Say(answer), func(ctx context.Context, r *flow.Request) (flow.Response, error) {
			for _, x := range r.Messages {
				if x.Message.Role == event.Developer {
					told = append(told, x.Message.Text())
				}
			}
			return flowtest.Say(`{"number":"A1","cents":2}`)(ctx, r)
		}}
		if answer == "" { // the history does not have an answer that says nothing
			n := 0
			said := m
			m = flowtest.Script{func(ctx context.Context, r *flow.Request) (flow.Response, error) { n++; return said[n-1](ctx, r) }}
		}
		got, _, err := asking[invoice](t, m, flow.Request{})
		if err != nil || got.Cents != 2 || len(told) != 2 || !strings.Contains(told[0], problem) {
			t.Errorf("%s: %v %+v; the model is told %q, want %q", answer, err, got, told, problem)
		}
	}
}

// A value of a refused answer does not get into a later one.
func TestAskForgetsARefusedAnswer(t *testing.T) {
	got, _, err := asking[invoice](t, flowtest.Script{flowtest.Say(`{"number":"A1","cents":99999999999999999999,"tags":["x"]}`), flowtest.Say(`{"number":"A1","cents":1}`)}, flow.Request{})
	if err != nil || got.Tags != nil {
		t.Fatalf("%v %+v", err, got)
	}
}

func TestAskGivesUp(t *testing.T) {
	asked := 0
	cut := func(context.Context, *flow.Request) (flow.Response, error) {
		asked++
		return flow.Response{Message: event.Message{StopReason: "length", Parts: []event.Part{event.Text(`{"number":"A`)}}}, nil
	}
	got, out, err := asking[invoice](t, flowtest.Script{cut, cut, cut, cut}, flow.Request{})
	var failed *flow.ModelError
	if !errors.As(err, &failed) || failed.Code != "schema" || !failed.Permanent() || asked != 3 || got.Number != "" || out.Status != flow.StatusFailed {
		t.Fatalf("%v after %d answers: %+v, %s", err, asked, got, out.Status)
	}
	for _, want := range []string{"3 answers", "not valid JSON", "limit of tokens", "simpler type"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func TestAskRunsTools(t *testing.T) {
	tool := flow.Tool("look", "Looks it up.", func(context.Context, struct{}) (string, error) { return "12", nil })
	m := flowtest.Script{flowtest.Say("", event.ToolCall("1", "look", jsontext.Value(`{}`))), func(ctx context.Context, r *flow.Request) (flow.Response, error) {
		result := r.Messages[len(r.Messages)-1].Message.ToolResults()[0].Content[0].Text
		return flowtest.Say(`{"number":"A1","cents":`+result+`}`)(ctx, r)
	}}
	if got, _, err := asking[invoice](t, m, flow.Request{Tools: []flow.ToolSpec{tool}}); err != nil || got.Cents != 12 {
		t.Fatalf("%v %+v", err, got)
	}
}

func TestAskNeedsASchema(t *testing.T) {
	if _, _, err := asking[chan int](t, flowtest.Script{}, flow.Request{}); !errors.Is(err, flow.ErrStart) || !strings.Contains(err.Error(), "Ask[chan int]") {
		t.Fatal(err)
	}
}

// A process is killed at each append while a model is corrected. The next one asks no question
// twice that has an answer, and both get the same value.
func TestAskSurvivesKills(t *testing.T) {
	for _, how := range []crash{crashBefore, crashAfter} {
		fired := true
		for n := 1; fired; n++ {
			t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) {
				w := newWorld(t, 0)
				answers := flowtest.Script{flowtest.Say("one"), flowtest.Say("two"), flowtest.Say(`{"number":"A1","cents":3}`)}
				model := modelFunc(func(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
					w.ran(ctx, "model")
					return answers.Generate(ctx, r, emit)
				})
				turn := func(ctx context.Context, tn *flow.Turn[notes]) error {
					v, err := flow.Ask[invoice](ctx, tn, model, flow.Request{})
					if err != nil {
						return err
					}
					return tn.Update(func(n *notes) error { n.Count = int(v.Cents); return nil })
				}
				process := func(s *crashStore) (flow.Output[notes], error) {
					log := eventlog.Open(s)
					defer log.Close()
					in := flow.Text("go")
					in.ID = "go"
					return (&flow.Agent[notes]{Name: "a", Log: log, Turn: turn}).Run(t.Context(), "s", in)
				}
				s := &crashStore{Store: w.data.Handle(), n: n, how: how}
				out, err := process(s)
				if fired = s.fired; fired {
					out, err = process(&crashStore{Store: w.data.Handle()})
				}
				if err != nil || out.Custom.Count != 3 || len(out.Messages) != 6 {
					t.Fatalf("%v: %+v", err, out)
				}
				if asked := w.executions()["model"]; asked < 3 || asked > 4 {
					t.Errorf("the model was asked %d times", asked)
				}
			})
		}
	}
}

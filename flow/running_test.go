package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/store/memory"
)

// recorder is an agent whose tools add messages and artifacts to the session. asked has the
// history of the last call of the model.
type recorder struct{ asked string }

func (r *recorder) agent(log *eventlog.Log) *flow.Agent[notes] {
	tool := flow.Tool("t", "", func(ctx context.Context, in struct{ N int }) (string, error) {
		run, _ := flow.FromContext(ctx)
		if err := run.SetArtifact(ctx, event.Artifact{Name: fmt.Sprint("report ", in.N)}, []byte("body")); err != nil {
			return "", err
		}
		if err := run.Add(event.Message{Role: event.User, Parts: []event.Part{event.Text(fmt.Sprint("note ", in.N))}}); err != nil {
			return "", err
		}
		if in.N == 3 {
			return "", errors.New("no")
		}
		return "ok", nil
	})
	model := modelFunc(func(_ context.Context, q *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
		var history []string
		for _, x := range q.Messages {
			history = append(history, string(x.Message.Role)+":"+x.Message.Text())
		}
		if r.asked = strings.Join(history, " "); len(q.Messages) > 1 {
			return flow.Response{Message: said("end")}, nil
		}
		var m event.Message
		for n := 1; n <= 3; n++ {
			m.Parts = append(m.Parts, event.ToolCall(fmt.Sprint(n), "t", jsontext.Value(fmt.Sprintf(`{"N":%d}`, n))))
		}
		return flow.Response{Message: m}, nil
	})
	return &flow.Agent[notes]{Name: "a", Log: log, Turn: flow.Chat[notes](model, flow.Request{}, tool)}
}

// A tool adds a message and an artifact to its session. Each is recorded once, whenever the
// process is killed, and the model gets the messages after all results. A tool that fails
// records nothing.
func TestAToolRecords(t *testing.T) {
	for how, name := range map[crash]string{crashBefore: "before", crashAfter: "after"} {
		for n, fired := 1, true; fired; n++ {
			t.Run(fmt.Sprint(name, " append ", n), func(t *testing.T) {
				data, r := memory.New(), &recorder{}
				store := &crashStore{Store: data.Handle(), n: n, how: how}
				log := eventlog.Open(store)
				out, err := r.agent(log).Run(t.Context(), "s", flow.Text("x"))
				log.Close()
				if fired = store.fired; err != nil != fired {
					t.Fatal(err)
				}
				log = eventlog.Open(data)
				defer log.Close()
				if fired {
					if out, err = r.agent(log).Run(t.Context(), "s", flow.Input{ID: "again", Messages: flow.Text("y").Messages}); err != nil {
						t.Fatal(err)
					}
					checkOnce(t, out)
					return
				}
				checkOnce(t, out)
				notes := strings.Fields(strings.TrimPrefix(r.asked, "user:x assistant: tool: tool: tool: "))
				if slices.Sort(notes); strings.Join(notes, " ") != "1 2 user:note user:note" {
					t.Fatalf("the model got %q", r.asked)
				}
				again, err := flowtest.Run(t.Context(), r.agent(nil), log, "s")
				if err != nil || again.Turns != 1 {
					t.Fatalf("the replay: %v, %+v", err, again)
				}
				again.Log.Close()
			})
		}
	}
}

// checkOnce checks that the session has the messages and artifacts of the tools once.
func checkOnce(t *testing.T, out flow.Output[notes]) {
	t.Helper()
	var texts, names []string
	for _, m := range out.Messages {
		if strings.HasPrefix(m.Text(), "note") {
			texts = append(texts, m.Text())
		}
	}
	for _, a := range out.Artifacts {
		names = append(names, a.Name)
	}
	slices.Sort(texts)
	slices.Sort(names)
	if want := []string{"note 1", "note 2"}; !slices.Equal(texts, want) || !slices.Equal(names, []string{"report 1", "report 2"}) {
		t.Fatalf("messages %q, artifacts %q", texts, names)
	}
}

// The value of FromContext records nothing outside an effect.
func TestRecordOutsideAnEffect(t *testing.T) {
	run, ok := flow.FromContext(t.Context())
	if err := run.Add(event.Message{Role: event.User, Parts: []event.Part{event.Text("x")}}); ok || err == nil {
		t.Fatal("a message was added")
	}
	if err := run.SetArtifact(t.Context(), event.Artifact{Name: "x"}, nil); err == nil {
		t.Fatal("an artifact was added")
	}
}

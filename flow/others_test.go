package flow_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

// ownEvents are what a tool may append to its own session while its turn runs.
var ownEvents = map[string]func(ctx context.Context, l *eventlog.Log, s string) error{
	"an input": func(ctx context.Context, l *eventlog.Log, s string) error { return post(ctx, l, s, flow.Text("later")) },
	"an artifact": func(ctx context.Context, l *eventlog.Log, s string) error {
		_, _, err := l.StoreArtifact(ctx, s, eventlog.Any(), event.Artifact{ArtifactID: event.NewID().String(), Name: "report.txt"}, bytes.NewReader([]byte("body")))
		return err
	},
	"an own type": func(ctx context.Context, l *eventlog.Log, s string) error {
		_, err := l.Append(ctx, s, eventlog.Any(), event.Event{ID: event.NewID(), Type: "shop:audited", Data: []byte(`{"by":"charge"}`)})
		return err
	},
	"a message": func(ctx context.Context, l *eventlog.Log, s string) error {
		_, err := l.Append(ctx, s, eventlog.Any(), event.UserMessage("by the way"))
		return err
	},
	"a context": func(ctx context.Context, l *eventlog.Log, s string) error {
		_, err := l.Append(ctx, s, eventlog.Any(), event.New(event.ContextEntry{Kind: "note", Placement: event.AsPrefix, Parts: []event.Part{event.Text("a note")}}))
		return err
	},
	"a title": func(ctx context.Context, l *eventlog.Log, s string) error {
		_, err := l.Append(ctx, s, eventlog.Any(), event.New(event.Session{Updated: true, Title: "t"}))
		return err
	},
	"another state": func(ctx context.Context, l *eventlog.Log, s string) error {
		_, err := l.Append(ctx, s, eventlog.Any(), event.New(event.CustomPatch{Name: "other", Patch: []byte(`[{"op":"add","path":"","value":1}]`)}))
		return err
	},
}

// A tool appends to its session while its turn runs, also when a server runs it: the turn ends,
// and the tool runs once.
func TestAToolAppendsToItsSession(t *testing.T) {
	for name, f := range ownEvents {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := eventlog.Open(memory.New())
				defer l.Close()
				ran := 0
				tool := flow.Tool("t", "", func(ctx context.Context, _ struct{}) (string, error) {
					if ran++; ran > 9 {
						return "", errors.New("again and again")
					}
					r, _ := flow.FromContext(ctx)
					return "ok", f(ctx, l, r.Session)
				})
				model := modelFunc(func(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
					for _, x := range r.Messages {
						if x.Message.Role == event.Tool {
							return flow.Response{Message: said("end")}, nil
						}
					}
					return flow.Response{Message: event.Message{Parts: []event.Part{event.ToolCall("1", "t", nil)}}}, nil
				})
				a := &flow.Agent[notes]{Name: "a", Log: l, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
					if tn.Index() > 0 {
						return nil // the posted input
					}
					return flow.Chat[notes](model, flow.Request{}, tool)(ctx, tn)
				}}
				in := flow.Text("x")
				in.PostOnly = true
				if _, err := a.Send(t.Context(), "s", in); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				if err := a.Serve(ctx); err != nil {
					t.Fatal(err)
				}
				info, err := flow.Info(t.Context(), l, "s")
				if err != nil || info.Status != flow.StatusFinished || ran != 1 {
					t.Fatalf("%v %s, ran %d", err, info.Status, ran)
				}
			})
		})
	}
}

// A message of another writer comes between a call and its result. The next call of the model
// has it after the result, and its record says how far it saw. An attempt after a kill sees the
// same, although a further message has come.
func TestAMessageOfAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := eventlog.Open(memory.New())
		defer l.Close()
		add := func(text string) {
			if _, err := l.Append(context.Background(), "s", eventlog.Any(), event.UserMessage(text)); err != nil {
				t.Error(err)
			}
		}
		tool := flow.Tool("t", "", func(context.Context, struct{}) (string, error) { add("in between"); return "ok", nil })
		var asked []string
		hang := true
		model := modelFunc(func(ctx context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
			var roles []string
			for _, x := range r.Messages {
				roles = append(roles, string(x.Message.Role)+":"+x.Message.Text())
			}
			asked = append(asked, strings.Join(roles, " "))
			if len(r.Messages) == 1 {
				return flow.Response{Message: event.Message{Parts: []event.Part{event.ToolCall("1", "t", nil)}}}, nil
			}
			if hang {
				add("too late")
				<-ctx.Done()
				return flow.Response{}, ctx.Err()
			}
			return flow.Response{Message: said("end")}, nil
		})
		var seen []string
		a := &flow.Agent[notes]{Name: "a", Log: l, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			look := func() error {
				messages, err := tn.Messages()
				var texts []string
				for _, m := range messages {
					texts = append(texts, string(m.Role)+":"+m.Text())
				}
				seen = append(seen, strings.Join(texts, " "))
				return err
			}
			answer, err := tn.Model(ctx, model, flow.Request{Tools: []flow.ToolSpec{tool}})
			if err != nil {
				return err
			}
			if err := tn.Tools(ctx, []flow.ToolSpec{tool}, answer.ToolCalls()); err != nil {
				return err
			}
			if err := look(); err != nil {
				return err
			}
			_, err = tn.Model(ctx, model, flow.Request{Tools: []flow.ToolSpec{tool}})
			return err
		}}
		ctx, stop := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Minute); stop() }()
		if _, err := a.Run(ctx, "s", flow.Text("x")); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		hang = false
		out, err := resume(t.Context(), a, "s")
		if err != nil || out.Status != flow.StatusFinished {
			t.Fatal(err)
		}
		want := "user:x assistant: tool: user:in between"
		if len(asked) != 3 || asked[1] != want || asked[2] != want || len(seen) != 2 || seen[0] != seen[1] {
			t.Fatalf("asked %q\nseen %q", asked, seen)
		}
		if out, err = a.Run(t.Context(), "s", flow.Text("y")); err != nil || !strings.Contains(asked[3], "too late") {
			t.Fatalf("%v, asked %q", err, asked)
		}
	})
}

// These events of another writer stop a runner, and the error names the event.
func TestEventsThatStopARunner(t *testing.T) {
	for name, e := range map[string]event.Event{
		"turn_started":    event.New(event.TurnStart{Agent: "b"}),
		"effect_intended": event.New(event.EffectIntent{Key: "k", Class: event.EffectPure, Attempt: 1}),
		"custom_patched":  event.New(event.CustomPatch{Name: "a", Patch: []byte(`[{"op":"add","path":"","value":{}}]`)}),
		"run_claimed":     event.New(event.RunClaim{Epoch: 2, Runner: "x"}),
		"child_requested": event.New(event.Child{State: event.ChildRequested, ChildID: "c", ChildSessionID: "c"}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := eventlog.Open(memory.New())
				defer l.Close()
				a := &flow.Agent[notes]{Name: "a", Log: l, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
					_, err := flow.Do(ctx, tn, flow.Effect{Name: "x"}, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
					return err
				}}
				h, err := a.Send(t.Context(), "s", flow.Text("x"))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if _, err := l.Append(t.Context(), "s", eventlog.Any(), e); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Wait(t.Context()); !errors.Is(err, flow.ErrOvertaken) || !strings.Contains(err.Error(), name) {
					t.Fatal(err)
				}
			})
		})
	}
}

// A server waits longer after each failure of a session, and marks its turn as failed at last.
func TestAServerBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := eventlog.Open(memory.New())
		defer l.Close()
		var at []time.Time
		a := &flow.Agent[notes]{Name: "a", Log: l, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			at = append(at, time.Now())
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "x"}, func(ctx context.Context) (int, error) {
				_, err := l.Append(ctx, "s", eventlog.Any(), event.New(event.CustomPatch{Name: "a", Patch: []byte(`[{"op":"add","path":"","value":{}}]`)}))
				return 1, err
			})
			return err
		}}
		in := flow.Text("x")
		in.PostOnly = true
		if _, err := a.Send(t.Context(), "s", in); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := a.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		info, err := flow.Info(t.Context(), l, "s")
		if err != nil || info.Status != flow.StatusFailed || len(at) != 8 {
			t.Fatalf("%v %s, ran %d times", err, info.Status, len(at))
		}
		for i := 2; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < at[i-1].Sub(at[i-2]) {
				t.Errorf("the delays do not grow: %v", slices.Collect(slices.Values(at)))
			}
		}
	})
}

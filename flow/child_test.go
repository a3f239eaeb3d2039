package flow_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/verify"
)

// family is an agent "top" with a child "middle" with a child "low", whose effect needs a
// review.
type family struct {
	log              *eventlog.Log
	top, middle, low *flow.Agent[notes]
	paid             atomic.Int64
	mode             event.ChildMode
}

func newFamily(t *testing.T) *family {
	f := &family{log: eventlog.Open(memory.New()), mode: event.ChildFresh}
	t.Cleanup(func() { f.log.Close() })
	f.low = &flow.Agent[notes]{Name: "low", Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		paid, err := flow.Do(ctx, t, flow.Effect{Name: "pay", Class: event.EffectUnsafeOnce, Review: &flow.Question{Prompt: "Pay?"}},
			func(context.Context) (string, error) {
				f.paid.Add(1)
				said := "paid"
				for _, m := range t.Input().Messages {
					said += " " + m.Text()
				}
				return said, nil
			})
		if err != nil {
			return err
		}
		if err := t.SetArtifact(ctx, event.Artifact{Name: "receipt"}, []byte("the receipt")); err != nil {
			return err
		}
		if err := t.SetArtifact(ctx, event.Artifact{Name: "file", Kind: "workspace_file_ref", URI: "a.txt"}, nil); err != nil {
			return err
		}
		return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(paid)}})
	}}
	f.middle = &flow.Agent[notes]{Name: "middle", Turn: delegate(f.low, &f.mode)}
	f.top = &flow.Agent[notes]{Name: "top", Log: f.log, Turn: delegate(f.middle, &f.mode)}
	return f
}

// delegate gives the input to a child, and says what the child said.
func delegate(child *flow.Agent[notes], mode *event.ChildMode) func(context.Context, *flow.Turn[notes]) error {
	return func(ctx context.Context, t *flow.Turn[notes]) error {
		said, err := flow.Do(ctx, t, flow.Effect{Name: "delegate"}, func(ctx context.Context) (string, error) {
			out, err := flow.RunChild(ctx, child, t.Input(), flow.ChildOptions{Mode: *mode})
			if err != nil {
				return "", err
			}
			return child.Name + ": " + out.Message.Text(), nil
		})
		if err != nil {
			return err
		}
		return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(said)}})
	}
}

// check checks that the store has n sessions and no damage, and that no child is open.
func (f *family) check(t *testing.T, n int) {
	t.Helper()
	count := 0
	for info, err := range f.log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		count++
		p, err := projection.LoadPending(t.Context(), f.log, info.ID)
		if err != nil || len(p.Children) > 0 || p.Turn != nil && p.Turn.Agent == "" {
			t.Errorf("session %s: %v, open children %+v", info.ID, err, p.Children)
		}
		r, err := verify.Session(t.Context(), f.log, info.ID)
		if err != nil || r.Damaged() > 0 || len(r.Notes) > 0 {
			t.Errorf("verify %s: %v, %+v", info.ID, err, r)
		}
	}
	if count != n {
		t.Errorf("%d sessions, want %d", count, n)
	}
}

// killAfter runs "top" in session "s" until began gets a value. Then it ends the context of
// the runner, and waits until the runner has ended.
func (f *family) killAfter(t *testing.T, began <-chan struct{}) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	c, err := connect(ctx, f.top, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendText("go"); err != nil {
		t.Fatal(err)
	}
	<-began
	kill()
	<-c.Done()
}

// callsOnce is a model that calls each tool once, with a task, and then says the results.
func callsOnce(tools ...string) flow.Model {
	return modelFunc(func(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
		m := event.Message{Provider: "p", Model: "m", Usage: event.Usage{InputTokens: 5, OutputTokens: 1}}
		var said []string
		for _, x := range r.Messages {
			for _, p := range x.Message.ToolResults() {
				said = append(said, p.Content[0].Text)
			}
		}
		if said != nil {
			m.Parts = []event.Part{event.Text(strings.Join(said, ", "))}
			return flow.Response{Message: m}, nil
		}
		for _, name := range tools {
			m.Parts = append(m.Parts, event.ToolCall("call-"+name, name, jsontext.Value(`{"task":"count"}`)))
		}
		return flow.Response{Message: m}, nil
	})
}

// What the model of a child gets, by mode. In a fork, the call of the child is answered.
func TestWhatAChildKnows(t *testing.T) {
	for mode, want := range map[event.ChildMode]string{
		"":                 "user: count",
		event.ChildHandoff: "user: the user is kind | user: count",
		event.ChildFork: "user: delegate | assistant: | tool: You are the sub-agent that this call began. Your task follows. | " +
			"tool: This call is not part of your task. | user: count",
	} {
		t.Run(string(mode), func(t *testing.T) {
			log := eventlog.Open(memory.New())
			defer log.Close()
			var got []string
			child := &flow.Agent[notes]{Name: "child", Turn: flow.Chat[notes](modelFunc(func(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
				for _, x := range r.Messages {
					text := x.Message.Text()
					for _, p := range x.Message.ToolResults() {
						text += p.Content[0].Text
					}
					got = append(got, strings.TrimSpace(string(x.Message.Role)+": "+text))
				}
				return flow.Response{Message: event.Message{Provider: "p", Model: "m", Parts: []event.Part{event.Text("7")}}}, nil
			}), flow.Request{})}
			o := flow.ChildOptions{Mode: mode}
			if mode == event.ChildHandoff {
				o.Context = "the user is kind"
			}
			top := &flow.Agent[notes]{Name: "top", Log: log, Turn: flow.Chat[notes](callsOnce("counter", "other"), flow.Request{},
				flow.AgentTool("counter", "counts", child, o), flow.ToolSpec{Name: "other", Run: func(ctx context.Context, _ event.Part) ([]event.Part, error) {
					return []event.Part{event.Text("the other result")}, nil
				}})}
			out, err := top.Run(t.Context(), "s", flow.Text("delegate"))
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got, " | "); s != want {
				t.Errorf("the child got %q, want %q", s, want)
			}
			if s := out.Message.Text(); s != "7, the other result" {
				t.Errorf("the parent says %q", s)
			}
		})
	}
}

// A fork that is a child has only the status of its own turns. The parent's open
// turn is not open in the child.
func TestAForkThatFails(t *testing.T) {
	f := newFamily(t)
	low := &flow.Agent[notes]{Name: "low", Turn: func(context.Context, *flow.Turn[notes]) error { return errors.New("no luck") }}
	f.mode = event.ChildFork
	f.top.Turn = delegate(low, &f.mode)
	if _, err := f.top.Run(t.Context(), "s", flow.Text("go")); err == nil {
		t.Fatal("no error")
	}
	for info, err := range flow.Runs(t.Context(), f.log) {
		if err != nil || info.Status != flow.StatusFailed || info.Turn != nil || len(info.Effects) > 0 {
			t.Errorf("session %s is %s, open %+v, %v", info.Session, info.Status, info.Effects, err)
		}
	}
	f.check(t, 2)
}

func TestLimitsOfChildren(t *testing.T) {
	f := newFamily(t)
	var ran atomic.Int64
	var recurse flow.Agent[notes]
	recurse = flow.Agent[notes]{Name: "recurse", Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		ran.Add(1)
		_, err := flow.Do(ctx, t, flow.Effect{Name: "deeper"}, func(ctx context.Context) (int, error) {
			_, err := flow.RunChild(ctx, &recurse, t.Input(), flow.ChildOptions{})
			return 0, err
		})
		return err
	}, Options: flow.Options{Limits: flow.Limits{Depth: 3}}}
	a := recurse
	a.Log = f.log
	if _, err := a.Run(t.Context(), "deep", flow.Text("go")); err == nil || !strings.Contains(err.Error(), flow.ErrChildLimit.Error()) || ran.Load() != 4 {
		t.Errorf("%v after %d agents", err, ran.Load())
	}
	ran.Store(0)
	leaf := &flow.Agent[notes]{Name: "leaf", Turn: func(context.Context, *flow.Turn[notes]) error { ran.Add(1); return nil }}
	wide := &flow.Agent[notes]{Name: "wide", Log: f.log, Options: flow.Options{Limits: flow.Limits{Children: 3}}, Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		for range 4 {
			_, err := flow.Do(ctx, t, flow.Effect{Name: "leaf"}, func(ctx context.Context) (int, error) {
				_, err := flow.RunChild(ctx, leaf, t.Input(), flow.ChildOptions{})
				return 0, err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}}
	if _, err := wide.Run(t.Context(), "wide", flow.Text("go")); err == nil || !strings.Contains(err.Error(), flow.ErrChildLimit.Error()) || ran.Load() != 3 {
		t.Errorf("%v after %d leaves", err, ran.Load())
	}
}

// RunChild refuses options that cannot work, and appends nothing.
func TestRefusalsOfChildren(t *testing.T) {
	other := eventlog.Open(memory.New())
	defer other.Close()
	leaf := &flow.Agent[notes]{Name: "leaf", Turn: func(context.Context, *flow.Turn[notes]) error { return nil }}
	elsewhere := *leaf
	elsewhere.Log = other
	if _, err := flow.RunChild(t.Context(), leaf, flow.Text("go"), flow.ChildOptions{}); err == nil {
		t.Error("a child outside an effect")
	}
	for name, run := range map[string]func(context.Context, flow.Input) error{
		"two children": func(ctx context.Context, in flow.Input) error {
			_, err := flow.RunChild(ctx, leaf, in, flow.ChildOptions{})
			if err != nil {
				return err
			}
			_, err = flow.RunChild(ctx, leaf, in, flow.ChildOptions{})
			return err
		},
		"another log": func(ctx context.Context, in flow.Input) error {
			_, err := flow.RunChild(ctx, &elsewhere, in, flow.ChildOptions{})
			return err
		},
		"a context without handoff": func(ctx context.Context, in flow.Input) error {
			_, err := flow.RunChild(ctx, leaf, in, flow.ChildOptions{Context: "x"})
			return err
		},
		"a mode": func(ctx context.Context, in flow.Input) error {
			_, err := flow.RunChild(ctx, leaf, in, flow.ChildOptions{Mode: "clone"})
			return err
		},
		"no input": func(ctx context.Context, in flow.Input) error {
			_, err := flow.RunChild(ctx, leaf, flow.Input{}, flow.ChildOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily(t)
			var got error
			f.top.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
				_, err := flow.Do(ctx, t, flow.Effect{Name: "delegate"}, func(ctx context.Context) (int, error) {
					got = run(ctx, t.Input())
					return 0, got
				})
				return err
			}
			_, err := f.top.Run(t.Context(), "s", flow.Text("go"))
			if err == nil || !errors.Is(got, flow.ErrStart) && !errors.Is(got, event.ErrInvalid) {
				t.Errorf("%v, %v", err, got)
			}
			f.check(t, map[bool]int{true: 2, false: 1}[name == "two children"])
		})
	}
}

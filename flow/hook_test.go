package flow_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

// ended returns the status, the messages and the steps of a session.
func (s *shop) ended(t *testing.T, session string) (status flow.Status, messages []event.Message, steps []event.StepCompletion) {
	t.Helper()
	for e, err := range s.log.Read(t.Context(), session, eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok, _ := event.Decode[event.Message](&e); ok {
			messages = append(messages, m)
		}
		if d, ok, _ := event.Decode[event.StepCompletion](&e); ok {
			steps = append(steps, d)
		}
	}
	info, err := flow.Info(t.Context(), s.log, session)
	if err != nil {
		t.Fatal(err)
	}
	return info.Status, messages, steps
}

// newFreeShop is a shop whose tool needs no review.
func newFreeShop(t *testing.T) *shop {
	s := newShop(t, nil)
	tool := s.tool(nil)
	tool.Class = event.EffectIdempotent
	s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{System: "Be kind."}, tool)
	return s
}

func TestHooksChangeCallsInOrder(t *testing.T) {
	s := newFreeShop(t)
	var mu sync.Mutex
	var order []string
	note := func(ctx context.Context, what string) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
		return flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
	}
	hook := func(name string) flow.Hook {
		return flow.Hook{Name: name,
			BeforeModel: func(ctx context.Context, r *flow.Request) error {
				last := &r.Messages[len(r.Messages)-1].Message
				for i := range last.Parts {
					last.Parts[i].Text = strings.ReplaceAll(last.Parts[i].Text, "secret", "order-"+name)
				}
				return note(ctx, name+" before model")
			},
			AfterModel: func(ctx context.Context, r *flow.Request, a *flow.Response) error {
				a.Message.Parts = append(a.Message.Parts, event.Text("checked by "+name))
				return note(ctx, name+" after model")
			},
			BeforeTool: func(ctx context.Context, call *event.Part) error {
				call.Arguments = jsontext.Value(strings.Replace(string(call.Arguments), `"}`, `-`+name+`"}`, 1))
				call.Name = "other"
				return note(ctx, name+" before tool")
			},
			AfterTool: func(ctx context.Context, call event.Part, result *event.Part) error {
				result.Content[0].Text += " " + name
				return note(ctx, name+" after tool")
			}}
	}
	s.agent.Options.Hooks = []flow.Hook{hook("a"), hook("b")}
	out, err := s.agent.Run(t.Context(), "s", flow.Text("secret"))
	if err != nil || out.Custom.Count != 12 {
		t.Fatalf("%v, %d updates", err, out.Custom.Count)
	}
	model, tool := []string{"a before model", "b before model", "b after model", "a after model"}, []string{"a before tool", "b before tool", "b after tool", "a after tool"}
	if want := slices.Concat(model, tool, model); !slices.Equal(order, want) {
		t.Errorf("order %q", order)
	}
	_, messages, _ := s.ended(t, "s")
	if got := messages[0].Text(); got != "secret" {
		t.Errorf("the log has the input %q", got)
	}
	if got := messages[1].ToolCalls()[0]; string(got.Arguments) != `{"order":"order-a"}` {
		t.Errorf("the call is %s", got.Arguments)
	}
	if got := messages[2].ToolResults()[0].Content[0].Text; got != `paid {"order":"order-a-a-b"} b a` {
		t.Errorf("the result is %q", got)
	}
	if got := out.Message.Text(); !strings.HasSuffix(got, "checked by bchecked by a") {
		t.Errorf("the answer is %q", got)
	}
}

func TestHooksRefuse(t *testing.T) {
	no := errors.New("not on a Saturday")
	for when, hook := range map[string]flow.Hook{
		"before the call of the model":  {BeforeModel: func(context.Context, *flow.Request) error { return no }},
		"after the call of the model":   {AfterModel: func(context.Context, *flow.Request, *flow.Response) error { return no }},
		`before the call of tool "pay"`: {BeforeTool: func(context.Context, *event.Part) error { return no }},
		`after the call of tool "pay"`:  {AfterTool: func(context.Context, event.Part, *event.Part) error { return no }},
	} {
		t.Run(when, func(t *testing.T) {
			s := newFreeShop(t)
			hook.Name = "week"
			s.agent.Options.Hooks = []flow.Hook{hook}
			s.agent.Options.Retry = flow.Retry{Attempts: 3, First: time.Microsecond}
			_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
			status, messages, steps := s.ended(t, "s")
			want := `refused by hook "week" ` + when
			if strings.HasSuffix(when, "model") {
				var failed *flow.TurnError
				if !errors.As(err, &failed) || !errors.Is(err, flow.ErrDenied) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), no.Error()) || status != flow.StatusFailed {
					t.Fatalf("%v, status %s", err, status)
				}
				asked := int64(0)
				if hook.AfterModel != nil {
					asked = 1
				}
				if len(steps) != 1 || steps[0].Usage.InputTokens != 10*asked || s.calls.Load() != asked {
					t.Errorf("the model was asked %d times: %+v", s.calls.Load(), steps)
				}
				return
			}
			result := messages[2].ToolResults()[0]
			if err != nil || status != flow.StatusFinished || !result.IsError || !strings.Contains(result.Content[0].Text, want) {
				t.Fatalf("%v, status %s, the model gets %+v", err, status, result)
			}
			if ran := s.runs(); (hook.AfterTool != nil) != (ran == 1) || ran > 1 {
				t.Errorf("the tool ran %d times", ran)
			}
		})
	}
}

// A refused call of a model is made again when the input is sent again, like each call that failed.
func TestARefusedTurnIsTriedAgain(t *testing.T) {
	s := newFreeShop(t)
	budget := 0
	s.agent.Options.Hooks = []flow.Hook{{Name: "budget", BeforeModel: func(context.Context, *flow.Request) error {
		if budget == 0 {
			return errors.New("no money is left")
		}
		return nil
	}}}
	in := flow.Text("A1")
	in.ID = "one"
	if _, err := s.agent.Run(t.Context(), "s", in); !errors.Is(err, flow.ErrDenied) {
		t.Fatal(err)
	}
	budget = 1
	if out, err := s.agent.Run(t.Context(), "s", in); err != nil || out.Status != flow.StatusFinished || s.runs() != 1 {
		t.Fatalf("%v %+v", err, out)
	}
}

func TestHooksThatFail(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	ways := map[string]func() error{
		"panic: boom":                  func() error { panic("boom") },
		"it ended its goroutine":       func() error { runtime.Goexit(); return nil },
		"it did not return within 1ms": func() error { <-block; return nil },
	}
	hooks := map[string]func(f func() error) flow.Hook{
		"before the call of the model": func(f func() error) flow.Hook {
			return flow.Hook{BeforeModel: func(context.Context, *flow.Request) error { return f() }}
		},
		"after the call of the model": func(f func() error) flow.Hook {
			return flow.Hook{AfterModel: func(context.Context, *flow.Request, *flow.Response) error { return f() }}
		},
		`before the call of tool "pay"`: func(f func() error) flow.Hook {
			return flow.Hook{BeforeTool: func(context.Context, *event.Part) error { return f() }}
		},
		`after the call of tool "pay"`: func(f func() error) flow.Hook {
			return flow.Hook{AfterTool: func(context.Context, event.Part, *event.Part) error { return f() }}
		},
	}
	for problem, f := range ways {
		for when, make := range hooks {
			t.Run(when+"/"+problem, func(t *testing.T) {
				s := newFreeShop(t)
				hook := make(f)
				hook.Name, hook.Timeout = "broken", time.Hour
				if strings.HasSuffix(problem, "within 1ms") {
					hook.Timeout = time.Millisecond
				}
				s.agent.Options.Hooks = []flow.Hook{hook}
				_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
				status, messages, _ := s.ended(t, "s")
				if strings.HasSuffix(when, "tool \"pay\"") {
					if err != nil || status != flow.StatusFinished {
						t.Fatalf("%v, status %s", err, status)
					}
					err = errors.New(messages[2].ToolResults()[0].Content[0].Text)
				} else {
					var failed *flow.EffectError
					if !errors.As(err, &failed) || failed.Code != "hook" || status != flow.StatusFailed || errors.Is(err, flow.ErrDenied) {
						t.Fatalf("%v, status %s", err, status)
					}
				}
				for _, want := range []string{`hook "broken" failed ` + when, problem, "Options.Hooks"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q lacks %q", err, want)
					}
				}
			})
		}
	}
}

// A hook must not change what a person approved.
func TestAHookKeepsApprovedArguments(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	s.agent.Options.Hooks = []flow.Hook{{Name: "raise", BeforeTool: func(_ context.Context, call *event.Part) error {
		call.Arguments = jsontext.Value(`{"order":"all"}`)
		return nil
	}}}
	s.agent.Run(t.Context(), "s", flow.Text("A1"))
	c, err := connectWith(t.Context(), &s.agent, "s", answerTo(open(t, s, "s")[0], event.Approved))
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Output(t.Context())
	if err != nil || s.runs() != 0 || !strings.Contains(out.Message.Text(), "it changed arguments that a person approved") {
		t.Fatalf("%v, the tool ran %d times: %v", err, s.runs(), out.Message)
	}
}

func TestAHookNeedsAName(t *testing.T) {
	s := newFreeShop(t)
	s.agent.Options.Hooks = []flow.Hook{{Name: "a"}, {}}
	if _, err := s.agent.Run(t.Context(), "s", flow.Text("A1")); !errors.Is(err, flow.ErrStart) || !strings.Contains(err.Error(), "Hooks[1]") {
		t.Fatal(err)
	}
}

// An AfterTool sees the text of each error that is recorded or told to the model: of failed attempts, panics and the last error.
func TestHooksRedactErrors(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("the password is hunter2") },
		"panic": func() error { panic("the password is hunter2") },
		"typed": func() error { return &flow.EffectError{Code: "failed", Message: "the password is hunter2"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFreeShop(t)
			tool := s.tool(nil)
			tool.Class, tool.Retry = event.EffectIdempotent, flow.Retry{Attempts: 2, First: time.Microsecond}
			attempts := 0
			tool.Run = func(context.Context, event.Part) ([]event.Part, error) { attempts++; return nil, fail() }
			s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, tool)
			s.agent.Options.Hooks = []flow.Hook{{Name: "redact", AfterTool: func(_ context.Context, _ event.Part, result *event.Part) error {
				result.Content[0].Text = strings.ReplaceAll(result.Content[0].Text, "hunter2", "***")
				return nil
			}}}
			out, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
			if err != nil || attempts != 2 || !strings.Contains(out.Message.Text(), "the password is ***") {
				t.Fatalf("%v after %d attempts: %v", err, attempts, out.Message)
			}
			for e, err := range s.log.Read(t.Context(), "s", eventlog.All()) {
				if err != nil || strings.Contains(string(e.Data), "hunter2") {
					t.Errorf("event %d %s: %v %s", e.Seq, e.Type, err, e.Data)
				}
			}
		})
	}
}

// A hook can turn an error into a result, and a result into an error.
func TestAHookDecidesAboutErrors(t *testing.T) {
	s := newFreeShop(t)
	s.agent.Options.Hooks = []flow.Hook{{Name: "turn", AfterTool: func(_ context.Context, call event.Part, result *event.Part) error {
		result.IsError = string(call.Arguments) == `{"order":"A1"}`
		return nil
	}}}
	s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, flow.ToolSpec{Name: "pay", Run: func(_ context.Context, c event.Part) ([]event.Part, error) {
		if string(c.Arguments) == `{"order":"A1"}` {
			return []event.Part{event.Text("paid")}, nil
		}
		return nil, errors.New("the server is busy")
	}})
	if _, err := s.agent.Run(t.Context(), "s", flow.Text("A1 B2")); err != nil {
		t.Fatal(err)
	}
	_, messages, _ := s.ended(t, "s")
	got := map[string]bool{}
	for _, m := range messages {
		for _, p := range m.ToolResults() {
			got[p.Content[0].Text] = p.IsError
		}
	}
	if isError, ok := got["paid"]; !isError || !ok {
		t.Errorf("%v", got)
	}
	if isError, ok := got["the server is busy"]; isError || !ok {
		t.Errorf("%v", got)
	}
}

// A client must not see a text that a hook takes away.
func TestDeltasWaitForHooks(t *testing.T) {
	for _, first := range []bool{false, true} {
		s := newFreeShop(t)
		s.agent.Turn = flow.Chat[notes](modelFunc(func(_ context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
			emit(eventlog.Delta{Kind: event.TextPart, Text: "the password is "})
			emit(eventlog.Delta{Kind: event.TextPart, Text: "hunter2"})
			return flow.Response{Message: said("the password is hunter2")}, nil
		}), flow.Request{})
		s.agent.Options.Hooks = []flow.Hook{{Name: "redact", StreamFirst: first, AfterModel: func(_ context.Context, _ *flow.Request, a *flow.Response) error {
			a.Message.Parts[0].Text = "the password is ***"
			return nil
		}}}
		h, err := s.agent.Send(t.Context(), "s", flow.Text("go"))
		if err != nil {
			t.Fatal(err)
		}
		var text string
		for c, err := range h.Receive() {
			if err != nil {
				t.Fatal(err)
			}
			if c.Delta != nil {
				text += c.Delta.Text
			}
		}
		if want := map[bool]string{false: "the password is ***", true: "the password is hunter2"}[first]; text != want {
			t.Errorf("StreamFirst %v: the client gets %q", first, text)
		}
	}
}

// The summary of a compaction passes the hooks too.
func TestHooksOfACompaction(t *testing.T) {
	s := newFreeShop(t)
	var asked []string
	model := modelFunc(func(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
		asked = append(asked, r.Messages[0].Message.Text())
		return flow.Response{Message: said("it was hunter2")}, nil
	})
	s.agent.Turn = func(ctx context.Context, tn *flow.Turn[notes]) error {
		if tn.Index() == 0 {
			return tn.Add(said("yes"))
		}
		return tn.Compact(ctx, model, flow.Request{}, 1)
	}
	s.agent.Options.Hooks = []flow.Hook{{Name: "redact",
		BeforeModel: func(_ context.Context, r *flow.Request) error {
			r.Messages[0].Message.Parts[0].Text = "***"
			return nil
		},
		AfterModel: func(_ context.Context, _ *flow.Request, a *flow.Response) error {
			a.Message.Parts[0].Text = "it was ***"
			return nil
		}}}
	for range 2 {
		if _, err := s.agent.Run(t.Context(), "s", flow.Text("the password is hunter2")); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := projection.Load(t.Context(), s.log, "s", projection.History())
	if err != nil {
		t.Fatal(err)
	}
	history, err := entries.State.Messages(projection.RenderOptions{})
	if err != nil || len(history) == 0 || strings.Contains(history[0].Message.Text(), "hunter2") || !slices.Equal(asked, []string{"***"}) {
		t.Fatalf("%v: asked %q, history %+v", err, asked, history)
	}
}

// The usage of a summary that a hook refuses counts.
func TestARefusedSummaryCounts(t *testing.T) {
	s := newFreeShop(t)
	model := modelFunc(func(context.Context, *flow.Request, func(eventlog.Delta)) (flow.Response, error) {
		m := said("a summary")
		m.Usage.InputTokens = 10
		return flow.Response{Message: m, Cost: 5}, nil
	})
	s.agent.Turn = func(ctx context.Context, tn *flow.Turn[notes]) error {
		if tn.Index() == 0 {
			return tn.Add(said("yes"))
		}
		return tn.Compact(ctx, model, flow.Request{}, 1)
	}
	s.agent.Options.Hooks = []flow.Hook{{Name: "no", AfterModel: func(context.Context, *flow.Request, *flow.Response) error { return errors.New("no summary") }}}
	s.agent.Run(t.Context(), "s", flow.Text("one"))
	if _, err := s.agent.Run(t.Context(), "s", flow.Text("two")); !errors.Is(err, flow.ErrDenied) {
		t.Fatal(err)
	}
	for e, err := range s.log.Read(t.Context(), "s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok, _ := event.Decode[event.EffectCompletion](&e); ok && (d.Usage.InputTokens != 10 || e.Cost != 5 || d.Error == nil) {
			t.Errorf("%+v costs %v", d, e.Cost)
		}
	}
}

// What a hook decides is recorded with the result of its call. A process that is killed at any
// append leaves a decision that the next execution sees, or no decision at all.
func TestHookDecisionsSurviveKills(t *testing.T) {
	for _, how := range []crash{crashBefore, crashAfter} {
		fired := true
		for n := 1; fired; n++ {
			t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) { fired = hooksUnderACrash(t, n, how) })
		}
	}
}

func hooksUnderACrash(t *testing.T, n int, how crash) (fired bool) {
	w := newWorld(t, 0)
	var decisions atomic.Int64 // each one differs from the ones before, as a clock does
	decide := func(ctx context.Context, text string) (string, error) {
		run, _ := flow.FromContext(ctx)
		w.ran(ctx, fmt.Sprintf("hook %s", run.Ordinal))
		return fmt.Sprintf("%s %d", text, decisions.Add(1)), nil
	}
	var refused atomic.Bool
	hook := flow.Hook{Name: "clock",
		BeforeModel: func(ctx context.Context, r *flow.Request) (err error) {
			r.System, err = decide(ctx, "asked")
			return err
		},
		AfterModel: func(_ context.Context, r *flow.Request, a *flow.Response) error {
			a.Message.Parts[0].Text = "answer " + r.System
			return nil
		},
		BeforeTool: func(ctx context.Context, call *event.Part) error {
			if refused.CompareAndSwap(false, true) {
				return errors.New("the first one is refused")
			}
			text, err := decide(ctx, "ran")
			call.Arguments = jsontext.Value(fmt.Sprintf(`{"at":%q}`, text))
			return err
		}}
	turn := func(ctx context.Context, tn *flow.Turn[notes]) error {
		tool := flow.ToolSpec{Name: "look", Class: event.EffectPure, Run: func(ctx context.Context, c event.Part) ([]event.Part, error) {
			return []event.Part{event.Text(string(c.Arguments))}, nil
		}}
		model := modelFunc(func(ctx context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
			m := said("-")
			if last := r.Messages[len(r.Messages)-1].Message; last.Role == event.User {
				m.Parts = append(m.Parts, event.ToolCall("c1", "look", nil), event.ToolCall("c2", "look", nil))
			}
			return flow.Response{Message: m}, nil
		})
		answer, err := tn.Model(ctx, model, flow.Request{Tools: []flow.ToolSpec{tool}})
		if err != nil {
			return err
		}
		w.same(tn, "answer", answer)
		if err := tn.Tools(ctx, []flow.ToolSpec{tool}, answer.ToolCalls()); err != nil {
			return err
		}
		history, err := tn.Messages()
		if err != nil {
			return err
		}
		w.same(tn, "results", history)
		if answer, err = tn.Model(ctx, model, flow.Request{}); err != nil {
			return err
		}
		w.same(tn, "end", answer)
		return nil
	}
	in := flow.Text("go")
	in.ID = "go"
	process := func(s *crashStore) (flow.Output[notes], error) {
		log := eventlog.Open(s)
		defer log.Close()
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: turn, Options: flow.Options{Hooks: []flow.Hook{hook}}}
		return a.Run(t.Context(), "s", in)
	}
	s := &crashStore{Store: w.data.Handle(), n: n, how: how}
	out, err := process(s)
	if s.fired {
		out, err = process(&crashStore{Store: w.data.Handle()})
	}
	if err != nil || out.Status != flow.StatusFinished {
		t.Fatalf("%v: %+v", err, out)
	}
	for name, keys := range w.runs {
		for key, ran := range keys {
			if most := 1 + map[bool]int{true: 1}[s.fired]; ran > most {
				t.Errorf("%s of key %s was called %d times", name, key, ran)
			}
		}
	}
	before := decisions.Load()
	if _, err := process(&crashStore{Store: w.data.Handle()}); err != nil || decisions.Load() != before {
		t.Errorf("%v: %d decisions after the end", err, decisions.Load()-before)
	}
	return s.fired
}

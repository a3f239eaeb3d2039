package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// world is the state outside the processes.
type world struct {
	t          *testing.T
	mu         sync.Mutex
	runs       map[string]map[string]int // of effects, by name and key
	seen       map[string]string         // what a turn saw, by turn and place
	log        *eventlog.Log             // of the observer
	data       *memory.Store
	sent       map[string]bool
	byHand     bool // somebody reconciled the payment
	retries    bool // the failed turn is tried again
	checkpoint flow.Checkpoint
	replaying  bool // the session has other seqs
}

func (w *world) ran(ctx context.Context, name string) {
	run, ok := flow.FromContext(ctx)
	if !ok {
		w.t.Errorf("%s: no effect", name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[name] == nil {
		w.runs[name] = map[string]int{}
	}
	w.runs[name][run.Key]++
}

// look compares the state and the history at a place of the turn function with the values
// of the first execution.
func (w *world) look(tn *flow.Turn[notes], place string) {
	state, err := tn.State()
	messages, err2 := tn.Messages()
	history, err3 := tn.History()
	if err := errors.Join(err, err2, err3); err != nil {
		w.t.Errorf("%s: %v", place, err)
	}
	if !w.replaying {
		w.same(tn, place+" history", history)
	}
	w.same(tn, place, state, messages, tn.Artifacts(), tn.Now().UTC(), tn.NewID(), tn.NewID(), tn.Input(), tn.SnapshotID(), tn.Index())
}

// same compares values with the ones of the first execution.
func (w *world) same(tn *flow.Turn[notes], place string, values ...any) {
	raw, err := json.Marshal(values)
	if err != nil {
		w.t.Errorf("%s: %v", place, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := tn.ID().String() + place
	if before, ok := w.seen[key]; ok && before != string(raw) {
		w.t.Errorf("%s: the turn sees\n%s\nand saw\n%s", place, raw, before)
	}
	w.seen[key] = string(raw)
}

func said(text string) event.Message {
	return event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(text)}}
}

func (w *world) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	w.ran(ctx, "model")
	run, _ := flow.FromContext(ctx)
	if run.Attempt == 1 {
		return flow.Response{}, overloaded{time.Millisecond}
	}
	var texts []string
	for _, x := range r.Messages {
		texts = append(texts, x.Message.Text())
	}
	m := said(fmt.Sprintf("%d messages, %d tools: %s", len(texts), len(r.Tools), strings.Join(texts, "|")))
	m.StopReason, m.Usage = "stop", event.Usage{InputTokens: 1, OutputTokens: 1}
	if len(r.Tools) > 0 {
		m.Parts = append(m.Parts, event.ToolCall("c1-"+run.Key[:8], "pay", jsontext.Value(`{"n":1}`)), event.ToolCall("c2-"+run.Key[:8], "note", jsontext.Value(`{"n":2}`)))
	}
	return flow.Response{Message: m, Cost: 5}, nil
}

func (w *world) tools() []flow.ToolSpec {
	text := func(ctx context.Context, name string, f func(*notes) error) ([]event.Part, error) {
		w.ran(ctx, name)
		return []event.Part{event.Text(name)}, flow.Update(ctx, f)
	}
	return []flow.ToolSpec{
		{Name: "pay", Class: event.EffectUnsafeOnce, Review: ask("pay?"), Run: func(ctx context.Context, c event.Part) ([]event.Part, error) {
			return text(ctx, "pay", func(n *notes) error { n.Count += 100; return nil })
		}},
		{Name: "note", Run: func(ctx context.Context, c event.Part) ([]event.Part, error) {
			return text(ctx, "note", func(n *notes) error { n.Count += 1000; return nil })
		}},
	}
}

func (w *world) turn(ctx context.Context, tn *flow.Turn[notes]) error {
	n := 0
	look := func() { w.look(tn, fmt.Sprint(n)); n++ }
	plus := func(by int) func(*notes) error { return func(x *notes) error { x.Count += by; return nil } }
	do := func(name string, e flow.Effect, by int) error {
		e.Name = name
		v, err := flow.Do(ctx, tn, e, func(ctx context.Context) (int, error) { w.ran(ctx, name); return by, flow.Update(ctx, plus(by)) })
		if err != nil {
			return err
		}
		look()
		if v != by {
			w.t.Errorf("%s: %d", name, v)
		}
		return nil
	}
	look()
	if strings.HasPrefix(tn.Input().Messages[0].Text(), "abort") {
		if err := tn.Add(said("before the abort")); err != nil {
			return err
		}
		return do("never", flow.Effect{Review: &flow.Question{Prompt: "never"}}, 1)
	}
	if err := tn.Update(plus(1)); err != nil {
		return err
	}
	if err := tn.Add(said("hello")); err != nil {
		return err
	}
	look()
	if err := do("one", flow.Effect{Arguments: map[string]int{"a": 1}}, 10); err != nil {
		return err
	}
	if err := tn.SetArtifact(ctx, event.Artifact{Name: "doc"}, []byte("body "+tn.NewID())); err != nil {
		return err
	}
	if err := tn.Update(plus(1)); err != nil {
		return err
	}
	look()
	if ok, err := tn.Patched("change"); !ok || err != nil {
		return fmt.Errorf("patched: %v %w", ok, err)
	}
	look()
	answer, err := tn.Model(ctx, w, flow.Request{Model: "m", Tools: w.tools()})
	if err != nil {
		return err
	}
	look()
	if err := tn.Update(plus(1)); err != nil {
		return err
	}
	if err := tn.Tools(ctx, w.tools(), answer.ToolCalls()); err != nil {
		return err
	}
	look()
	var calls []flow.Call[int]
	for i := range 4 {
		calls = append(calls, flow.Call[int]{Effect: flow.Effect{Name: fmt.Sprint("b", i), Arguments: i, Retry: flow.Retry{Attempts: 2, First: time.Microsecond}}, Do: func(ctx context.Context) (int, error) {
			w.ran(ctx, fmt.Sprint("b", i))
			if i == 2 {
				return 0, errors.New("two")
			}
			return i, flow.Update(ctx, plus(10000))
		}})
	}
	results, err := flow.Batch(ctx, tn, 2, calls...)
	if err != nil {
		return err
	}
	look()
	for i, r := range results {
		if i != 2 && (r.Value != i || r.Err != nil) || i == 2 && r.Err == nil {
			w.t.Errorf("result %d: %+v", i, r)
		}
	}
	if err := tn.Add(said("wait")); err != nil {
		return err
	}
	wait, err := tn.NewWait(ctx, "signal", 0)
	if err != nil {
		return err
	}
	look()
	if err := do("give", flow.Effect{Class: event.EffectDedupe}, 1); err != nil {
		return err
	}
	if err := tn.Update(plus(1)); err != nil {
		return err
	}
	look()
	v, err := flow.Await[int](ctx, tn, wait)
	if err != nil {
		return err
	}
	look()
	if err := tn.Update(plus(v)); err != nil {
		return err
	}
	if err := tn.Add(said("sleep")); err != nil {
		return err
	}
	for _, d := range []time.Duration{time.Microsecond, 4 * time.Millisecond} {
		if err := tn.Sleep(ctx, d); err != nil {
			return err
		}
		look()
		if err := tn.Update(plus(1)); err != nil {
			return err
		}
	}
	if strings.HasPrefix(tn.Input().Messages[0].Text(), "fail") {
		if !w.retries {
			panic("failed once")
		}
	}
	if err := tn.SetMessages(event.Message{Role: event.User, Parts: []event.Part{event.Text("short")}}, said("er")); err != nil {
		return err
	}
	look()
	if err := do("last", flow.Effect{Class: event.EffectPure, Review: &flow.Question{Prompt: "last?"}}, 7); err != nil {
		return err
	}
	if _, err := tn.Model(ctx, w, flow.Request{Model: "m"}); err != nil {
		return err
	}
	look()
	if err := tn.Add(said("bye")); err != nil {
		return err
	}
	tn.Stop("done")
	return tn.Update(plus(1))
}

// process runs the agent over a handle until all inputs have their turns.
func (w *world) process(s *crashStore) error {
	ctx := w.t.Context()
	log := eventlog.Open(s)
	defer log.Close()
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: w.turn}
	a.Options.InProcess = time.Millisecond
	a.Options.Retry = flow.Retry{Attempts: 5, First: time.Microsecond, Max: time.Microsecond}
	for range 500 {
		info, err := flow.Info(ctx, log, "s")
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return err
		}
		if w.sent["go"] && w.sent["abort"] { // nobody runs
			for _, text := range []string{"posted", "fail"} {
				post := func(in flow.Input) error { err := post(ctx, log, "s", in); return err }
				if err := w.give(text, post); err != nil {
					return err
				}
			}
		}
		w.retries = w.retries || info.Status == flow.StatusFailed
		a.Options.Checkpoint = w.checkpoint
		if info.Status == flow.StatusFailed {
			in := flow.Text("fail")
			in.ID = "fail"
			if err := post(ctx, log, "s", in); err != nil {
				return err
			}
		}
		c, err := connect(ctx, a, "s")
		var pause *flow.Hibernated
		var failed *flow.TurnError
		if errors.As(err, &pause) {
			if err := w.answer(ctx, log, pause); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		for _, text := range []string{"go", "abort"} {
			if err := w.give(text, c.Send); err != nil {
				c.Output(ctx)
				return err
			}
		}
		_, err = c.Output(ctx)
		switch {
		case errors.As(err, &pause):
			if err := w.answer(ctx, log, pause); err != nil {
				return err
			}
			continue
		case errors.Is(err, flow.ErrNeedsReconcile):
			if err := w.reconcile(ctx, log); err != nil {
				return err
			}
			continue
		case errors.As(err, &failed) && !w.retries:
			continue
		}
		if err != nil || w.sent["fail"] {
			return err
		}
	}
	return errors.New("no end")
}

// give gives the session an input, unless it has it.
func (w *world) give(text string, send func(flow.Input) error) error {
	if w.sent[text] {
		return nil
	}
	in := flow.Text(text)
	in.ID = text
	err := send(in)
	w.sent[text] = err == nil
	return err
}

func (w *world) answer(ctx context.Context, log *eventlog.Log, h *flow.Hibernated) error {
	for _, r := range h.Reviews {
		var err error
		if r.Name == "never" {
			_, err = flow.Abort(ctx, log, "s", event.Abort{Reason: "enough"})
		} else {
			_, err = flow.Decide(ctx, log, "s", answerTo(r, event.Approved))
		}
		if err != nil {
			return err
		}
	}
	for _, x := range h.Waits {
		if x.Until.IsZero() {
			if _, err := flow.Resolve(ctx, log, "s", x.WaitID, 5, "me"); err != nil {
				return err
			}
		}
	}
	if !h.Until.IsZero() {
		time.Sleep(time.Until(h.Until))
	}
	return nil
}

func (w *world) reconcile(ctx context.Context, log *eventlog.Log) error {
	info, err := flow.Info(ctx, log, "s")
	if err != nil {
		return err
	}
	for _, x := range info.Effects {
		if x.Class != event.EffectUnsafeOnce {
			continue
		}
		w.mu.Lock()
		n := w.runs[x.Name][x.Key]
		w.mu.Unlock()
		o := flow.Outcome{DidNotRun: n == 0, By: "me"}
		if n > 0 {
			o.Result, w.byHand = "pay", true
		}
		if _, err := flow.Reconcile(ctx, log, "s", x.Key, o); err != nil {
			return err
		}
	}
	return nil
}

// final is the content of the session in the end.
func (w *world) final() string {
	p, err := projection.LoadSet(w.t.Context(), w.log, "s", projection.Session())
	if err != nil {
		return err.Error()
	}
	h, _ := projection.State(p, projection.History())
	entries, err := h.Messages(projection.RenderOptions{})
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, x := range entries {
		out = append(out, string(x.Message.Role)+":"+x.Message.Text())
	}
	custom, _ := projection.State(p, projection.Custom())
	out = append(out, string(custom.Get("a").Raw()))
	artifacts, _ := projection.State(p, projection.Artifacts())
	out = append(out, fmt.Sprint(len(artifacts.Items)))
	info, err := flow.Info(w.t.Context(), w.log, "s")
	return strings.Join(append(out, string(info.Status), fmt.Sprint(err)), "\n")
}

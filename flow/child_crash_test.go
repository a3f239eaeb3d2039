package flow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/sink"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/verify"
)

// household is a tree of agents: "top" runs "middle" and "side" at the same time, and
// "middle" runs "low". "low" and "side" ask a person. Each makes a call of a model.
type household struct {
	t    *testing.T
	data *memory.Store
	log  *eventlog.Log // of the observer
	mu   sync.Mutex
	ran  map[string]map[string]int // of effects, by name and key

	sinks *sink.Sinks
}

func newHousehold(t *testing.T) *household {
	h := &household{t: t, data: memory.New(), ran: map[string]map[string]int{}}
	h.log = eventlog.Open(h.data)
	t.Cleanup(func() { h.log.Close() })
	return h
}

func (h *household) run(ctx context.Context, name string) {
	run, _ := flow.FromContext(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ran[name] == nil {
		h.ran[name] = map[string]int{}
	}
	h.ran[name][run.Key]++
}

// model is a model that costs a cent.
func (h *household) model(name string) flow.Model {
	return modelFunc(func(ctx context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
		h.run(ctx, "model of "+name)
		m := said("thought of " + name)
		m.Provider, m.Model, m.Usage = "p", "m", event.Usage{InputTokens: 3, OutputTokens: 1}
		return flow.Response{Message: m, Cost: event.Dollar / 100}, nil
	})
}

// worker thinks, pays after a review, and makes an artifact.
func (h *household) worker(name string) *flow.Agent[notes] {
	return &flow.Agent[notes]{Name: name, Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		if _, err := t.Model(ctx, h.model(name), flow.Request{Model: "m"}); err != nil {
			return err
		}
		_, err := flow.Do(ctx, t, flow.Effect{Name: "pay " + name, Class: event.EffectUnsafeOnce, Review: &flow.Question{Prompt: name}},
			func(ctx context.Context) (int, error) { h.run(ctx, "pay "+name); return 1, nil })
		if err != nil {
			return err
		}
		if err := t.SetArtifact(ctx, event.Artifact{Name: "of " + name, Description: t.NewID()[:4]}, nil); err != nil {
			return err
		}
		return t.Add(said(name + " paid"))
	}}
}

// boss thinks, gives its input to others at the same time, and says what they said.
func (h *household) boss(name string, below ...*flow.Agent[notes]) *flow.Agent[notes] {
	return &flow.Agent[notes]{Name: name, Turn: func(ctx context.Context, t *flow.Turn[notes]) error {
		if _, err := t.Model(ctx, h.model(name), flow.Request{Model: "m"}); err != nil {
			return err
		}
		var calls []flow.Call[string]
		for i, a := range below {
			calls = append(calls, flow.Call[string]{Effect: flow.Effect{Name: "delegate", Arguments: i}, Do: func(ctx context.Context) (string, error) {
				mode := []event.ChildMode{event.ChildFork, event.ChildFresh}[i%2]
				out, err := flow.RunChild(ctx, a, flow.Text("do it"), flow.ChildOptions{Mode: mode})
				if err != nil {
					return "", err
				}
				return out.Message.Text(), flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
			}})
		}
		results, err := flow.Batch(ctx, t, 0, calls...)
		if err != nil {
			return err
		}
		var texts []string
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
			texts = append(texts, r.Value)
		}
		return t.Add(said(name + "(" + strings.Join(texts, ", ") + ")"))
	}}
}

// process runs the household until its input has its turn.
func (h *household) process(s *crashStore) error {
	ctx := h.t.Context()
	log := eventlog.Open(s)
	defer log.Close()
	top := h.boss("top", h.boss("middle", h.worker("low")), h.worker("side"))
	top.Log, top.Options.Observe.Sinks = log, h.sinks
	in := flow.Text("go")
	in.ID = "go"
	for range 100 {
		out, err := top.Run(ctx, "s", in)
		var pause *flow.Hibernated
		switch {
		case errors.As(err, &pause):
			for _, r := range pause.Reviews {
				if _, err := flow.Decide(ctx, log, "s", answerTo(r, event.Approved)); err != nil {
					return err
				}
				break // one at a time
			}
		case errors.Is(err, flow.ErrNeedsReconcile):
			if err := h.reconcile(ctx, log); err != nil {
				return err
			}
		case err != nil || out.Status == flow.StatusFinished:
			return err
		}
	}
	return errors.New("no end")
}

// reconcile reconciles payments with an unknown outcome by the world.
func (h *household) reconcile(ctx context.Context, log *eventlog.Log) error {
	for info, err := range flow.Runs(ctx, log) {
		if err != nil {
			return err
		}
		for _, x := range info.Effects {
			if x.Class != event.EffectUnsafeOnce || info.Runner != "" {
				continue
			}
			h.mu.Lock()
			n := h.ran[x.Name][x.Key]
			h.mu.Unlock()
			if _, err := flow.Reconcile(ctx, log, info.Session, x.Key, flow.Outcome{DidNotRun: n == 0, Result: n, By: "me"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// final is the content of the store in the end, without ids.
func (h *household) final() string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	merged := map[string]int{}
	sum := event.Cost(0)
	for info, err := range h.log.Sessions(h.t.Context()) {
		if err != nil {
			h.t.Fatal(err)
		}
		l, err := projection.LoadSet(h.t.Context(), h.log, info.ID, projection.Session())
		if err != nil {
			h.t.Fatal(err)
		}
		meta, _ := projection.State(l, projection.Info())
		artifacts, _ := projection.State(l, projection.Artifacts())
		custom, _ := projection.State(l, projection.Custom())
		usage, _ := projection.State(l, projection.Usage())
		run, err := flow.Info(h.t.Context(), h.log, info.ID)
		if err != nil || len(run.Children) > 0 || len(run.Effects) > 0 {
			h.t.Errorf("%s: %v, open %+v %+v", info.ID, err, run.Children, run.Effects)
		}
		sum += usage.Total.Cost
		var names []string
		for _, a := range artifacts.Items {
			names = append(names, a.Name)
		}
		slices.Sort(names)
		add("%s child of %v: %s, artifacts %v, custom %s %s, cost %v", meta.Agent, run.Parent != "", run.Status, names,
			custom.Get("top").Raw(), custom.Get("middle").Raw(), usage.Total.Cost)
		for e, err := range h.log.Read(h.t.Context(), info.ID, eventlog.All()) {
			if err != nil {
				h.t.Fatal(err)
			}
			if e.Type == event.ChildMerged.Type() && e.SessionID == info.ID {
				c, _, _ := event.Decode[event.Child](&e)
				merged[c.ChildID]++
			}
		}
		r, err := verify.Session(h.t.Context(), h.log, info.ID)
		if err != nil || r.Damaged() > 0 || len(r.Notes) > 0 {
			h.t.Errorf("verify %s: %v, %+v", info.ID, err, r)
		}
	}
	slices.Sort(out)
	for id, n := range merged {
		if n != 1 {
			h.t.Errorf("child %s was merged %d times", id, n)
		}
	}
	tree, err := stats.LoadTreeCost(h.t.Context(), h.log, "s")
	if err != nil || tree.Total.Cost != sum {
		h.t.Errorf("the tree costs %v, its parts %v, %v", tree.Total.Cost, sum, err)
	}
	add("%d merged, cost %v", len(merged), sum)
	return strings.Join(out, "\n")
}

// A process that runs a parent and three children is killed at each of its appends, in
// whichever session. No child has a twin, no outcome is lost, and no effect runs twice.
func TestACrashAtAnAppendOfAFamily(t *testing.T) {
	var want string
	var plain *household
	synctest.Test(t, func(t *testing.T) {
		plain = newHousehold(t)
		if err := plain.process(&crashStore{Store: plain.data.Handle()}); err != nil {
			t.Fatal(err)
		}
		want = plain.final()
	})
	t.Log(want)
	for how, name := range map[crash]string{crashBefore: "before", crashAfter: "after", unknownBefore: "unknown before", unknownAfter: "unknown after"} {
		fired := true
		for n := 1; fired; n += testsize.Pick(45, 9, 1) {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { fired = newHousehold(t).crashing(n, how, plain, want) })
			})
		}
	}
}

func (h *household) crashing(n int, how crash, plain *household, want string) bool {
	s := &crashStore{Store: h.data.Handle(), n: n, how: how}
	err := h.process(s)
	for i := 0; err != nil && i < 5 && s.fired; i++ {
		err = h.process(&crashStore{Store: h.data.Handle()})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	if got := h.final(); got != want {
		h.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(plain.ran)) {
		if len(h.ran[name]) > 1 || strings.HasPrefix(name, "pay") && slices.Max(slices.Collect(maps.Values(h.ran[name]))) != 1 {
			h.t.Errorf("%s: %v", name, h.ran[name])
		}
	}
	if n%9 == 1 {
		h.replay()
	}
	return s.fired
}

// replay runs the recorded sessions again. No effect runs.
func (h *household) replay() {
	ran := func() (n int) {
		for _, keys := range h.ran {
			for _, x := range keys {
				n += x
			}
		}
		return n
	}
	before := ran()
	low, side := h.worker("low"), h.worker("side")
	middle := h.boss("middle", low)
	children := flowtest.Options{Children: []flowtest.Child{flowtest.ChildOf(low), flowtest.ChildOf(side), flowtest.ChildOf(middle)}}
	r, err := flowtest.Run(h.t.Context(), h.boss("top", middle, side), h.log, "s", children)
	if r.Log != nil {
		defer r.Log.Close()
	}
	if err != nil || r.Turns != 4 || len(r.Skipped) > 0 || r.Open || ran() != before {
		h.t.Errorf("the replay: %v, %+v, %d effects ran", err, r, ran()-before)
	}
}

package flow_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// All methods of a connection at once, until it is closed. An input that Send accepted is
// in the session once.
func TestAHandleIsUsedByManyGoroutines(t *testing.T) {
	for _, detach := range []bool{false, true} {
		s := newShop(t, ask("Pay?"))
		var group, answerers sync.WaitGroup
		var over atomic.Bool
		answerers.Go(func() {
			for !over.Load() {
				answerAll(t, s.log)
			}
		})
		const inputs = 12
		for i := range inputs {
			group.Go(func() {
				in := flow.Text(fmt.Sprint("A", i/2))
				in.ID, in.Steer = fmt.Sprint("in-", i/2), i%6 == 0 // each id twice
				h, err := s.agent.Send(t.Context(), "s", in)
				if err != nil {
					t.Error(err)
					return
				}
				if h.Ref().Snapshot == "" {
					t.Error("the input has no reference")
				}
				if detach && i%2 == 0 {
					h.Detach()
				}
				for range 3 {
					group.Go(func() {
						for range h.Receive() {
						}
					})
					group.Go(func() { waitEnd(t, h) })
				}
				waitEnd(t, h)
			})
		}
		group.Wait()
		over.Store(true)
		answerers.Wait()
		checkInputs(t, s.log, inputs/2)
	}
}

// waitEnd waits for the end of the turn of an input. Somebody answers its reviews.
func waitEnd(t *testing.T, h *flow.Handle[notes]) {
	for {
		out, err := h.Wait(t.Context())
		if out.Session != "s" {
			t.Errorf("%v %+v", err, out)
		}
		if !errors.As(err, new(*flow.Hibernated)) {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// answerAll answers the open reviews of a session. Other goroutines do the same.
func answerAll(t *testing.T, log *eventlog.Log) {
	p, err := projection.LoadPending(t.Context(), log, "s")
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		t.Error(err)
	}
	for _, r := range p.Approvals {
		_, err = flow.Decide(t.Context(), log, "s", answerTo(r, event.Approved))
		if err != nil && !errors.Is(err, flow.ErrAnswered) {
			t.Error(err)
		}
	}
	runtime.Gosched()
}

// checkInputs checks that a session has n inputs, each of them once.
func checkInputs(t *testing.T, log *eventlog.Log, n int) {
	t.Helper()
	seen := map[string]int{}
	for e, err := range log.Read(t.Context(), "s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type.Name() != event.MessageAdded {
			continue
		}
		if m, _, err := event.Decode[event.Message](&e); err != nil {
			t.Fatal(err)
		} else if m.InputID != "" {
			seen[m.InputID]++
		}
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("input %q is in the session %d times", id, times)
		}
	}
	if len(seen) != n {
		t.Errorf("%d inputs, want %d", len(seen), n)
	}
}

// No goroutine stays after the end of a runner, however it ends.
func TestNoGoroutineStays(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, a *flow.Agent[notes], gate chan struct{}){
		"output": func(t *testing.T, a *flow.Agent[notes], gate chan struct{}) {
			close(gate)
			if _, err := a.Run(t.Context(), "s", flow.Text("go")); err != nil {
				t.Fatal(err)
			}
		},
		"close": func(t *testing.T, a *flow.Agent[notes], gate chan struct{}) {
			c := start(t, a)
			<-c.Done()
		},
		"detach": func(t *testing.T, a *flow.Agent[notes], gate chan struct{}) {
			ctx, stop := context.WithCancel(t.Context())
			c, err := connect(ctx, a, "s")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SendText("go"); err != nil {
				t.Fatal(err)
			}
			c.last().Detach()
			stop()
			close(gate)
			<-c.Done()
		},
		"ended context": func(t *testing.T, a *flow.Agent[notes], gate chan struct{}) {
			ctx, stop := context.WithCancel(t.Context())
			c, err := connect(ctx, a, "s")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SendText("go"); err != nil {
				t.Fatal(err)
			}
			stop()
			<-c.Done()
		},
		"refused starts": func(t *testing.T, a *flow.Agent[notes], gate chan struct{}) {
			close(gate)
			c := start(t, a)
			if err := c.SendText("go"); err != nil {
				t.Fatal(err)
			}
			finish(t, c)
			for _, at := range []flow.Ref{{Session: "s", Snapshot: "x"}, {Session: "x"}, {}} {
				if _, err := a.Resume(t.Context(), at); err == nil {
					t.Fatal("started")
				}
			}
		},
		"serve": func(t *testing.T, a *flow.Agent[notes], gate chan struct{}) {
			if err := post(t.Context(), a.Log, "s", flow.Text("go")); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error)
			go func() { served <- a.Serve(ctx) }()
			for info, err := flow.Info(t.Context(), a.Log, "s"); info.Status != flow.StatusRunning; info, err = flow.Info(t.Context(), a.Log, "s") {
				if err != nil {
					t.Fatal(err)
				}
			}
			stop()
			if err := <-served; err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			data := memory.New()
			gate := make(chan struct{})
			a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(data), Turn: twice(echo(gate))}
			use(t, a, gate)
			if err := a.Log.Close(); err != nil {
				t.Fatal(err)
			}
			data.Close()
			for range 1000 {
				if runtime.NumGoroutine() <= before {
					return
				}
				time.Sleep(time.Millisecond)
			}
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		})
	}
}

// Two processes serve one store: each input has one turn, and each effect runs once.
func TestTwoServersOfOneStore(t *testing.T) {
	const sessions, inputs = 20, 3
	data := memory.New()
	defer data.Close()
	var ran atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	agent := func() *flow.Agent[notes] {
		log := eventlog.Open(data.Handle())
		t.Cleanup(func() { log.Close() })
		return &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(ctx context.Context) (int, error) {
				ran.Add(1)
				return 1, flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
			})
			return err
		}}
	}
	a := agent()
	served := make(chan error)
	for range 2 {
		b := agent()
		go func() { served <- b.Serve(ctx) }()
	}
	for n := range inputs {
		for i := range sessions {
			in := flow.Text("go")
			in.ID = fmt.Sprint(n)
			for range 2 {
				if err := post(t.Context(), a.Log, fmt.Sprint(i), in); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i := range sessions {
		for {
			s, err := projection.Load(t.Context(), a.Log, fmt.Sprint(i), projection.Custom())
			if err != nil {
				t.Fatal(err)
			}
			if string(s.State.Get("a").Raw()) == fmt.Sprintf(`{"Count":%d}`, inputs) {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	stop()
	for range 2 {
		if err := <-served; err != nil {
			t.Fatal(err)
		}
	}
	if ran.Load() != sessions*inputs {
		t.Fatalf("%d effects ran, want %d", ran.Load(), sessions*inputs)
	}
}

package flow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/memory"
)

// race is a turn that awaits the first of an answer, a cancel and a time-out, then the value of it.
func race(timeout time.Duration, rest bool) func(context.Context, *flow.Turn[notes]) error {
	return func(ctx context.Context, tn *flow.Turn[notes]) error {
		var waits []flow.Pending
		for _, x := range []struct {
			name string
			d    time.Duration
		}{{"answer", 0}, {"other", 0}, {"time-out", timeout}} {
			w, err := tn.NewWait(ctx, x.name, x.d)
			if err != nil {
				return err
			}
			waits = append(waits, w)
		}
		for range 2 {
			won, err := tn.First(ctx, waits...)
			if err != nil {
				return err
			}
			i := 0
			for waits[i].ID != won.ID {
				i++
			}
			v, err := flow.Await[string](ctx, tn, won)
			if err := tn.Add(said(fmt.Sprintf("%d %s %v", i, v, err))); err != nil {
				return err
			}
			if !rest {
				return nil
			}
			waits = append(waits[:i:i], waits[i+1:]...)
		}
		return nil
	}
}

func texts(out flow.Output[notes]) (all []string) {
	for _, m := range out.Messages {
		all = append(all, m.Text())
	}
	return all
}

func TestFirstOfSeveralWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := openLog(t)
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: race(time.Hour, true), Options: flow.Options{InProcess: time.Second}}
		_, err := a.Run(t.Context(), "s", flow.Text("go"))
		var pause *flow.Hibernated
		if !errors.As(err, &pause) || len(pause.Waits) != 3 || pause.Until.IsZero() {
			t.Fatalf("%v %+v", err, pause)
		}
		head, _ := log.Head(t.Context(), "s")
		if _, err := resume(t.Context(), a, "s"); !errors.As(err, &pause) {
			t.Fatal(err)
		}
		if now, _ := log.Head(t.Context(), "s"); now != head {
			t.Fatalf("a start without an answer appended %v after %v", now, head)
		}
		if _, err := flow.Resolve(t.Context(), log, "s", pause.Waits[1].WaitID, "b", "me"); err != nil {
			t.Fatal(err)
		}
		if _, err := resume(t.Context(), a, "s"); !errors.As(err, &pause) || len(pause.Waits) != 2 {
			t.Fatalf("%v, open %+v", err, pause)
		}
		time.Sleep(time.Hour)
		out, err := resume(t.Context(), a, "s")
		want := fmt.Sprint([]string{"go", "1 b <nil>", "1  effect \"wait\": the time of the wait ended"})
		if got := fmt.Sprint(texts(out)); err != nil || got != want {
			t.Fatalf("%v\n%s, want\n%s", err, got, want)
		}
		replayed, err := flowtest.Run(t.Context(), a, log, "s")
		if err != nil || replayed.Turns != 1 {
			t.Fatalf("%v %+v", err, replayed)
		}
		replayed.Log.Close()
	})
}

// The wait whose end came first wins, also if the turn continues after both ended.
func TestFirstIsTheEarliest(t *testing.T) {
	for name, c := range map[string]struct {
		wait time.Duration // before the answer
		want string
	}{"the answer": {time.Minute, "0 yes <nil>"}, "the time-out": {2 * time.Hour, "2  effect \"wait\": the time of the wait ended"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := openLog(t)
				a := &flow.Agent[notes]{Name: "a", Log: log, Turn: race(time.Hour, false)}
				_, err := a.Run(t.Context(), "s", flow.Text("go"))
				var pause *flow.Hibernated
				if !errors.As(err, &pause) {
					t.Fatal(err)
				}
				time.Sleep(c.wait)
				for i, value := range []string{"yes", "late"} {
					time.Sleep(time.Second)
					if _, err := flow.Resolve(t.Context(), log, "s", pause.Waits[i].WaitID, value, "me"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(3 * time.Hour)
				out, err := resume(t.Context(), a, "s")
				if got := out.Message.Text(); err != nil || got != c.want {
					t.Fatalf("%v: %s, want %s", err, got, c.want)
				}
			})
		})
	}
}

func TestFirstOfNoOpenWait(t *testing.T) {
	log := openLog(t)
	for name, waits := range map[string][]flow.Pending{"none": nil, "unknown": {{ID: "x"}, {ID: "y"}}} {
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := tn.First(ctx, waits...)
			return err
		}}
		if _, err := a.Run(t.Context(), name, flow.Text("go")); !errors.Is(err, flow.ErrNotOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Code that awaits other waits than the record runs nothing.
func TestFirstOfOtherWaits(t *testing.T) {
	log := openLog(t)
	n := 2
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		var waits []flow.Pending
		for range 2 {
			w, err := tn.NewWait(ctx, "w", 0)
			if err != nil {
				return err
			}
			waits = append(waits, w)
		}
		_, err := tn.First(ctx, waits[:n]...)
		return err
	}}
	a.Run(t.Context(), "s", flow.Text("go"))
	info, _ := flow.Info(t.Context(), log, "s")
	if _, err := flow.Resolve(t.Context(), log, "s", info.Waits[0].WaitID, 1, "me"); err != nil {
		t.Fatal(err)
	}
	n = 1
	if _, err := resume(t.Context(), a, "s"); !errors.As(err, new(*flow.DivergenceError)) {
		t.Fatal(err)
	}
}

// A fork at any event continues the turn: with its inherited first wait, or with waits of its own.
func TestForksOfFirst(t *testing.T) {
	log := openLog(t)
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: race(0, false)}
	_, err := a.Run(t.Context(), "s", flow.Text("go"))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) {
		t.Fatal(err)
	}
	if _, err := flow.Resolve(t.Context(), log, "s", pause.Waits[1].WaitID, "b", "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t.Context(), a, "s"); err != nil {
		t.Fatal(err)
	}
	head, _ := log.Head(t.Context(), "s")
	forks, inherited := 0, 0
	for seq := int64(1); seq < head.Seq; seq++ {
		id := fmt.Sprint("f", seq)
		if _, err := fork.At(t.Context(), log, "s", fork.AtSeq(seq), fork.Options{ID: id, Force: true}); err != nil {
			continue
		}
		forks++
		out, err := resume(t.Context(), a, id)
		if errors.As(err, &pause) {
			if len(pause.Waits) != 3 {
				t.Fatalf("fork at %d waits for %+v", seq, pause.Waits)
			}
			if _, err := flow.Resolve(t.Context(), log, id, pause.Waits[0].WaitID, "fork", "me"); err != nil {
				t.Fatal(err)
			}
			out, err = resume(t.Context(), a, id)
			if err != nil || out.Message.Text() != "0 fork <nil>" {
				t.Fatalf("fork at %d: %v %v", seq, err, out.Message)
			}
			continue
		}
		if err == nil && out.Status == flow.StatusFinished && len(out.Messages) == 2 {
			inherited++
			if out.Message.Text() != "1 b <nil>" {
				t.Fatalf("fork at %d: %v", seq, out.Message)
			}
		} else if err != nil {
			t.Errorf("fork at %d: %v", seq, err)
		}
	}
	if forks < 5 || inherited == 0 {
		t.Errorf("%d forks, %d of them continue after the first wait", forks, inherited)
	}
}

// A process is killed at each append. The turn sees one winner.
func TestFirstSurvivesKills(t *testing.T) {
	for _, how := range []crash{crashBefore, crashAfter} {
		fired := true
		for n := 1; fired; n++ {
			t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) {
				data := memory.New()
				process := func(s *crashStore) (flow.Output[notes], error) {
					log := eventlog.Open(s)
					defer log.Close()
					a := &flow.Agent[notes]{Name: "a", Log: log, Turn: race(0, true)}
					in := flow.Text("go")
					in.ID = "go"
					out, err := a.Run(t.Context(), "s", in)
					var pause *flow.Hibernated
					for i := 1; i >= 0 && errors.As(err, &pause); i-- {
						if _, err := flow.Resolve(t.Context(), log, "s", pause.Waits[min(i, len(pause.Waits)-1)].WaitID, "v", "me"); err != nil {
							return out, err
						}
						out, err = resume(t.Context(), a, "s")
					}
					return out, err
				}
				s := &crashStore{Store: data.Handle(), n: n, how: how}
				out, err := process(s)
				fired = s.fired
				for i := 0; fired && err != nil && i < 3; i++ {
					out, err = process(&crashStore{Store: data.Handle()})
				}
				if err != nil || out.Status != flow.StatusFinished || len(out.Messages) != 3 {
					t.Fatalf("%v: %q", err, texts(out))
				}
			})
		}
	}
}

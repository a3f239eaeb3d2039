package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

// counter is a newer state of notes.
type counter struct {
	Total int `json:"total"`
	Turns int `json:"turns"`
}

// A turn that began with an older state continues with a newer one.
func TestAnOpenTurnWithANewerState(t *testing.T) {
	turn := func(ctx context.Context, do func(name string) error) error {
		for _, name := range []string{"one", "two", "three"} {
			if err := do(name); err != nil {
				return err
			}
		}
		return nil
	}
	log := openLog(t)
	old := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		return turn(ctx, func(name string) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: name, Review: review(name)}, func(ctx context.Context) (int, error) {
				return 1, flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
			})
			return err
		})
	}}
	_, err := old.Run(t.Context(), "s", flow.Text("go"))
	h := paused(t, err)
	var seen []counter
	newer := &flow.Agent[counter]{Name: "a", Log: log, StateVersion: 2, Turn: func(ctx context.Context, tn *flow.Turn[counter]) error {
		return turn(ctx, func(name string) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: name, Review: review(name)}, func(ctx context.Context) (int, error) {
				return 1, flow.Update(ctx, func(c *counter) error { c.Total++; return nil })
			})
			if err != nil {
				return err
			}
			c, err := tn.State()
			seen = append(seen, c)
			return err
		})
	}}
	if _, err := resume(t.Context(), newer, "s"); err == nil {
		t.Fatal("no migration")
	}
	newer.Migrations = projection.Migrations{
		0: func(raw jsontext.Value) (jsontext.Value, error) {
			return jsontext.Value(strings.Replace(string(raw), "Count", "total", 1)), nil
		},
		1: func(raw jsontext.Value) (jsontext.Value, error) {
			return jsontext.Value(strings.Replace(string(raw), "}", `,"turns":7}`, 1)), nil
		},
	}
	if _, err := resume(t.Context(), newer, "s"); paused(t, err).Ref != h.Ref {
		t.Fatal(err)
	}
	if _, err := flow.Decide(t.Context(), log, "s", answerTo(h.Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Run(t.Context(), "x", flow.Text("go")); err == nil {
		t.Fatal("not paused")
	}
	out, err := resume(t.Context(), newer, "s")
	if want := []counter{{1, 7}, {2, 7}, {3, 7}}; err != nil || !slices.Equal(seen, want) || out.Custom != want[2] {
		t.Fatalf("%v %+v, saw %v", err, out.Custom, seen)
	}
	if _, err := old.Run(t.Context(), "s", flow.Text("go")); !errors.Is(err, event.ErrVersion) {
		t.Fatal("an older program:", err)
	}
}

// A session without a state has none after a turn that does not change it.
func TestAStateThatNobodySets(t *testing.T) {
	a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
		if s, err := tn.State(); err != nil || s != (notes{}) {
			t.Errorf("%v %+v", err, s)
		}
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(context.Context) (int, error) { return 1, nil })
		return err
	})
	a.StateVersion = 2
	if _, err := a.Run(t.Context(), "s", flow.Text("go")); err != nil {
		t.Fatal(err)
	}
	if types := typesAfter(t, a.Log, 0); slices.Contains(types, string(event.CustomPatched)) {
		t.Fatal(types)
	}
}

// A replay passes a compaction and a replaced history: the turn sees the same histories,
// and no model is asked again.
func TestAReplayWithACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		m := modelFunc(func(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
			last := r.Messages[len(r.Messages)-1].Message.Text()
			asked[last[:4]]++
			return flow.Response{Message: said(fmt.Sprint(len(r.Messages), " ", last[:4]))}, nil
		})
		seen := map[int]string{}
		a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
			n := 0
			look := func(err error) error {
				messages, err2 := tn.Messages()
				var texts []string
				for _, m := range messages {
					texts = append(texts, m.Text())
				}
				got := strings.Join(texts, "|")
				if before, ok := seen[n]; ok && before != got {
					t.Errorf("place %d: %s, before %s", n, got, before)
				}
				seen[n] = got
				n++
				return errors.Join(err, err2)
			}
			_, err := tn.Model(ctx, m, flow.Request{})
			for _, step := range []func() error{
				func() error { return err },
				func() error { return tn.Sleep(ctx, 2*time.Hour) },
				func() error { return tn.Add(said("before")) },
				func() error { return tn.Compact(ctx, m, flow.Request{}, 1) },
				func() error { return tn.Add(said("after")) },
				func() error { return tn.Sleep(ctx, 2*time.Hour) },
				func() error { return tn.SetMessages(tn.Input().Messages[0], said("short")) },
				func() error { return tn.Sleep(ctx, 2*time.Hour) },
				func() error { return tn.Add(said("last")) },
				func() error { _, err := tn.Model(ctx, m, flow.Request{}); return err },
				func() error { return tn.Sleep(ctx, 2*time.Hour) },
			} {
				if err := look(step()); err != nil {
					return err
				}
			}
			return nil
		})
		for _, text := range []string{"first", "second", "third"} {
			clear(seen)
			_, err := a.Run(t.Context(), "s", flow.Text(text))
			for errors.As(err, new(*flow.Hibernated)) {
				time.Sleep(3 * time.Hour)
				_, err = resume(t.Context(), a, "s")
			}
			if refused := (*projection.CompactionError)(nil); err != nil && !(errors.As(err, &refused) && refused.Reason == "empty") {
				t.Fatal(err)
			}
		}
		if asked["firs"] > 1 || asked["seco"] > 1 || asked["Summ"] > 3 || len(seen) == 0 {
			t.Fatal(asked)
		}
	})
}

// The time of a turn adds up over hibernations and kills, without the time in between.
func TestTheTimeOfATurnAddsUp(t *testing.T) {
	for _, kill := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ran, hang := 0, kill
			a := agentOf(t, func(ctx context.Context, tn *flow.Turn[notes]) error {
				for i := range 4 {
					_, err := flow.Do(ctx, tn, flow.Effect{Name: fmt.Sprint(i)}, func(ctx context.Context) (int, error) {
						ran++
						time.Sleep(20 * time.Minute)
						if i == 1 && hang {
							hang = false
							<-ctx.Done()
							return 0, ctx.Err()
						}
						return 1, nil
					})
					if err == nil && i == 0 {
						err = tn.Sleep(ctx, 24*time.Hour)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			a.Options.Limits.Time = time.Hour
			_, err := a.Run(t.Context(), "s", flow.Text("go"))
			paused(t, err)
			time.Sleep(48 * time.Hour)
			if kill {
				ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
				defer stop()
				if _, err := resume(ctx, a, "s"); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				time.Sleep(24 * time.Hour)
			}
			out, err := resume(t.Context(), a, "s")
			if err != nil || out.StopReason != "limit" || out.Status != flow.StatusFinished || ran != 3 {
				t.Fatalf("kill %v: %v %q, ran %d", kill, err, out.StopReason, ran)
			}
		})
	}
}

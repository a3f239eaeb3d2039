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

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// typesAfter are the types of the events after seq.
func typesAfter(t *testing.T, log *eventlog.Log, seq int64) (types []string) {
	t.Helper()
	for e, err := range log.Read(t.Context(), "s", eventlog.From(seq+1)) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, string(e.Type.Name()))
	}
	return types
}

// An abort that is stored directly before an append of the runner. The runner keeps the
// results of effects that ran, and appends nothing else but the end of the turn.
func TestAnAbortInTheInstantOfAnAppend(t *testing.T) {
	for end, failed := range map[string]error{"completes": nil, "fails": errors.New("at the end")} {
		appends := abortAt(t, failed, 0)
		for n := 1; n < len(appends); n++ {
			t.Run(fmt.Sprint(end, "/", n, " ", appends[n]), func(t *testing.T) { abortAt(t, failed, n) })
		}
	}
}

// abortAt runs a turn that ends with an error or nil, and aborts it before append n, if n
// is not 0. It returns the types of the events of each append.
func abortAt(t *testing.T, failed error, n int) (appends []string) {
	synctest.Test(t, func(t *testing.T) {
		data := memory.New()
		defer data.Close()
		other := eventlog.Open(data.Handle())
		defer other.Close()
		aborted := int64(0)
		log := eventlog.Open(&hookStore{data.Handle(), func(events []event.Event) {
			var types []string
			for _, e := range events {
				types = append(types, string(e.Type.Name()))
			}
			appends = append(appends, strings.Join(types, " "))
			if n == 0 || len(appends) != n+1 {
				return
			}
			head, _ := other.Head(t.Context(), "s")
			if _, err := flow.Abort(context.Background(), other, "s", event.Abort{Reason: "now"}); err != nil {
				t.Error(err)
			}
			if after, _ := other.Head(t.Context(), "s"); after != head {
				aborted = head.Seq + 1
			}
		}})
		defer log.Close()
		ran := map[string]int{}
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: twoEffects(ran, failed)}
		a.Options.InProcess = -1
		c := start(t, a)
		if err := c.SendText("go"); err != nil {
			t.Fatal(err)
		}
		out, err := c.Output(t.Context())
		for errors.As(err, new(*flow.Hibernated)) {
			out, err = c.Output(t.Context())
		}
		checkAborted(t, log, &out, err, failed, aborted, ran)
	})
	return appends
}

// twoEffects is a turn function with two effects, a retry and a sleep.
func twoEffects(ran map[string]int, failed error) func(ctx context.Context, tn *flow.Turn[notes]) error {
	return func(ctx context.Context, tn *flow.Turn[notes]) error {
		do := func(name string, attempts int) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: name, Retry: flow.Retry{Attempts: attempts, First: time.Second}}, func(ctx context.Context) (int, error) {
				if ran[name]++; ran[name] < attempts {
					return 0, errors.New("again")
				}
				return 1, flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
			})
			return err
		}
		if err := do("one", 1); err != nil {
			return err
		}
		if err := tn.Add(said("between")); err != nil {
			return err
		}
		if err := do("two", 2); err != nil {
			return err
		}
		if err := tn.Sleep(ctx, time.Second); err != nil {
			return err
		}
		return errors.Join(tn.Add(said("end")), failed)
	}
}

// checkAborted checks the end of a turn of twoEffects that was aborted at an event, if
// aborted is not 0.
func checkAborted(t *testing.T, log *eventlog.Log, out *flow.Output[notes], err, failed error, aborted int64, ran map[string]int) {
	t.Helper()
	if aborted == 0 {
		if failed == nil && (err != nil || out.Status != flow.StatusFinished || out.Custom.Count != 2 || len(out.Messages) != 3) ||
			failed != nil && (!errors.Is(err, failed) || len(out.Messages) != 0) {
			t.Fatalf("%v %+v", err, out)
		}
		return
	}
	after := typesAfter(t, log, aborted)
	for _, name := range []string{"effect_intended", "turn_hibernated", "head_moved"} {
		if slices.Contains(after, name) {
			t.Fatalf("%s, %v", out.Status, after)
		}
	}
	i := slices.Index(after, "turn_completed")
	if !errors.Is(err, flow.ErrAborted) || out.Status != flow.StatusAborted || i < 0 || slices.Contains(after[i+1:], "turn_completed") {
		t.Fatalf("%v %s, %v", err, out.Status, after)
	}
	if out.Custom.Count != ran["one"]+max(ran["two"]-1, 0) {
		t.Fatalf("count %d, ran %v, %v", out.Custom.Count, ran, after)
	}
}

// Another process moves the head while an effect runs: the runner ends with ErrRewound and
// appends nothing. The next start continues the turn of the new path.
func TestRewoundWhileATurnRuns(t *testing.T) {
	for name, to := range map[string]func(turn *projection.PathTurn) fork.Point{
		"before the turn": func(turn *projection.PathTurn) fork.Point { return fork.BeforeTurn(turn.Index) },
		"into the turn":   func(turn *projection.PathTurn) fork.Point { return fork.AtSeq(turn.Seq) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := agentOf(t, nil)
				var ran []string
				hang := true
				a.Turn = func(ctx context.Context, tn *flow.Turn[notes]) error {
					text := tn.Input().Messages[0].Text()
					for _, name := range []string{"one", "two"} {
						_, err := flow.Do(ctx, tn, flow.Effect{Name: name}, func(ctx context.Context) (int, error) {
							ran = append(ran, text+" "+name)
							if text == "b" && name == "two" && hang {
								<-ctx.Done()
								return 0, ctx.Err()
							}
							return 1, flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
						})
						if err != nil {
							return err
						}
					}
					return nil
				}
				if _, err := a.Run(t.Context(), "s", flow.Text("a")); err != nil {
					t.Fatal(err)
				}
				h, err := a.Send(t.Context(), "s", flow.Text("b"))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				p, err := projection.LoadPending(t.Context(), a.Log, "s")
				if err != nil {
					t.Fatal(err)
				}
				moved, err := fork.Rewind(t.Context(), a.Log, "s", to(p.Turn))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := h.Wait(t.Context()); !errors.Is(err, flow.ErrOvertaken) {
					t.Fatal(err)
				}
				if head, _ := a.Log.Head(t.Context(), "s"); head != moved.Head {
					t.Fatalf("appended %v", typesAfter(t, a.Log, moved.Head.Seq))
				}
				hang = false
				out, err := a.Run(t.Context(), "s", flow.Text("c"))
				if err != nil || out.Status != flow.StatusFinished || out.Custom.Count != 4 {
					t.Fatalf("%v %+v, ran %v", err, out.Custom, ran)
				}
			})
		})
	}
}

func review(name string) *flow.Question {
	if name == "two" {
		return &flow.Question{}
	}
	return nil
}

package flow_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

// steps is an agent whose turn runs named effects; the effect "hang" waits for its end.
func steps(log *eventlog.Log, hang bool, ran *[]string, names func(t *flow.Turn[notes]) ([]string, error)) *flow.Agent[notes] {
	return &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		list, err := names(tn)
		if err != nil {
			return err
		}
		for _, name := range list {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: name, Arguments: name}, func(ctx context.Context) (int, error) {
				*ran = append(*ran, name)
				if name == "hang" && hang {
					<-ctx.Done()
					return 0, ctx.Err()
				}
				return 1, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

func fixed(names ...string) func(*flow.Turn[notes]) ([]string, error) {
	return func(*flow.Turn[notes]) ([]string, error) { return names, nil }
}

// interrupt runs an agent until its effect "hang" runs, and stops it.
func interrupt(t *testing.T, a *flow.Agent[notes], ran *[]string, n int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c, err := connect(ctx, a, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendText("go"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	stop()
	<-c.Done()
	if len(*ran) != n {
		t.Fatalf("ran %v", *ran)
	}
}

func TestNewerCode(t *testing.T) {
	for name, c := range map[string]struct {
		names func(t *flow.Turn[notes]) ([]string, error)
		want  string // the member of the difference
		ran   []string
	}{
		"the same":   {fixed("x", "hang", "y"), "", []string{"hang", "y"}},
		"other name": {fixed("z", "hang"), "name", nil},
		"later name": {fixed("x", "z"), "name", nil},
		"end":        {fixed("x"), "end", nil},
		"inserted":   {fixed("new", "x", "hang"), "name", nil},
		"new at end": {fixed("x", "hang", "new"), "", []string{"hang", "new"}},
		"patched": {func(tn *flow.Turn[notes]) ([]string, error) {
			if ok, err := tn.Patched("before x"); ok || err != nil {
				return []string{"new"}, err
			}
			return []string{"x", "hang"}, nil
		}, "", []string{"hang"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := eventlog.Open(memory.New())
				defer log.Close()
				var ran []string
				interrupt(t, steps(log, true, &ran, fixed("x", "hang", "y")), &ran, 2)
				ran = nil
				a := steps(log, false, &ran, c.names)
				a.Version = "2"
				_, err := resume(t.Context(), a, "s")
				var d *flow.DivergenceError
				if c.want == "" {
					if err != nil || !slices.Equal(ran, c.ran) {
						t.Fatalf("%v, ran %v", err, ran)
					}
					return
				}
				if !errors.As(err, &d) || d.Member != c.want || len(ran) != 0 {
					t.Fatalf("%v, ran %v", err, ran)
				}
				ran = nil
				if info, err := flow.Info(t.Context(), log, "s"); err != nil || info.Status != flow.StatusExpired {
					t.Fatalf("the turn does not stay open: %v %v", info.Status, err)
				}
			})
		})
	}
}

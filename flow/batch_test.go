package flow_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/flow"
)

// Of a batch, no more effects run at a time than the limit, also when each of them fails
// once. The results have the order of the calls.
func TestTheLimitOfABatch(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 9} {
		var running, most atomic.Int64
		var calls []flow.Call[int]
		for i := range 6 {
			e := flow.Effect{Name: "step", Arguments: i, Retry: flow.Retry{Attempts: 2, First: time.Nanosecond}}
			calls = append(calls, flow.Call[int]{Effect: e, Do: func(ctx context.Context) (int, error) {
				for n := running.Add(1); n > most.Load(); {
					most.Store(n)
				}
				defer running.Add(-1)
				runtime.Gosched()
				if x, _ := flow.FromContext(ctx); x.Attempt == 1 {
					return 0, errors.New("no luck")
				}
				return i, nil
			}})
		}
		a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			results, err := flow.Batch(ctx, tn, limit, calls...)
			for i, r := range results {
				if r.Value != i || r.Err != nil {
					err = errors.Join(err, errors.New(strconv.Itoa(r.Value)), r.Err)
				}
			}
			return err
		}}
		if _, err := a.Run(t.Context(), "s", flow.Text("go")); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		if limit > 0 && most.Load() > int64(limit) {
			t.Errorf("limit %d: %d effects ran at a time", limit, most.Load())
		}
	}
}

// An effect that ends its goroutine fails the turn, also in a batch.
func TestAnEffectEndsItsGoroutine(t *testing.T) {
	ends := func(context.Context) (int, error) {
		runtime.Goexit()
		return 0, nil
	}
	works := func(context.Context) (int, error) { return 1, nil }
	step := flow.Effect{Name: "step"}
	for name, turn := range map[string]func(context.Context, *flow.Turn[notes]) error{
		"alone": func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, step, ends)
			return err
		},
		"in a batch": func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Batch(ctx, tn, 0, flow.Call[int]{Effect: step, Do: works}, flow.Call[int]{Effect: step, Do: ends})
			return err
		},
	} {
		a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: turn}
		var failed *flow.TurnError
		if out, err := a.Run(t.Context(), "s", flow.Text("go")); !errors.As(err, &failed) || out.Status != flow.StatusFailed {
			t.Errorf("%s: %s, %v", name, out.Status, err)
		}
	}
}

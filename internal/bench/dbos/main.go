// Command dbos measures a turn of package flow with ten idempotent effects, and a workflow of DBOS
// Transact with ten steps, on one PostgreSQL server. Both record each result before the next step
// begins, and run a step again if its result is missing. Run it by hand:
//
//	GOWORK=off go -C internal/bench/dbos run .
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/store/postgres"
)

const (
	steps  = 10
	rounds = 9
	runs   = 20 // of each worker in a round
)

func main() {
	if err := compare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(ctx context.Context) (err error) {
	server, err := pgtest.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	ours, end, err := convlogRun(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer end()
	theirs, end, err := dbosRun(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer end()
	for _, workers := range []int{1, 16} {
		var a, b []time.Duration
		for range rounds { // by turns, so that both have the same noise
			x, err := timed(workers, ours)
			if err != nil {
				return err
			}
			y, err := timed(workers, theirs)
			if err != nil {
				return err
			}
			a, b = append(a, x), append(b, y)
		}
		slices.Sort(a)
		slices.Sort(b)
		x, y := a[rounds/2], b[rounds/2]
		fmt.Printf("%2d at once: a run of %d steps takes %.2f ms, with DBOS %.2f ms: %.2f ×\n",
			workers, steps, float64(x)/1e6, float64(y)/1e6, float64(x)/float64(y))
	}
	return nil
}

// timed is the time of a run when some workers run one after another.
func timed(workers int, run func(id string) error) (time.Duration, error) {
	errs := make([]error, workers)
	var all sync.WaitGroup
	start := time.Now()
	for w := range workers {
		all.Go(func() {
			for i := range runs {
				errs[w] = errors.Join(errs[w], run(fmt.Sprint("run ", start.UnixNano(), " ", w, " ", i)))
			}
		})
	}
	all.Wait()
	return time.Since(start) / time.Duration(workers*runs), errors.Join(errs...)
}

func step(context.Context) (string, error) { return "the result of a step", nil }

func convlogRun(ctx context.Context, dsn string) (run func(string) error, end func(), err error) {
	store, err := postgres.New(dsn)
	if err != nil {
		return nil, nil, err
	}
	log := eventlog.Open(store)
	agent := &flow.Agent[int]{Name: "steps", Log: log, Turn: func(ctx context.Context, t *flow.Turn[int]) error {
		for range steps {
			if _, err := flow.Do(ctx, t, flow.Effect{Name: "step"}, step); err != nil {
				return err
			}
		}
		return nil
	}}
	run = func(id string) error {
		_, err := agent.Run(ctx, id, flow.Text("go"))
		return err
	}
	return run, func() { _ = log.Close() }, nil
}

func dbosRun(ctx context.Context, dsn string) (run func(string) error, end func(), err error) {
	d, err := dbos.NewContext(ctx, dbos.Config{AppName: "bench", DatabaseURL: dsn, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	workflow := func(ctx dbos.Context, _ string) (string, error) {
		for range steps {
			if _, err := dbos.RunAsStep(ctx, step); err != nil {
				return "", err
			}
		}
		return "done", nil
	}
	dbos.RegisterWorkflow(d, workflow)
	if err := dbos.Launch(d); err != nil {
		return nil, nil, err
	}
	run = func(id string) error {
		h, err := dbos.RunWorkflow(d, workflow, "go", dbos.WithWorkflowID(id))
		if err == nil {
			_, err = h.GetResult()
		}
		return err
	}
	return run, func() { dbos.Shutdown(d, time.Second) }, nil
}

//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// maxGrowth is the bar for the time per event, or per session, when their number is ten
// times as large.
const maxGrowth = 1.3

// growingTrials have a row for each operation.
var growingTrials = func() (trials []trial) {
	for _, op := range operations {
		trials = append(trials, trial{
			named: true,
			rows: []row{{
				name:     "grow/" + op.name,
				measured: "per event",
				against:  "the same of a session with a tenth of the events",
				unit:     nanoseconds, bar: atMost(maxGrowth),
			}},
			measure: func(ctx context.Context, b *bench) ([]figure, error) { return growing(ctx, b, op) },
		})
	}
	return trials
}()

// growing returns the largest growth of the operation's time per event.
func growing(ctx context.Context, b *bench, op operation) ([]figure, error) {
	var worst figure
	var notes []string
	for _, s := range shapes {
		grown, err := b.growths(ctx, op, s)
		if err != nil {
			return nil, fmt.Errorf("%s of shape %s: %w", op.name, s.name, err)
		}
		for _, g := range grown {
			if g.ratio > maxGrowth {
				notes = append(notes, fmt.Sprintf("%s %s", s.name, g.note))
			}
			if g.ratio > worst.ratio {
				worst = figure{ours: g.ours, theirs: g.theirs, ratio: g.ratio}
			}
		}
	}
	worst.note = strings.Join(notes, ", ")
	return []figure{worst}, nil
}

// growthRounds is the number of rounds in which the sizes of a shape are timed.
const growthRounds = 5

// growths returns a growth for each size but the smallest: the median of all rounds. A round
// times each size once. If the first round meets the bar, there is no other one.
func (b *bench) growths(ctx context.Context, op operation, s shape) (grown []figure, err error) {
	times := map[int][]float64{}
	for round := range growthRounds {
		for n := range powers(b.sizes.decades) {
			took, err := b.timeOperation(ctx, op, s, n)
			if err != nil {
				return nil, err
			}
			times[n] = append(times[n], took)
		}
		grown = growthsOf(times)
		if round == 0 && !slices.ContainsFunc(grown, func(g figure) bool { return g.ratio > maxGrowth }) {
			break
		}
	}
	return grown, nil
}

// growthsOf divides the time per event at each size by the time at a tenth of the size.
func growthsOf(times map[int][]float64) (grown []figure) {
	for _, n := range slices.Sorted(maps.Keys(times)) {
		if before := times[n/10]; before != nil {
			g := samples{ours: times[n], theirs: before}.times()
			g.note = fmt.Sprintf("%d ×%.2g", n, g.ratio)
			grown = append(grown, g)
		}
	}
	return grown
}

// powers yields 1,000, 10,000, …
func powers(decades int) iter.Seq[int] {
	return func(yield func(n int) bool) {
		for n, i := 1000, 0; i < decades && yield(n); i++ {
			n *= 10
		}
	}
}

func (b *bench) largestSize() (largest int) {
	for n := range powers(b.sizes.decades) {
		largest = n
	}
	return largest
}

// shapeSize identifies a log with one session.
type shapeSize struct {
	shape string
	size  int
}

// shapedSession is the id of the session in such a log.
const shapedSession = "shaped"

// shaped returns a log whose only session has n events of a shape.
func (b *bench) shaped(ctx context.Context, s shape, n int) (*eventlog.Log, error) {
	if log := b.shared.shaped[shapeSize{s.name, n}]; log != nil {
		return log, nil
	}
	log, _ := b.jsonl(never)
	if err := appendAll(ctx, log, shapedSession, s.events(n), batchLen); err != nil {
		return nil, err
	}
	if b.shared.shaped == nil {
		b.shared.shaped = map[shapeSize]*eventlog.Log{}
	}
	b.shared.shaped[shapeSize{s.name, n}] = log
	return log, nil
}

// timeOperation returns the processor time of the operation per event. It repeats the
// operation until it has as many events as the largest size, so that the garbage collector
// has the same work with each size. The first run is not timed: of each size, what the log
// remembers and the memory of the process are as after a run.
func (b *bench) timeOperation(ctx context.Context, op operation, s shape, n int) (float64, error) {
	log, err := b.shaped(ctx, s, n)
	if err != nil {
		return 0, err
	}
	var total time.Duration
	if _, err := b.runOperation(ctx, op, log); err != nil {
		return 0, err
	}
	times := b.largestSize() / n
	runtime.GC()
	for range times {
		took, err := b.runOperation(ctx, op, log)
		if err != nil {
			return 0, err
		}
		total += took
	}
	return float64(total.Nanoseconds()) / float64(n*times), nil
}

// runOperation runs the operation once and removes the sessions that it created.
func (b *bench) runOperation(ctx context.Context, op operation, log *eventlog.Log) (time.Duration, error) {
	names := b.names
	run, err := op.prepare(ctx, b, log, shapedSession)
	if err != nil {
		return 0, err
	}
	start := processorTime()
	err = run()
	took := processorTime() - start
	for ; names < b.names; names++ {
		err = errors.Join(err, erase.Remove(ctx, log, sessionName(names+1)))
	}
	return took, err
}

//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// manyTrials have a row for each operation over a store with many sessions, and each store.
var manyTrials = func() (trials []trial) {
	for _, op := range storeOperations {
		for _, kind := range manyStores {
			trials = append(trials, trial{
				named: true,
				rows: []row{{
					name:     "many/" + op.name + "/" + kind.name,
					measured: "per session",
					against:  "the same of a store with a tenth of the sessions",
					unit:     nanoseconds, bar: atMost(maxGrowth),
				}},
				measure: func(ctx context.Context, b *bench) ([]figure, error) { return many(ctx, b, op, kind) },
			})
		}
	}
	return trials
}()

// manyStore is a kind of store. Its appends are not synced.
type manyStore struct {
	name string
	open func(b *bench) *eventlog.Log
}

var manyStores = []manyStore{
	{"jsonl", func(b *bench) *eventlog.Log { log, _ := b.jsonl(never); return log }},
	{"sqlite", func(b *bench) *eventlog.Log { log, _ := b.sqlite(unsynced); return log }},
}

// mostForks is the number of sessions of the largest store with forks.
const mostForks = 10_000

// manySize identifies a store with many sessions.
type manySize struct {
	kind  string
	shape storeShape
	size  int
}

// many returns the largest growth of the operation's time per session.
func many(ctx context.Context, b *bench, op storeOperation, kind manyStore) ([]figure, error) {
	var worst figure
	var notes []string
	for _, shape := range op.shapes {
		before := 0.0
		for n := range powers(b.sizes.stores) {
			if shape != apart && n > mostForks {
				break
			}
			took, err := b.timeMany(ctx, op, kind, shape, n)
			if err != nil {
				return nil, fmt.Errorf("%s of %d sessions %s: %w", op.name, n, shape, err)
			}
			if before > 0 && took/before > maxGrowth {
				notes = append(notes, fmt.Sprintf("%s %d ×%.2g", shape, n, took/before))
			}
			if before > 0 && took/before > worst.ratio {
				worst = figure{ours: took, theirs: before, ratio: took / before}
			}
			before = took
		}
	}
	worst.note = strings.Join(notes, ", ")
	return []figure{worst}, nil
}

// timeMany returns the shortest processor time of the operation per session. An operation
// that changes the store runs once: undo takes longer than the operation.
func (b *bench) timeMany(ctx context.Context, op storeOperation, kind manyStore, shape storeShape, n int) (float64, error) {
	s, err := b.many(ctx, kind, shape, n)
	if err != nil {
		return 0, err
	}
	rounds := 3
	if op.undo != nil {
		rounds = 1
	}
	var shortest time.Duration
	for range rounds {
		runtime.GC()
		start := processorTime()
		err := op.run(ctx, s)
		took := processorTime() - start
		if op.undo != nil {
			err = errors.Join(err, op.undo(ctx, s))
		}
		if err != nil {
			return 0, err
		}
		if shortest == 0 || took < shortest {
			shortest = took
		}
	}
	return float64(shortest.Nanoseconds()) / float64(n), nil
}

// many returns a store with n sessions of a shape.
func (b *bench) many(ctx context.Context, kind manyStore, shape storeShape, n int) (*manySessions, error) {
	key := manySize{kind.name, shape, n}
	if s := b.shared.many[key]; s != nil {
		return s, nil
	}
	s, err := fillMany(ctx, kind.open(b), shape, n)
	if err != nil {
		return nil, err
	}
	if b.shared.many == nil {
		b.shared.many = map[manySize]*manySessions{}
	}
	b.shared.many[key] = s
	return s, nil
}

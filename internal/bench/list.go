//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

var listTrials = []trial{
	{
		rows: []row{{
			name:     "list/jsonl",
			measured: "Sessions of a store of 10,000, first and last event each, per session",
			against:  "opening each file and reading 4 KiB at its start and at its end",
			unit:     nanoseconds, bar: atMost(3),
		}},
		measure: listAll,
	},
}

func listAll(ctx context.Context, b *bench) ([]figure, error) {
	large, err := b.largeStore(ctx)
	if err != nil {
		return nil, err
	}
	want := len(large.sessions)
	log := b.open(jsonl.New(large.dir, jsonl.Options{ReadOnly: true}))
	list := func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := countSessions(ctx, log)
		return perItem(start, want), errors.Join(err, expectCount(n, want))
	}
	raw := func(context.Context) (float64, error) {
		start := time.Now()
		n, err := rawList(large.dir)
		return perItem(start, want), errors.Join(err, expectCount(n, want))
	}
	return compare(ctx, b.sizes.rounds, list, raw, samples.times)
}

func countSessions(ctx context.Context, log *eventlog.Log) (n int, err error) {
	for info, err := range log.Sessions(ctx) {
		if err := errors.Join(err, info.Err); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

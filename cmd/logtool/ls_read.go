package main

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog"
)

// readAll reads the sessions of rows, several at a time, and fills in what only
// their events tell. What cannot be read is said in its row.
func readAll(ctx context.Context, log *eventlog.Log, rows []*sessionRow) error {
	return each(ctx, rows, func(row *sessionRow) error {
		if row.tally != nil {
			return nil
		}
		return row.read(ctx, log)
	})
}

// learnAll finds the sources that first events do not tell.
func learnAll(ctx context.Context, log *eventlog.Log, rows []*sessionRow) error {
	return each(ctx, rows, func(row *sessionRow) error {
		if row.begun {
			return nil
		}
		_, err := row.listen(ctx, log)
		return err
	})
}

// each runs f for the rows that can be read, several at a time.
func each(ctx context.Context, rows []*sessionRow, f func(*sessionRow) error) error {
	var all sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, row := range rows {
		if row.Error != "" {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			if err := f(row); err != nil {
				row.Error = err.Error()
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// read fills in what only the session's events tell.
func (row *sessionRow) read(ctx context.Context, log *eventlog.Log) error {
	stats, err := runlog.LoadStats(ctx, log, row.ID, time.UTC)
	if err != nil {
		return err
	}
	t := stats.Total
	row.tally = &tally{
		Messages: t.Messages, Calls: t.Calls, Turns: t.Turns, Cost: t.Cost, Usage: t.Usage, Unpriced: t.Unpriced,
		Models: slices.Sorted(maps.Keys(stats.ByModel)),
	}
	moved, err := row.listen(ctx, log)
	if err != nil || !moved {
		return err
	}
	return row.countOrphaned(ctx, log)
}

// countOrphaned counts the session's own events that were rewound.
func (row *sessionRow) countOrphaned(ctx context.Context, log *eventlog.Log) error {
	rewound := newOrphans(log, row.ID)
	for e, err := range log.Read(ctx, row.ID, eventlog.All().Own().Bare()) {
		if err != nil {
			return err
		}
		orphaned, err := rewound.has(ctx, &e)
		if err != nil {
			return err
		}
		if orphaned {
			row.Orphaned++
		}
	}
	return nil
}

// listen finds what the session's own events say of it. It reports whether the
// head was moved.
func (row *sessionRow) listen(ctx context.Context, log *eventlog.Log) (moved bool, err error) {
	var n sessionName
	for e, err := range log.Read(ctx, row.ID, eventlog.All().Own()) {
		if err != nil {
			return moved, err
		}
		n.add(&e)
		if s, ok, err := event.Decode[event.Session](&e); ok && err == nil {
			row.Agent = cmp.Or(s.Agent, row.Agent)
			row.Source, row.CWD = cmp.Or(s.Source.Format, row.Source), cmp.Or(s.CWD, row.CWD)
		}
		moved = moved || e.Type.Name() == event.HeadMoved
	}
	row.Title = n.name()
	return moved, nil
}

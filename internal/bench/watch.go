//go:build unix

package main

import (
	"context"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var watchTrials = []trial{
	{
		rows: []row{{
			name:     "watch/dropped",
			measured: "events of a session appended without a pause that its watcher missed or met out of order",
			unit:     count, bar: zero,
		}, {
			name: "watch/cost",
			measured: "time per event that a watcher adds: from the first Append until it has the last event, " +
				"less the same appends unwatched, no sync",
			against: "the same appends without a watcher",
			unit:    nanoseconds, bar: atMost(0.5),
		}},
		measure: watchFlatOut,
	},
}

func watchFlatOut(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.jsonl(never)
	events := people(b.sizes.events)
	dropped := 0
	watched := func(ctx context.Context) (float64, error) {
		took, missed, err := b.timeWatched(ctx, log, events)
		dropped += missed
		return took, err
	}
	alone := func(ctx context.Context) (float64, error) { return b.timeAppends(ctx, log, events) }
	s, err := pair(ctx, b.sizes.rounds, watched, alone)
	if err != nil {
		return nil, err
	}
	f := s.times()
	lost := float64(dropped)
	return []figure{{ours: lost, ratio: lost}, {ours: f.ours - f.theirs, theirs: f.theirs, ratio: f.ratio - 1}}, nil
}

// timeWatched is timeAppends with a watcher that keeps up or catches up.
func (b *bench) timeWatched(ctx context.Context, log *eventlog.Log, events []event.Event) (float64, int, error) {
	session := b.name()
	if err := appendEach(ctx, log, session, events[:startLen]); err != nil {
		return 0, 0, err
	}
	started, missed := make(chan struct{}), 0
	watching := make(chan error, 1)
	go func() {
		var err error
		missed, err = watchAll(ctx, log, session, len(events), started)
		watching <- err
	}()
	select {
	case <-started:
	case err := <-watching:
		return 0, 0, err
	}
	start := time.Now()
	if err := appendEach(ctx, log, session, events[startLen:]); err != nil {
		return 0, 0, err
	}
	err := <-watching
	return perItem(start, len(events)-startLen), missed, err
}

// watchAll watches a session up to event n. It closes started after the first events.
func watchAll(ctx context.Context, log *eventlog.Log, session string, n int, started chan<- struct{}) (missed int, err error) {
	due := int64(1)
	for e, err := range log.Watch(ctx, session, 1) {
		if err != nil {
			return missed, err
		}
		if e.Seq != due {
			missed++
		}
		due = e.Seq + 1
		if e.Seq == startLen {
			close(started)
		}
		if e.Seq == int64(n) {
			break
		}
	}
	return missed, nil
}

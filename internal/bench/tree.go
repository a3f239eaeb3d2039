//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// treeStores are the stores for forks and resumes, with default options.
var treeStores = []struct {
	name string
	open func(b *bench) *eventlog.Log
}{
	{"jsonl", func(b *bench) *eventlog.Log { log, _ := b.jsonl(always); return log }},
	{"sqlite", func(b *bench) *eventlog.Log { log, _ := b.sqlite(synced); return log }},
}

var treeTrials = func() (trials []trial) {
	for _, s := range treeStores {
		trials = append(trials, trial{
			rows: []row{
				{name: "fork/" + s.name, measured: "fork of a session of 100,000 events, durable",
					against: "Append of one event to a session in use, durable", unit: nanoseconds, bar: atMost(5)},
				{name: "fork/" + s.name + "-growth", measured: "fork of a session of 100,000 events, durable",
					against: "fork of one of 1,000", unit: nanoseconds, bar: atMost(1.3)},
			},
			measure: func(ctx context.Context, b *bench) ([]figure, error) { return forks(ctx, b, s.open(b)) },
		}, trial{
			rows: []row{
				{name: "resume/" + s.name, measured: "Load of the effective history of 100,000 events, 60 of them after a compaction and a snapshot",
					against: "the same without snapshots", unit: nanoseconds, bar: atMost(1.0 / 50)},
				{name: "resume/" + s.name + "-growth", measured: "Load of the effective history of 100,000 events, from a snapshot",
					against: "the same of 1,000", unit: nanoseconds, bar: atMost(1.5)},
			},
			measure: func(ctx context.Context, b *bench) ([]figure, error) { return resumes(ctx, b, s.open(b)) },
		})
	}
	return trials
}()

func forks(ctx context.Context, b *bench, log *eventlog.Log) ([]figure, error) {
	old, young, err := b.growSessions(ctx, log)
	if err != nil {
		return nil, err
	}
	used := b.name() // the forked sessions stay as they are: both end with a conversation
	if err := fill(ctx, log, used, shortLen); err != nil {
		return nil, err
	}
	ours := func(session string) side {
		return func(ctx context.Context) (float64, error) { return b.timeForks(ctx, log, session) }
	}
	one := func(ctx context.Context) (float64, error) { return b.timeNotes(ctx, log, used) }
	against, err := compare(ctx, b.sizes.rounds, ours(old), one, samples.times)
	if err != nil {
		return nil, err
	}
	growth, err := compare(ctx, b.sizes.rounds, ours(old), ours(young), samples.times)
	return append(against, growth...), err
}

// treeTimes is how many forks, appends or loads are timed together.
const treeTimes = 20

func (b *bench) timeForks(ctx context.Context, log *eventlog.Log, session string) (float64, error) {
	start := time.Now()
	for range treeTimes {
		if _, err := fork.At(ctx, log, session, fork.Head(), fork.Options{ID: b.name()}); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / treeTimes, nil
}

func (b *bench) timeNotes(ctx context.Context, log *eventlog.Log, session string) (float64, error) {
	events := users(treeTimes)
	start := time.Now()
	for i := range events {
		if _, err := log.Append(ctx, session, eventlog.Any(), events[i]); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / treeTimes, nil
}

func resumes(ctx context.Context, b *bench, log *eventlog.Log) ([]figure, error) {
	old, young, err := b.growSessions(ctx, log)
	if err = errors.Join(err, b.compactAndSnapshot(ctx, log, old), b.compactAndSnapshot(ctx, log, young)); err != nil {
		return nil, err
	}
	load := func(session string, times int, o projection.Options) side {
		return func(ctx context.Context) (float64, error) {
			start := time.Now()
			for range times {
				if _, err := projection.Load(ctx, log, session, projection.History(), o); err != nil {
					return 0, err
				}
			}
			return float64(time.Since(start).Nanoseconds()) / float64(times), nil
		}
	}
	resume := load(old, treeTimes, projection.Options{})
	against, err := compare(ctx, b.sizes.rounds, resume, load(old, 1, projection.Options{Replay: true}), samples.times)
	if err != nil {
		return nil, err
	}
	growth, err := compare(ctx, b.sizes.rounds, resume, load(young, treeTimes, projection.Options{}), samples.times)
	return append(against, growth...), err
}

// compactAndSnapshot appends a compaction of all events, a snapshot, and 60 more
// events.
func (b *bench) compactAndSnapshot(ctx context.Context, log *eventlog.Log, session string) error {
	compaction := event.New(event.Compaction{Replace: true, Summary: newWriter().text(4000)})
	if _, err := log.Append(ctx, session, eventlog.Any(), compaction); err != nil {
		return err
	}
	live, err := projection.Resume(ctx, log, session, projection.Session())
	if err != nil {
		return err
	}
	if _, _, err := live.Snapshot(ctx, projection.Request{Trigger: projection.Manual, Body: true}); err != nil {
		return err
	}
	_, err = b.timeNotes(ctx, log, session)
	for range 2 {
		if err == nil {
			_, err = b.timeNotes(ctx, log, session)
		}
	}
	return err
}

//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

var copyTrials = []trial{
	{
		rows: []row{{
			name:     "copy/jsonl",
			measured: "copy of a session of 100,000 events, no sync",
			against:  "Read of them all and Append of their payloads in batches of 100, no sync",
			unit:     nanoseconds, bar: atMost(3),
		}},
		measure: copies,
	},
	{
		rows: []row{{
			name:     "fork/bytes",
			measured: "bytes that 1,000 forks of a session of 100,000 events add to the store, jsonl",
			against:  "1 MB",
			unit:     sizeInBytes, bar: atMost(1),
		}},
		measure: forkBytes,
	},
	{
		rows: []row{{
			name:     "snapshot/bytes",
			measured: "snapshots and their blobs of a session of 3,000 events, one taken at the end of each turn by the default policy, all projections of projection.Session",
			against:  "its other events",
			unit:     sizeInBytes, bar: atMost(1),
		}},
		measure: snapshotBytes,
	},
}

func copies(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longJSONL(ctx)
	if err != nil {
		return nil, err
	}
	ours := func(ctx context.Context) (float64, error) {
		to := b.name()
		start := time.Now()
		_, err := fork.Copy(ctx, h.log, longSession, fork.CopyOptions{ID: to})
		took := float64(time.Since(start).Nanoseconds())
		return took, errors.Join(err, erase.Remove(ctx, h.log, to))
	}
	theirs := func(ctx context.Context) (float64, error) {
		to := b.name()
		start := time.Now()
		err := readAndAppend(ctx, h.log, to, batchLen)
		took := float64(time.Since(start).Nanoseconds())
		return took, errors.Join(err, erase.Remove(ctx, h.log, to))
	}
	return compare(ctx, b.sizes.rounds, ours, theirs, samples.times)
}

// readAndAppend appends the payloads of the long session to another session.
func readAndAppend(ctx context.Context, log *eventlog.Log, to string, batch int) error {
	var events []event.Event
	flush := func() error {
		_, err := log.Append(ctx, to, eventlog.Any(), events...)
		events = events[:0]
		return err
	}
	for e, err := range log.Read(ctx, longSession, eventlog.All()) {
		if err != nil {
			return err
		}
		events = append(events, event.Event{ID: event.NewID(), Type: e.Type, Data: e.Data})
		if len(events) == batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func forkBytes(ctx context.Context, b *bench) ([]figure, error) {
	log, dir := b.jsonl(never)
	if err := fill(ctx, log, longSession, b.sizes.history); err != nil {
		return nil, err
	}
	before, err := sizeOf(dir)
	for range 1000 {
		if err == nil {
			_, err = fork.At(ctx, log, longSession, fork.Head(), fork.Options{Force: true})
		}
	}
	after, sizeErr := sizeOf(dir)
	added := after - before
	return []figure{{ours: added, theirs: 1e6, ratio: added / 1e6}}, errors.Join(err, sizeErr)
}

func snapshotBytes(ctx context.Context, b *bench) ([]figure, error) {
	log, dir := b.jsonl(never)
	if err := runTurns(ctx, log, converse(newWriter(), 3000)); err != nil {
		return nil, err
	}
	var others float64
	for e, err := range log.Read(ctx, longSession, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		if e.Type.Name() != event.ProjectionSnapshotted {
			others += float64(len(e.Line()) + 1)
		}
	}
	all, err := sizeOf(dir)
	return []figure{{ours: all - others, theirs: others, ratio: (all - others) / others}}, err
}

// runTurns appends turns as an agent does, with a snapshot after each.
func runTurns(ctx context.Context, log *eventlog.Log, c *conversation) error {
	events := newEvents(c.payloads)
	if err := appendEach(ctx, log, longSession, events[:startLen]); err != nil {
		return err
	}
	live, err := projection.Resume(ctx, log, longSession, projection.Session())
	at := startLen
	for i, end := range c.ends {
		if err == nil {
			err = errors.Join(appendEach(ctx, log, longSession, events[at:end]), live.Follow(ctx))
		}
		if err == nil {
			_, _, err = live.Snapshot(ctx, projection.Request{Trigger: projection.TurnEnd, TurnIndex: i})
		}
		at = end
	}
	return err
}

// sizeOf returns the total size of the files below a folder.
func sizeOf(dir string) (total float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += float64(info.Size())
		}
		return err
	})
	return total, err
}

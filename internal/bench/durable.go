//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// groupSize is how many writers share a sync, and how many events a batch has.
const groupSize = 64

var durableTrials = []trial{
	{
		rows: []row{{
			name:     "durable/jsonl",
			measured: "Append of one event, durable",
			against:  "write to a held O_APPEND descriptor and fdatasync, same bytes",
			unit:     perSecond, bar: atLeast(0.8),
		}},
		measure: durableOne,
	},
	{
		// The reference for a group commit is a group commit: 64 writers on both sides.
		rows: []row{{
			name:     "durable/jsonl-64-writers",
			measured: "events a second by 64 goroutines appending to one session, durable",
			against:  "64 goroutines queue lines for one that writes the queue and calls fdatasync, same bytes",
			unit:     perSecond, bar: atLeast(0.5),
		}},
		measure: durableHanded,
	},
	{
		rows: []row{{
			name:     "durable/jsonl-64-to-1",
			measured: "events a second by 64 goroutines appending to one session, durable",
			against:  "one goroutine that writes 64 lines at once and then calls fdatasync, same bytes",
			unit:     perSecond,
		}},
		measure: durableGroup,
	},
	{
		rows: []row{{
			name:     "durable/jsonl-batch",
			measured: "events a second in appends of 64 events, durable",
			against:  "one write of 64 lines and fdatasync, same bytes",
			unit:     perSecond, bar: atLeast(0.5),
		}},
		measure: durableBatch,
	},
}

// durableTrial returns a trial that measures the log and the raw side with the same
// lines.
func durableTrial(
	ctx context.Context, b *bench, events []event.Event,
	ours func(*eventlog.Log, []event.Event) side, raw func(lines [][]byte) (float64, error),
) ([]figure, error) {
	log, _ := b.jsonl(always)
	unsynced, _ := b.jsonl(never)
	lines, err := linesOf(ctx, unsynced, b.name(), events)
	if err != nil {
		return nil, err
	}
	unix.Sync() // flush the writes of other trials
	theirs := func(context.Context) (float64, error) { return raw(lines) }
	return compare(ctx, b.sizes.rounds, ours(log, events), theirs, samples.rates)
}

func durableOne(ctx context.Context, b *bench) ([]figure, error) {
	return durableTrial(ctx, b, people(b.sizes.durable), func(log *eventlog.Log, events []event.Event) side {
		return func(ctx context.Context) (float64, error) { return b.timeAppends(ctx, log, events) }
	}, func(lines [][]byte) (float64, error) { return b.timeRaw(lines, (*rawFile).appendSynced) })
}

func durableGroup(ctx context.Context, b *bench) ([]figure, error) {
	return durableTrial(ctx, b, users(b.sizes.durable*groupSize/4), b.groupSide, b.timeRawBatches)
}

func durableHanded(ctx context.Context, b *bench) ([]figure, error) {
	return durableTrial(ctx, b, users(b.sizes.durable*groupSize/4), b.groupSide, b.timeGroupCommit)
}

// groupSide lets many goroutines append to one session, each its share of the events.
func (b *bench) groupSide(log *eventlog.Log, events []event.Event) side {
	return func(ctx context.Context) (float64, error) {
		session := b.name()
		if err := appendEach(ctx, log, session, users(1)); err != nil {
			return 0, err
		}
		parts := slices.Collect(slices.Chunk(events, len(events)/groupSize))
		start := time.Now()
		err := parallel(groupSize, func(i int) error { return appendEach(ctx, log, session, parts[i]) })
		return perItem(start, len(events)), err
	}
}

func durableBatch(ctx context.Context, b *bench) ([]figure, error) {
	return durableTrial(ctx, b, people(b.sizes.durable*groupSize/4), func(log *eventlog.Log, events []event.Event) side {
		return func(ctx context.Context) (float64, error) {
			session := b.name()
			if err := appendAll(ctx, log, session, events[:groupSize], groupSize); err != nil {
				return 0, err
			}
			start := time.Now()
			err := appendAll(ctx, log, session, events[groupSize:], groupSize)
			return perItem(start, len(events)-groupSize), err
		}
	}, b.timeRawBatches)
}

// timeRawBatches writes the lines in batches of 64, each with a sync. Joining the lines
// counts, as on the other side.
func (b *bench) timeRawBatches(lines [][]byte) (took float64, err error) {
	f, err := createRaw(b.path(".raw"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.appendSynced(lines[0]); err != nil {
		return 0, err
	}
	var buf []byte
	start := time.Now()
	for batch := range slices.Chunk(lines, groupSize) {
		buf = buf[:0]
		for _, line := range batch {
			buf = append(buf, line...)
		}
		if err := f.appendSynced(buf); err != nil {
			return 0, err
		}
	}
	return perItem(start, len(lines)), nil
}

// timeGroupCommit measures a minimal group commit: goroutines queue one line each and
// wait.
func (b *bench) timeGroupCommit(lines [][]byte) (took float64, err error) {
	f, err := createRaw(b.path(".raw"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	queue := make(chan queuedLine, groupSize)
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		commitQueue(f, queue)
	}()
	shares := slices.Collect(slices.Chunk(lines, len(lines)/groupSize))
	start := time.Now()
	err = parallel(groupSize, func(i int) error {
		done := make(chan error, 1)
		for _, line := range shares[i] {
			queue <- queuedLine{line: line, done: done}
			if err := <-done; err != nil {
				return err
			}
		}
		return nil
	})
	took = perItem(start, len(lines))
	close(queue)
	<-committed
	return took, err
}

// queuedLine is a line that waits to be written.
type queuedLine struct {
	line []byte
	done chan error
}

// commitQueue writes the queued lines, syncs, and wakes their writers.
func commitQueue(f *rawFile, queue <-chan queuedLine) {
	for first := range queue {
		batch := []queuedLine{first}
		for len(queue) > 0 {
			batch = append(batch, <-queue)
		}
		var buf bytes.Buffer
		for _, h := range batch {
			buf.Write(h.line)
		}
		err := f.appendSynced(buf.Bytes())
		for _, h := range batch {
			h.done <- err
		}
	}
}

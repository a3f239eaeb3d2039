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

// group is how many writers share a sync, and how many events a batch has.
const group = 64

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
		// The limit of a group commit is a group commit: 64 writers on both sides.
		rows: []row{{
			name:     "durable/jsonl-64-writers",
			measured: "events a second by 64 goroutines appending to one session, durable",
			against:  "64 goroutines handing lines to one that writes what waits and calls fdatasync, same bytes",
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

// durably prepares a trial: ours is measured against raw on the same lines.
func durably(
	ctx context.Context, b *bench, n int,
	ours func(*eventlog.Log, []event.Event) side, raw func(lines [][]byte) (float64, error),
) ([]figure, error) {
	log, _ := b.jsonl(always)
	events, err := turns(n)
	if err != nil {
		return nil, err
	}
	unsynced, _ := b.jsonl(never)
	lines, err := linesOf(ctx, unsynced, b.name(), events)
	if err != nil {
		return nil, err
	}
	unix.Sync() // what other trials wrote is not to be paid here
	theirs := func(context.Context) (float64, error) { return raw(lines) }
	return compare(ctx, b.sizes.rounds, ours(log, events), theirs, samples.rates)
}

func durableOne(ctx context.Context, b *bench) ([]figure, error) {
	return durably(ctx, b, b.sizes.durable, func(log *eventlog.Log, events []event.Event) side {
		return func(ctx context.Context) (float64, error) { return b.timeAppends(ctx, log, events) }
	}, func(lines [][]byte) (float64, error) { return b.timeRaw(lines, (*rawFile).synced) })
}

func durableGroup(ctx context.Context, b *bench) ([]figure, error) {
	return durably(ctx, b, b.sizes.durable*group/4, b.groupSide, b.timeRawBatches)
}

func durableHanded(ctx context.Context, b *bench) ([]figure, error) {
	return durably(ctx, b, b.sizes.durable*group/4, b.groupSide, b.timeHanded)
}

// groupSide lets each of many goroutines append its share of the events to one
// session.
func (b *bench) groupSide(log *eventlog.Log, events []event.Event) side {
	return func(ctx context.Context) (float64, error) {
		session := b.name()
		notes, err := users(len(events))
		if err != nil {
			return 0, err
		}
		if err := appendEach(ctx, log, session, events[:1]); err != nil {
			return 0, err
		}
		shares := slices.Collect(slices.Chunk(notes, len(notes)/group))
		start := time.Now()
		err = together(group, func(i int) error { return appendEach(ctx, log, session, shares[i]) })
		return each(start, len(notes)), err
	}
}

func durableBatch(ctx context.Context, b *bench) ([]figure, error) {
	return durably(ctx, b, b.sizes.durable*group/4, func(log *eventlog.Log, events []event.Event) side {
		return func(ctx context.Context) (float64, error) {
			session := b.name()
			if err := appendAll(ctx, log, session, events[:group], group); err != nil {
				return 0, err
			}
			start := time.Now()
			err := appendAll(ctx, log, session, events[group:], group)
			return each(start, len(events)-group), err
		}
	}, b.timeRawBatches)
}

// timeRawBatches writes the lines 64 at a time, each write made durable. As on
// the other side, joining the lines is part of it.
func (b *bench) timeRawBatches(lines [][]byte) (took float64, err error) {
	f, err := createRaw(b.path(".raw"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.synced(lines[0]); err != nil {
		return 0, err
	}
	var buf []byte
	start := time.Now()
	for batch := range slices.Chunk(lines, group) {
		buf = buf[:0]
		for _, line := range batch {
			buf = append(buf, line...)
		}
		if err := f.synced(buf); err != nil {
			return 0, err
		}
	}
	return each(start, len(lines)), nil
}

// timeHanded is a bare group commit: goroutines hand over a line each and wait.
func (b *bench) timeHanded(lines [][]byte) (took float64, err error) {
	f, err := createRaw(b.path(".raw"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	queue := make(chan handed, group)
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		commitHanded(f, queue)
	}()
	shares := slices.Collect(slices.Chunk(lines, len(lines)/group))
	start := time.Now()
	err = together(group, func(i int) error {
		done := make(chan error, 1)
		for _, line := range shares[i] {
			queue <- handed{line: line, done: done}
			if err := <-done; err != nil {
				return err
			}
		}
		return nil
	})
	took = each(start, len(lines))
	close(queue)
	<-committed
	return took, err
}

// handed is a line that waits to be written.
type handed struct {
	line []byte
	done chan error
}

// commitHanded writes what waits, makes it durable, and tells who waited.
func commitHanded(f *rawFile, queue <-chan handed) {
	for first := range queue {
		batch := []handed{first}
		for len(queue) > 0 {
			batch = append(batch, <-queue)
		}
		var buf bytes.Buffer
		for _, h := range batch {
			buf.Write(h.line)
		}
		err := f.synced(buf.Bytes())
		for _, h := range batch {
			h.done <- err
		}
	}
}

//go:build unix

package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

const (
	never  = true
	always = false
)

// workers is how many goroutines append concurrently to many sessions.
const workers = 16

var appendTrials = []trial{
	{
		rows: []row{{
			name:     "append/jsonl",
			measured: "Append of one event made before, no sync",
			against:  "flock, fstat, write to a held O_APPEND descriptor, unlock, same bytes",
			unit:     nanoseconds, bar: atMost(6),
		}},
		measure: appendOne,
	},
	{
		rows: []row{{
			name:     "append/jsonl-made",
			measured: "constructor and Append of one event, no sync",
			against:  "flock, fstat, write, unlock, same bytes",
			unit:     nanoseconds,
		}},
		measure: appendMade,
	},
	{
		rows: []row{{
			name: "append/jsonl-allocs", measured: "allocations of one Append, no sync", unit: count, bar: atMost(6),
		}},
		measure: appendAllocs,
	},
	{
		rows: []row{{
			name:     "append/jsonl-10000",
			measured: "Append to a session in use, in a store of 10,000 sessions, no sync",
			against:  "the same in a store of this session only",
			unit:     nanoseconds, bar: atMost(1.3),
		}},
		measure: appendLarge,
	},
	{
		rows: []row{{
			name:     "append/jsonl-10000-turn",
			measured: "Append to each of 10,000 sessions in turn, opened and closed meanwhile, no sync",
			against:  "Append to one session",
			unit:     nanoseconds,
		}},
		measure: appendInTurn,
	},
	{
		rows: []row{{
			name:     "append/jsonl-16",
			measured: "Append by 16 goroutines to 16 sessions, no sync",
			against:  "flock, fstat, write, unlock by 16 goroutines to 16 files, same bytes",
			unit:     perSecond, bar: atLeast(0.2),
		}},
		measure: appendMany,
	},
}

func appendOne(ctx context.Context, b *bench) ([]figure, error) {
	return b.appendAgainstRaw(ctx, func(log *eventlog.Log, events []event.Event) side {
		return func(ctx context.Context) (float64, error) { return b.timeAppends(ctx, log, events) }
	})
}

func appendMade(ctx context.Context, b *bench) ([]figure, error) {
	return b.appendAgainstRaw(ctx, func(log *eventlog.Log, events []event.Event) side {
		return func(ctx context.Context) (float64, error) { return b.timeMaking(ctx, log, len(events)) }
	})
}

func (b *bench) appendAgainstRaw(ctx context.Context, ours func(*eventlog.Log, []event.Event) side) ([]figure, error) {
	log, _ := b.jsonl(never)
	events := people(b.sizes.events)
	lines, err := linesOf(ctx, log, b.name(), events)
	if err != nil {
		return nil, err
	}
	raw := func(context.Context) (float64, error) { return b.timeRaw(lines, (*rawFile).appendLocked) }
	return compare(ctx, b.sizes.rounds, ours(log, events), raw, samples.times)
}

// timeAppends appends the events to a new session. It does not time the first events,
// which creates the session.
func (b *bench) timeAppends(ctx context.Context, log *eventlog.Log, events []event.Event) (float64, error) {
	session := b.name()
	if err := appendEach(ctx, log, session, events[:startLen]); err != nil {
		return 0, err
	}
	start := time.Now()
	err := appendEach(ctx, log, session, events[startLen:])
	return perItem(start, len(events)-startLen), err
}

// timeMaking creates and appends n events to a new session.
func (b *bench) timeMaking(ctx context.Context, log *eventlog.Log, n int) (float64, error) {
	session := b.name()
	var took time.Duration
	for _, payload := range converse(newWriter(), n).payloads {
		start := time.Now()
		e := event.New(payload)
		if _, err := log.Append(ctx, session, eventlog.Any(), e); err != nil {
			return 0, err
		}
		took += time.Since(start)
	}
	return float64(took.Nanoseconds()) / float64(n), nil
}

// timeRaw writes the lines to a new file, one by one.
func (b *bench) timeRaw(lines [][]byte, write func(*rawFile, []byte) error) (took float64, err error) {
	f, err := createRaw(b.path(".raw"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, line := range lines[:startLen] {
		if err := write(f, line); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	for _, line := range lines[startLen:] {
		if err := write(f, line); err != nil {
			return 0, err
		}
	}
	return perItem(start, len(lines)-startLen), nil
}

func appendAllocs(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.jsonl(never)
	events := people(b.sizes.events)
	session := b.name()
	if err := appendEach(ctx, log, session, events[:startLen]); err != nil {
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := appendEach(ctx, log, session, events[startLen:]); err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	return []figure{single(float64(after.Mallocs-before.Mallocs) / float64(len(events)-startLen))}, nil
}

func appendLarge(ctx context.Context, b *bench) ([]figure, error) {
	large, err := b.largeStore(ctx)
	if err != nil {
		return nil, err
	}
	events := people(b.sizes.events)
	in := func(log *eventlog.Log) side {
		return func(ctx context.Context) (float64, error) {
			// Do not use the large store: more sessions would change its listing.
			took, err := b.timeAppends(ctx, log, events)
			return took, errors.Join(err, erase.Remove(ctx, log, b.last))
		}
	}
	small, _ := b.jsonl(never)
	return compare(ctx, b.sizes.rounds, in(large.log), in(small), samples.times)
}

// appendInTurn appends an event to each session of the large store. Each append finds
// its file closed and its head unknown.
func appendInTurn(ctx context.Context, b *bench) ([]figure, error) {
	large, err := b.largeStore(ctx)
	if err != nil {
		return nil, err
	}
	events := people(b.sizes.events)
	small, _ := b.jsonl(never)
	inTurn := func(ctx context.Context) (float64, error) {
		start := time.Now()
		for _, session := range large.sessions {
			e := event.UserMessage("and then?")
			if _, err := large.log.Append(ctx, session, eventlog.Any(), e); err != nil {
				return 0, err
			}
		}
		return perItem(start, len(large.sessions)), nil
	}
	one := func(ctx context.Context) (float64, error) { return b.timeAppends(ctx, small, events) }
	return compare(ctx, 1, inTurn, one, samples.times)
}

func appendMany(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.jsonl(never)
	events := people(b.sizes.events / 4)
	lines, err := linesOf(ctx, log, b.name(), events)
	if err != nil {
		return nil, err
	}
	ours := func(ctx context.Context) (float64, error) { return b.timeSessions(ctx, log, events) }
	raw := func(context.Context) (float64, error) { return b.timeFiles(lines) }
	return compare(ctx, b.sizes.rounds, ours, raw, samples.rates)
}

// timeSessions lets each worker append all events to its own session.
func (b *bench) timeSessions(ctx context.Context, log *eventlog.Log, events []event.Event) (float64, error) {
	sessions := make([]string, workers)
	for i := range sessions {
		sessions[i] = b.name()
		if err := appendEach(ctx, log, sessions[i], events[:startLen]); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := parallel(workers, func(i int) error {
		return appendEach(ctx, log, sessions[i], events[startLen:])
	})
	return perItem(start, workers*(len(events)-startLen)), err
}

// timeFiles lets each worker write all lines to its own file.
func (b *bench) timeFiles(lines [][]byte) (took float64, err error) {
	files := make([]*rawFile, workers)
	for i := range files {
		if files[i], err = createRaw(b.path(".raw")); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, files[i].close()) }()
	}
	start := time.Now()
	err = parallel(workers, func(i int) error {
		for _, line := range lines {
			if err := files[i].appendLocked(line); err != nil {
				return err
			}
		}
		return nil
	})
	return perItem(start, workers*len(lines)), err
}

// parallel runs f(0), …, f(n−1) concurrently.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

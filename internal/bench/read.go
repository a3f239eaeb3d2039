//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var readTrials = []trial{
	{
		rows: []row{{
			name:     "read/jsonl",
			measured: "Read of 100,000 events, payloads not decoded",
			against:  "line split and CRC of the file, through one 256 KiB buffer",
			unit:     nanoseconds, bar: atMost(4),
		}},
		measure: readJSONL,
	},
	{
		rows: []row{{
			name:     "read/jsonl-kept",
			measured: "live heap of 100,000 events in memory",
			against:  "size of the file",
			unit:     sizeInBytes, bar: atMost(1.3),
		}},
		measure: readKept,
	},
	{
		rows: []row{{
			name:     "read/jsonl-streamed",
			measured: "live heap while the 100,000th event is passed, none kept (at least 1 MiB is counted)",
			against:  "the same at the 1,000th",
			unit:     sizeInBytes, bar: atMost(1.3),
		}},
		measure: readStreamed,
	},
	{
		rows: []row{{
			name:     "read/sqlite",
			measured: "Read of 100,000 events, payloads not decoded",
			against:  "SELECT line of the same rows ORDER BY seq, scanned into a sql.RawBytes, same driver",
			unit:     nanoseconds, bar: atMost(1.5),
		}},
		measure: readSQLite,
	},
	{
		rows: []row{{
			name:     "last/jsonl",
			measured: "Read of the last 64 of 100,000 events",
			against:  "Read of all",
			unit:     nanoseconds, bar: atMost(1.0 / 200),
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) { return readLast(ctx, b, b.longJSONL) },
	},
	{
		rows: []row{{
			name:     "last/sqlite",
			measured: "Read of the last 64 of 100,000 events",
			against:  "Read of all",
			unit:     nanoseconds, bar: atMost(1.0 / 200),
		}},
		measure: func(ctx context.Context, b *bench) ([]figure, error) { return readLast(ctx, b, b.longSQLite) },
	},
}

func readJSONL(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longJSONL(ctx)
	if err != nil {
		return nil, err
	}
	raw := func(context.Context) (float64, error) {
		start := time.Now()
		n, err := rawRead(h.file)
		return float64(time.Since(start).Nanoseconds()), errors.Join(err, expectCount(n, b.sizes.history))
	}
	return compare(ctx, b.sizes.rounds, h.readAll(b.sizes.history), raw, samples.times)
}

// readAll is a side that reads the whole session.
func (h *history) readAll(want int) side {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := countEvents(ctx, h.log, eventlog.All())
		return float64(time.Since(start).Nanoseconds()), errors.Join(err, expectCount(n, want))
	}
}

func countEvents(ctx context.Context, log *eventlog.Log, r eventlog.Range) (n int, err error) {
	for _, err := range log.Read(ctx, longSession, r) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func expectCount(got, want int) error {
	if got != want {
		return fmt.Errorf("found %d, not %d", got, want)
	}
	return nil
}

func readKept(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longJSONL(ctx)
	if err != nil {
		return nil, err
	}
	size, err := h.size()
	if err != nil {
		return nil, err
	}
	before := liveHeap()
	kept := make([]event.Event, 0, b.sizes.history)
	for e, err := range h.log.Read(ctx, longSession, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		kept = append(kept, e)
	}
	grown := liveHeap() - before
	runtime.KeepAlive(kept)
	return []figure{{ours: grown, theirs: size, ratio: grown / size}}, nil
}

// readStreamed compares the live heap late and early in one read.
func readStreamed(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longJSONL(ctx)
	if err != nil {
		return nil, err
	}
	const least = 1 << 20
	var early, late float64
	before := liveHeap()
	n := 0
	for e, err := range h.log.Read(ctx, longSession, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		switch n++; n {
		case 1000:
			early = max(liveHeap()-before, least)
		case b.sizes.history:
			late = max(liveHeap()-before, least)
		}
		runtime.KeepAlive(e)
	}
	return []figure{{ours: late, theirs: early, ratio: late / early}}, nil
}

// liveHeap returns the bytes in use after a garbage collection.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func readSQLite(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longSQLite(ctx)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+h.file+"?mode=ro")
	if err != nil {
		return nil, err
	}
	b.closes = append(b.closes, db.Close)
	scan := func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := bareScan(ctx, db)
		return float64(time.Since(start).Nanoseconds()), errors.Join(err, expectCount(n, b.sizes.history))
	}
	return compare(ctx, b.sizes.rounds, h.readAll(b.sizes.history), scan, samples.times)
}

const bareSelect = `SELECT line FROM events WHERE session = (SELECT key FROM sessions WHERE id = ?) ORDER BY seq`

func bareScan(ctx context.Context, db *sql.DB) (n int, err error) {
	rows, err := db.QueryContext(ctx, bareSelect, longSession)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var line sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&line); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

// readLast times short reads, several per measurement.
func readLast(ctx context.Context, b *bench, of func(context.Context) (*history, error)) ([]figure, error) {
	h, err := of(ctx)
	if err != nil {
		return nil, err
	}
	const times, events = 50, 64
	last := func(ctx context.Context) (float64, error) {
		start := time.Now()
		for range times {
			n, err := countEvents(ctx, h.log, eventlog.Last(events))
			if err := errors.Join(err, expectCount(n, events)); err != nil {
				return 0, err
			}
		}
		return perItem(start, times), nil
	}
	return compare(ctx, b.sizes.rounds, last, h.readAll(b.sizes.history), samples.times)
}

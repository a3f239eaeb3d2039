//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	synced   = false
	unsynced = true
)

var sqliteTrials = []trial{
	{
		rows: []row{{
			name:     "sqlite/append",
			measured: "Append of one event, synchronous=FULL",
			against:  "prepared INSERT of the same line and columns, a transaction each, same driver and pragmas",
			unit:     perSecond, bar: atLeast(0.7),
		}},
		measure: sqliteOne,
	},
	{
		rows: []row{{
			name:     "sqlite/append-16",
			measured: "Append by 16 goroutines to 16 sessions, synchronous=FULL",
			against:  "Append by one",
			unit:     perSecond, bar: atLeast(3),
		}, {
			name:     "sqlite/append-16-p99",
			measured: "99th percentile of the duration of those appends",
			against:  "their median",
			unit:     nanoseconds, bar: atMost(20),
		}},
		measure: sqliteMany,
	},
}

func sqliteOne(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.sqlite(synced)
	events := people(b.sizes.durable)
	stored, err := b.storedEvents(ctx, events)
	if err != nil {
		return nil, err
	}
	bare, err := openBare(ctx, b.path(".db"))
	if err != nil {
		return nil, err
	}
	b.closes = append(b.closes, bare.close)
	unix.Sync()
	ours := func(ctx context.Context) (float64, error) { return b.timeAppends(ctx, log, events) }
	raw := func(ctx context.Context) (float64, error) { return bare.timeInserts(ctx, stored) }
	return compare(ctx, b.sizes.rounds, ours, raw, samples.rates)
}

// storedEvents returns the events as a log stores them.
func (b *bench) storedEvents(ctx context.Context, events []event.Event) (stored []event.Event, err error) {
	log, _ := b.jsonl(never)
	session := b.name()
	if err := appendEach(ctx, log, session, events); err != nil {
		return nil, err
	}
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		stored = append(stored, e)
	}
	return stored, nil
}

// bareDB is a table of events without a log.
type bareDB struct {
	db      *sql.DB
	insert  *sql.Stmt
	session int
}

const bareSchema = `CREATE TABLE events (
	key       INTEGER PRIMARY KEY,
	session   INTEGER NOT NULL,
	seq       INTEGER NOT NULL,
	id        TEXT    NOT NULL,
	type      TEXT    NOT NULL,
	timestamp INTEGER NOT NULL,
	line      BLOB    NOT NULL,
	UNIQUE (session, seq)
)`

const bareInsert = `INSERT INTO events (session, seq, id, type, timestamp, line) VALUES (?, ?, ?, ?, ?, ?)`

func openBare(ctx context.Context, path string) (*bareDB, error) {
	db, err := sql.Open("sqlite", "file:"+path+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	bare := &bareDB{db: db}
	if _, err = db.ExecContext(ctx, bareSchema); err == nil {
		bare.insert, err = db.PrepareContext(ctx, bareInsert)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare bare table: %w", err), db.Close())
	}
	return bare, nil
}

func (d *bareDB) close() error { return errors.Join(d.insert.Close(), d.db.Close()) }

func (d *bareDB) timeInserts(ctx context.Context, events []event.Event) (float64, error) {
	d.session++
	start := time.Now()
	for i := range events {
		e := &events[i]
		_, err := d.insert.ExecContext(ctx, d.session, e.Seq, e.ID.String(), string(e.Type), e.Timestamp.UnixMicro(), e.Line())
		if err != nil {
			return 0, err
		}
	}
	return perItem(start, len(events)), nil
}

func sqliteMany(ctx context.Context, b *bench) ([]figure, error) {
	log, _ := b.sqlite(synced)
	events := people(b.sizes.durable)
	unix.Sync()
	var tails, medians []float64
	many := func(ctx context.Context) (float64, error) {
		took, latencies, err := b.timeLatencies(ctx, log, events)
		if err != nil {
			return 0, err
		}
		slices.Sort(latencies)
		tails = append(tails, float64(latencies[len(latencies)*99/100]))
		medians = append(medians, float64(latencies[len(latencies)/2]))
		return took, nil
	}
	one := func(ctx context.Context) (float64, error) { return b.timeAppends(ctx, log, events) }
	s, err := pair(ctx, b.sizes.rounds, many, one)
	if err != nil {
		return nil, err
	}
	return []figure{s.rates(), samples{ours: tails, theirs: medians}.times()}, nil
}

// timeLatencies is timeSessions with the duration of each append.
func (b *bench) timeLatencies(ctx context.Context, log *eventlog.Log, events []event.Event) (float64, []time.Duration, error) {
	sessions := make([]string, workers)
	for i := range sessions {
		sessions[i] = b.name()
	}
	latencies := make([]time.Duration, workers*len(events))
	start := time.Now()
	err := parallel(workers, func(i int) error {
		for j := range events {
			before := time.Now()
			if _, err := log.Append(ctx, sessions[i], eventlog.Any(), events[j]); err != nil {
				return err
			}
			latencies[i*len(events)+j] = time.Since(before)
		}
		return nil
	})
	return perItem(start, len(latencies)), latencies, err
}

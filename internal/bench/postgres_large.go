//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// The rows of a large log on a server: 10,000 sessions of 10 events, and 1,000,000 with
// -long.
var largeTrials = []trial{
	{
		rows: []row{{
			name:     "postgres/large-append",
			measured: "Append of one event to a new session, in a store with many sessions, synced",
			against:  "the same in an empty store",
			unit:     nanoseconds, bar: atMost(1.5),
		}, {
			name:     "postgres/large-last",
			measured: "Read of the last 64 events of a session, in a store with many sessions",
			against:  "the same in an empty store",
			unit:     nanoseconds, bar: atMost(1.5),
		}},
		measure: postgresLarge,
	},
}

func postgresLarge(ctx context.Context, b *bench) ([]figure, error) {
	large, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer large.close()
	if err := large.load(ctx, b.sizes.large); err != nil {
		return nil, err
	}
	empty, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer empty.close()
	events := people(b.sizes.durable)
	in := func(p *postgresBench, run func(context.Context, *postgresBench, []event.Event) (float64, error)) side {
		return func(ctx context.Context) (float64, error) { return run(ctx, p, events) }
	}
	appends, err := pair(ctx, b.sizes.rounds, in(large, timeAppendsIn), in(empty, timeAppendsIn))
	if err != nil {
		return nil, err
	}
	lasts, err := pair(ctx, b.sizes.rounds, in(large, timeLast), in(empty, timeLast))
	if err != nil {
		return nil, err
	}
	figures := []figure{appends.times(), lasts.times()}
	for i := range figures {
		figures[i].note = fmt.Sprintf("%d sessions", b.sizes.large)
	}
	return figures, nil
}

func timeAppendsIn(ctx context.Context, p *postgresBench, events []event.Event) (float64, error) {
	return p.timeAppends(ctx, p.log, events)
}

// timeLast is the median time to read the last events of a session.
func timeLast(ctx context.Context, p *postgresBench, events []event.Event) (float64, error) {
	session := p.name()
	if _, err := p.log.Append(ctx, session, eventlog.New(), events...); err != nil {
		return 0, err
	}
	var took []float64
	for range 200 {
		start, n := time.Now(), 0
		for _, err := range p.log.Read(ctx, session, eventlog.Last(64)) {
			if err != nil {
				return 0, err
			}
			n++
		}
		if err := expectCount(n, 64); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(start)))
	}
	return median(took), nil
}

const (
	// loadEvents is the number of events of each loaded session.
	loadEvents = 10
	// loadSessions is the number of sessions that are loaded at once.
	loadSessions = 1000
)

// load copies sessions into the tables. A log in memory makes their lines.
func (p *postgresBench) load(ctx context.Context, sessions int) error {
	key := int64(1 << 40)
	for n := 0; n < sessions; n += loadSessions {
		if err := p.loadSome(ctx, &key, min(loadSessions, sessions-n)); err != nil {
			return err
		}
	}
	_, err := p.bare.Exec(ctx, `VACUUM ANALYZE sessions, events`)
	return err
}

func (p *postgresBench) loadSome(ctx context.Context, key *int64, sessions int) error {
	var rows, lines [][]any
	log := eventlog.Open(memory.New())
	for range sessions {
		*key++
		name, size := fmt.Sprintf("loaded-%d", *key), 0
		head, err := log.Append(ctx, name, eventlog.New(), users(loadEvents)...)
		if err != nil {
			return err
		}
		for e, err := range log.Store().Read(ctx, name, eventlog.Span{}) {
			if err != nil {
				return err
			}
			lines = append(lines, []any{*key, e.Seq, [16]byte(e.ID), []byte(e.Type), e.Timestamp.UnixMicro(), e.Line()})
			size += len(e.Line()) + 1
		}
		rows = append(rows, []any{[]byte(name), *key, int64(1), head.Seq, head.Hash[:], int64(size)})
	}
	_, err := p.bare.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"session", "seq", "id", "type", "at", "line"}, pgx.CopyFromRows(lines))
	if err == nil {
		_, err = p.bare.CopyFrom(ctx, pgx.Identifier{"sessions"}, []string{"id", "key", "first", "head", "hash", "bytes"}, pgx.CopyFromRows(rows))
	}
	return err
}

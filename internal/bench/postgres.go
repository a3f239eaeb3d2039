//go:build unix

package main

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
)

// The rows of a log on a server use a private server that syncs each commit.
var postgresTrials = []trial{
	{
		rows: []row{{
			name:     "postgres/append",
			measured: "Append of one event, synced",
			against:  "INSERT of the same line and columns in a transaction of its own, same driver",
			unit:     perSecond, bar: atLeast(0.6),
		}},
		measure: postgresOne,
	},
	{
		rows: []row{{
			name:     "postgres/append-16",
			measured: "Append by 16 goroutines to 16 sessions, synced",
			against:  "INSERT of the same lines by 16 goroutines",
			unit:     perSecond, bar: atLeast(0.6),
		}},
		measure: postgresMany,
	},
	{
		rows: []row{{
			name:     "postgres/append-shared",
			measured: "Append by 16 goroutines to one session, synced",
			against:  "Append by one",
			unit:     perSecond, bar: atLeast(4),
		}},
		measure: postgresShared,
	},
	{
		rows: []row{{
			name:     "postgres/read",
			measured: "Read of 100,000 events",
			against:  "SELECT of the same lines",
			unit:     nanoseconds, bar: atMost(1.5),
		}, {
			name:     "postgres/last",
			measured: "Read of the last 64 of 100,000 events",
			against:  "Read of all",
			unit:     nanoseconds, bar: atMost(1.0 / 200),
		}},
		measure: postgresRead,
	},
	{
		rows: []row{{
			name:     "postgres/list",
			measured: "Sessions of a store of 10,000, first and last event each, per session",
			against:  "SELECT of the sessions with both lines",
			unit:     nanoseconds, bar: atMost(1.5),
		}},
		measure: postgresList,
	},
}

// postgresBench is a log on a server, and bare connections to the same tables.
type postgresBench struct {
	*serverBench
	server *pgtest.Server
	bare   *pgxpool.Pool
	keys   int64 // sessions of bare inserts, below 0
	mu     sync.Mutex
}

// postgres starts a server with arguments of postgres and an empty log. It stops with
// the bench.
func (b *bench) postgres(ctx context.Context, args ...string) (*postgresBench, error) {
	server, err := pgtest.New(args...)
	if err != nil {
		return nil, err
	}
	b.closes = append(b.closes, server.Stop)
	on, err := b.onServer(ctx, server.DSN())
	if err != nil {
		return nil, err
	}
	p := &postgresBench{serverBench: on, server: server}
	config, err := pgxpool.ParseConfig(server.DSN())
	if err != nil {
		return nil, err
	}
	config.MaxConns = workers
	config.ConnConfig.RuntimeParams["search_path"] = "convlog"
	if p.bare, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	return p, nil
}

// close ends the connections.
func (p *postgresBench) close() {
	p.bare.Close()
	_ = p.log.Close()
}

const barePostgres = `INSERT INTO events (session, seq, id, type, at, line) VALUES ($1, $2, $3, $4, $5, $6)`

// insert inserts stored events as a new session, a transaction each.
func (p *postgresBench) insert(ctx context.Context, events []event.Event) error {
	p.mu.Lock()
	p.keys--
	key := p.keys
	p.mu.Unlock()
	for i := range events {
		e := &events[i]
		if _, err := p.bare.Exec(ctx, barePostgres, key, e.Seq, [16]byte(e.ID), []byte(e.Type), e.Timestamp.UnixMicro(), e.Line()); err != nil {
			return err
		}
	}
	return nil
}

func postgresOne(ctx context.Context, b *bench) ([]figure, error) {
	return b.postgresAppends(ctx, 1, b.timeAppends)
}

func postgresMany(ctx context.Context, b *bench) ([]figure, error) {
	return b.postgresAppends(ctx, workers, b.timeSessions)
}

// postgresAppends compares the appends of some writers, a session each, with bare inserts
// of the same events.
func (b *bench) postgresAppends(ctx context.Context, writers int, ours func(context.Context, *eventlog.Log, []event.Event) (float64, error)) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.appends(ctx, writers, ours, p.insert)
}

func postgresShared(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.shared(ctx)
}

func postgresRead(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	bare := func(ctx context.Context, n int) error {
		got, err := p.count(ctx, `SELECT e.line FROM events e JOIN sessions s ON s.key = e.session WHERE s.id = $1 ORDER BY e.seq`, []byte(longSession))
		if err == nil {
			err = expectCount(got, n)
		}
		return err
	}
	return p.reads(ctx, bare)
}

// count scans all rows of a query.
func (p *postgresBench) count(ctx context.Context, query string, args ...any) (n int, err error) {
	rows, err := p.bare.Query(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	lines := make([][]byte, len(rows.FieldDescriptions()))
	to := make([]any, len(lines))
	for i := range lines {
		to[i] = &lines[i]
	}
	_, err = pgx.ForEachRow(rows, to, func() error {
		n++
		return nil
	})
	return n, err
}

func postgresList(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.lists(ctx, 1, func(ctx context.Context, want int) error {
		n, err := p.count(ctx, `SELECT s.id, s.hash, a.line, b.line FROM sessions s JOIN events a ON a.session = s.key AND a.seq = s.first
			JOIN events b ON b.session = s.key AND b.seq = s.head ORDER BY s.id`)
		if err == nil {
			err = expectCount(n, want)
		}
		return err
	})
}

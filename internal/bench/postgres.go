package main

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/store/postgres"
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
	*bench
	server *pgtest.Server
	dsn    string
	log    *eventlog.Log
	bare   *pgxpool.Pool
	keys   int64 // sessions of bare inserts, below 0
	mu     sync.Mutex
}

// postgres starts a server with arguments of postgres and an empty log. It stops with
// the bench.
func (b *bench) postgres(ctx context.Context, args ...string) (*postgresBench, error) {
	server, err := pgtest.Start(args)
	if err != nil {
		return nil, err
	}
	b.closes = append(b.closes, server.Stop)
	store, err := postgres.New(server.DSN())
	if err != nil {
		return nil, err
	}
	p := &postgresBench{bench: b, server: server, dsn: server.DSN(), log: eventlog.Open(store)}
	if _, err := p.log.Append(ctx, b.name(), eventlog.New(), event.UserMessage("creates the tables")); err != nil {
		return nil, err
	}
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
	events := people(b.sizes.durable)
	stored, err := b.storedEvents(ctx, events)
	if err != nil {
		return nil, err
	}
	raw := func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := parallel(writers, func(int) error { return p.insert(ctx, stored) })
		return perItem(start, writers*len(stored)), err
	}
	return compare(ctx, b.sizes.rounds, func(ctx context.Context) (float64, error) { return ours(ctx, p.log, events) }, raw, samples.rates)
}

func postgresShared(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	n := b.sizes.durable
	many := func(ctx context.Context) (float64, error) {
		session := b.name()
		batches := make([][]event.Event, workers)
		for i := range batches {
			batches[i] = users(n)
		}
		start := time.Now()
		err := parallel(workers, func(i int) error { return appendEach(ctx, p.log, session, batches[i]) })
		return perItem(start, workers*n), err
	}
	one := func(ctx context.Context) (float64, error) {
		return b.timeAppends(ctx, p.log, users(n))
	}
	return compare(ctx, b.sizes.rounds, many, one, samples.rates)
}

func postgresRead(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	n := b.sizes.history
	if err := fill(ctx, p.log, longSession, n); err != nil {
		return nil, err
	}
	read := (&history{log: p.log}).readAll(n)
	bare := func(ctx context.Context) (float64, error) {
		start := time.Now()
		got, err := p.count(ctx, `SELECT e.line FROM events e JOIN sessions s ON s.key = e.session WHERE s.id = $1 ORDER BY e.seq`, []byte(longSession))
		if err == nil {
			err = expectCount(got, n)
		}
		return float64(time.Since(start)), err
	}
	last := func(ctx context.Context) (float64, error) {
		start := time.Now()
		got, err := countEvents(ctx, p.log, eventlog.Last(64))
		if err == nil {
			err = expectCount(got, 64)
		}
		return float64(time.Since(start)), err
	}
	whole, err := pair(ctx, b.sizes.rounds, read, bare)
	if err != nil {
		return nil, err
	}
	few, err := pair(ctx, b.sizes.rounds, last, read)
	if err != nil {
		return nil, err
	}
	return []figure{whole.times(), few.times()}, nil
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
	events := users(2)
	for range b.sizes.sessions - 1 {
		if _, err := p.log.Append(ctx, b.name(), eventlog.New(), events...); err != nil {
			return nil, err
		}
	}
	want := b.sizes.sessions
	list := func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := countSessions(ctx, p.log)
		if err == nil {
			err = expectCount(n, want)
		}
		return perItem(start, want), err
	}
	bare := func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := p.count(ctx, `SELECT s.id, s.hash, a.line, b.line FROM sessions s JOIN events a ON a.session = s.key AND a.seq = s.first
			JOIN events b ON b.session = s.key AND b.seq = s.head ORDER BY s.id`)
		if err == nil {
			err = expectCount(n, want)
		}
		return perItem(start, want), err
	}
	return compare(ctx, b.sizes.rounds, list, bare, samples.times)
}

package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

// open returns a harness whose table of events has no partitions.
func open(t testing.TB) storetest.Harness { return harness(pgtest.DSN(t)) }

func harness(dsn string) storetest.Harness {
	return storetest.Harness{
		Open:         func() (eventlog.Store, error) { return postgres.New(dsn) },
		OpenReadOnly: func() (eventlog.Store, error) { return postgres.New(dsn, postgres.Options{ReadOnly: true}) },
		Damage:       func(session string, edit func([]string) []string) error { return damage(dsn, session, edit) },
		Holds:        func(text string) string { return holds(dsn, text) },
		Parallel:     true, // they mostly wait for the server
		Sample:       1,
	}
}

// inTables runs fn in a transaction in the schema of a DSN.
func inTables(dsn string, fn func(ctx context.Context, tx pgx.Tx) error) error {
	server, schema, err := pgtest.Split(dsn)
	if err != nil {
		return err
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET search_path = "+schema); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return fn(ctx, tx) })
}

// damage writes the lines that edit returns into the rows of a session, like a program
// with rights that knows nothing of logs.
func damage(dsn, session string, edit func(lines []string) []string) error {
	return inTables(dsn, func(ctx context.Context, tx pgx.Tx) error {
		var key, last int64
		err := tx.QueryRow(ctx, `SELECT key FROM sessions WHERE id = $1`, []byte(session)).Scan(&key)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT seq, line FROM events WHERE session = $1 ORDER BY seq`, key)
		if err != nil {
			return err
		}
		var before []string
		var seqs []int64
		var line []byte
		_, err = pgx.ForEachRow(rows, []any{&last, &line}, func() error {
			before, seqs = append(before, string(line)+"\n"), append(seqs, last)
			return nil
		})
		if err != nil {
			return err
		}
		after := edit(slices.Clone(before))
		batch := &pgx.Batch{}
		for i, seq := range seqs {
			if i >= len(after) {
				batch.Queue(`DELETE FROM events WHERE session = $1 AND seq = $2`, key, seq)
			} else if after[i] != before[i] {
				batch.Queue(`UPDATE events SET line = $3 WHERE session = $1 AND seq = $2`, key, seq, []byte(strings.TrimSuffix(after[i], "\n")))
			}
		}
		for i := len(seqs); i < len(after); i++ {
			last++
			batch.Queue(`INSERT INTO events VALUES ($1, $2, gen_random_uuid(), '', 0, $3)`, key, last, []byte(strings.TrimSuffix(after[i], "\n")))
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

// holds returns the table that has text in a row.
func holds(dsn, text string) (where string) {
	err := inTables(dsn, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(
			(SELECT 'table events' FROM events WHERE position($1 IN line) > 0 LIMIT 1),
			(SELECT 'table copies' FROM copies WHERE position($1 IN line) > 0 LIMIT 1),
			(SELECT 'table blob_pieces' FROM blob_pieces WHERE position($1 IN body) > 0 LIMIT 1), '')`, []byte(text)).Scan(&where)
	})
	if err != nil {
		return err.Error()
	}
	return where
}

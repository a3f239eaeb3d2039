package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/storetest"
	"github.com/convlog/convlog/upkeep/erase"
)

// A table of events with partitions keeps every promise.
func TestPartitions(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		h := harness(with(t, pgtest.DSN(t), "partitions", "3"))
		h.Latency = time.Nanosecond // the volumes of TestStore would test nothing more
		h.Sample = 16
		return h
	})
}

func with(t testing.TB, dsn, name, value string) string {
	t.Helper()
	dsn, err := pgtest.With(dsn, name, value)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// sql runs statements in the database of a DSN, and puts the schema in the place of %s.
func sql(t testing.TB, dsn, statements string) {
	t.Helper()
	server, schema, err := pgtest.Split(dsn)
	if err == nil {
		err = pgtest.Exec(server, strings.ReplaceAll(statements, "%s", schema))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// add appends one event to session "s".
func add(t testing.TB, dsn string) error {
	t.Helper()
	_, err := openLog(t, dsn).Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello"))
	return err
}

// The store refuses what is not its own, and does not change it.
func TestForeignSchemas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	sql(t, dsn, `CREATE SCHEMA %s; CREATE TABLE %s.orders (n int)`)
	if err := add(t, dsn); !errors.Is(err, postgres.ErrForeign) || !strings.Contains(err.Error(), "another program") {
		t.Errorf("tables of another program: %v", err)
	}
	sql(t, dsn, `DROP TABLE %s.orders`)
	if err := add(t, dsn); err != nil {
		t.Errorf("an empty schema: %v", err)
	}
	sql(t, dsn, `UPDATE %s.convlog SET version = 99`)
	var other *event.VersionError
	if err := add(t, dsn); !errors.As(err, &other) || other.Got != 99 {
		t.Errorf("a newer schema: %v", err)
	}
	sql(t, dsn, `UPDATE %s.convlog SET version = 1`)
	if err := add(t, dsn); !errors.As(err, &other) || other.Got != 1 || !strings.Contains(err.Error(), "convert") {
		t.Errorf("the schema of an earlier build: %v", err)
	}
	if err := add(t, with(t, pgtest.DSN(t), "assume_synced", "false")); !errors.Is(err, postgres.ErrForeign) || !strings.Contains(err.Error(), "fsync=off") {
		t.Errorf("a server that does not sync: %v", err)
	}
}

// A schema that vanishes while the store is open is ErrMoved.
func TestDroppedSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	log := openLog(t, dsn)
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	sql(t, dsn, `DROP SCHEMA %s CASCADE`)
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello")); !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("append: got error %v, want ErrMoved", err)
	}
	if _, err := log.Head(t.Context(), "s"); !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("head: got error %v, want ErrMoved", err)
	}
}

// A role with the right to read reads, in both modes of the store. A write names the
// missing right, and writes nothing.
func TestReadOnlyRole(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	if err := add(t, dsn); err != nil {
		t.Fatal(err)
	}
	_, role, _ := pgtest.Split(dsn)
	sql(t, dsn, `CREATE ROLE reader_%s LOGIN; GRANT USAGE ON SCHEMA %s TO reader_%s; GRANT SELECT ON ALL TABLES IN SCHEMA %s TO reader_%s`)
	t.Cleanup(func() { sql(t, dsn, `DROP OWNED BY reader_%s; DROP ROLE reader_%s`) })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("reader_" + role)
	reading := openLog(t, u.String(), postgres.Options{ReadOnly: true})
	suite.CheckEvents(t, reading, "s", 1)
	if err := reading.Hold(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("hold: %v", err)
	}
	suite.CheckEvents(t, openLog(t, u.String()), "s", 1)
	if err := add(t, u.String()); !errors.Is(err, postgres.ErrDenied) || !strings.Contains(err.Error(), "permission denied for table") {
		t.Errorf("append: got error %v, want ErrDenied", err)
	}
	suite.CheckEvents(t, reading, "s", 1)
}

// Only the owner of the tables may vacuum them. The erasure of another role is not
// finished, until the owner finishes it.
func TestErasureWithoutVacuum(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	if err := add(t, dsn); err != nil {
		t.Fatal(err)
	}
	_, role, _ := pgtest.Split(dsn)
	sql(t, dsn, `CREATE ROLE writer_%s LOGIN; GRANT USAGE ON SCHEMA %s TO writer_%s;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO writer_%s; GRANT USAGE ON ALL SEQUENCES IN SCHEMA %s TO writer_%s`)
	t.Cleanup(func() { sql(t, dsn, `DROP OWNED BY writer_%s; DROP ROLE writer_%s`) })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("writer_" + role)
	writer := openLog(t, u.String())
	if _, err := writer.PutBlob(t.Context(), strings.NewReader("body")); err != nil {
		t.Errorf("put blob: %v", err)
	}
	done, err := erase.Redact(t.Context(), writer, "s", []int64{1}, erase.RedactOptions{Reason: "test"})
	if !errors.Is(err, erase.ErrUnfinished) || !errors.Is(err, postgres.ErrDenied) || len(done.Erased) != 1 {
		t.Errorf("redact: got error %v and %d events, want ErrUnfinished, ErrDenied and 1 event", err, len(done.Erased))
	}
	if err := erase.Finish(t.Context(), writer); !errors.Is(err, erase.ErrUnfinished) {
		t.Errorf("finish: got error %v, want ErrUnfinished", err)
	}
	if err := erase.Finish(t.Context(), openLog(t, dsn)); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if err := erase.Finish(t.Context(), writer); err != nil {
		t.Errorf("after the owner: %v", err)
	}
}

// A redaction reports what keeps the erased bytes, and a dry run does so too. Without an
// erased event there is nothing to report.
func TestRetained(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	if err := add(t, dsn); err != nil {
		t.Fatal(err)
	}
	log := openLog(t, dsn)
	for _, c := range []struct {
		dry  bool
		want bool
	}{{dry: true, want: true}, {want: true}, {want: false}} {
		done, err := erase.Redact(t.Context(), log, "s", []int64{1}, erase.RedactOptions{Reason: "test", DryRun: c.dry})
		if err != nil {
			t.Fatal(err)
		}
		var places []string
		for _, kept := range done.Retained {
			places = append(places, kept.Where)
		}
		if got := strings.Contains(strings.Join(places, "; "), "write-ahead log"); got != c.want {
			t.Errorf("dry run %v: the places are %q", c.dry, places)
		}
	}
}

// A durable append is synced although the server is told not to wait.
func TestDurable(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=0", "-c", "synchronous_commit=off")
	log := openLog(t, server.DSN())
	for range 3 {
		for name, x := range map[string]eventlog.Expect{"durable": eventlog.Any().Durable(), "synced": eventlog.Any()} {
			start := lsn(t, server.DSN(), "pg_current_wal_insert_lsn()")
			if _, err := log.Append(t.Context(), "s", x, event.UserMessage("hello")); err != nil {
				t.Fatal(err)
			}
			if name == "synced" {
				if err := log.Store().(eventlog.Syncer).Sync(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
			}
			if flushed := lsn(t, server.DSN(), "pg_current_wal_flush_lsn()"); flushed <= start {
				t.Errorf("%s: the server has synced up to %d, and the append begins at %d", name, flushed, start)
			}
		}
	}
}

// An append that needs no sync is not synced. The next append syncs both. While commits wait for
// a standby, both are synced.
func TestUnsyncedAppend(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=0")
	head := event.Head{}
	add := func(ctx context.Context, l *eventlog.Log) (synced bool) {
		start := lsn(t, server.DSN(), "pg_current_wal_insert_lsn()")
		events := suite.BatchAfter("s", head, 1)
		if err := l.Store().Append(ctx, "s", head, events, true); err != nil {
			t.Fatal(err)
		}
		head = events[len(events)-1].Head()
		return lsn(t, server.DSN(), "pg_current_wal_flush_lsn()") > start
	}
	unsynced := engine.SetUnsynced(t.Context(), true)
	log := openLog(t, server.DSN())
	add(t.Context(), log)
	for add(unsynced, log) { // another process of the server may have synced it
	}
	if !add(t.Context(), log) {
		t.Error("a durable append is not synced")
	}
	if err := errors.Join(pgtest.Exec(server.DSN(), `ALTER SYSTEM SET synchronous_standby_names = 'none'`), pgtest.Exec(server.DSN(), `SELECT pg_reload_conf()`)); err != nil {
		t.Fatal(err)
	}
	for set := int64(0); set == 0; {
		var err error
		set, err = pgtest.Number(server.DSN(), `SELECT count(*) FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = 'none'`)
		if err != nil {
			t.Fatal(err)
		}
	}
	waiting := openLog(t, with(t, server.DSN(), "synchronous_commit", "local")) // this standby never comes
	if !add(unsynced, waiting) {
		t.Error("an append is not synced, although commits wait for a standby")
	}
}

// lsn returns a place in the write-ahead log of a server.
func lsn(t testing.TB, dsn, function string) (n int64) {
	t.Helper()
	n, err := pgtest.Number(dsn, fmt.Sprintf("SELECT (%s - '0/0'::pg_lsn)::bigint", function))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A lease of a store that stops to renew it ends, in its process and for others, by the
// clock of the server.
func TestLeaseExpires(t *testing.T) {
	t.Parallel()
	direct := pgtest.DSN(t)
	proxy, dsn := pgtest.Proxied(t, direct)
	const leaseTime = 3 * time.Second
	first, second := openLog(t, dsn, postgres.Options{LeaseTime: leaseTime}), openLog(t, direct, postgres.Options{LeaseTime: leaseTime})
	renewed := testsize.Pick(leaseTime+time.Second, leaseTime+time.Second, 3*leaseTime)
	suite.CheckLostLease(t, first.Store(), second.Store(), proxy, renewed)
}

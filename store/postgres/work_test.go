package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/upkeep/erase"
)

// A redaction and a removal read no lines of other sessions: among 12,000 more rows they read
// as many as before. A few more are the server's: versions of rows that it has not yet cleared
// away.
func TestErasureReadsOneSession(t *testing.T) {
	dsn := pgtest.DSN(t)
	_, schema, err := pgtest.Split(dsn)
	if err != nil {
		t.Fatal(err)
	}
	dsn = with(t, dsn, "application_name", schema) // for closeLog
	filling := openLog(t, dsn)
	var reads []int64
	sessions := 0
	for _, others := range []int{200, 800} {
		for ; sessions < others; sessions++ {
			fillSession(t, filling, fmt.Sprint("other ", sessions))
		}
		fillSession(t, filling, "s")
		closeLog(t, dsn, filling)
		sql(t, dsn, `ANALYZE %s.events, %s.sessions`)
		before := rowsRead(t, dsn)
		log := openLog(t, dsn)
		if _, err := erase.Redact(t.Context(), log, "s", []int64{2}, erase.RedactOptions{Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		if err := erase.Remove(t.Context(), log, "s"); err != nil {
			t.Fatal(err)
		}
		closeLog(t, dsn, log)
		reads = append(reads, rowsRead(t, dsn)-before)
		filling = openLog(t, dsn)
	}
	if reads[0] == 0 || reads[1] > 2*reads[0] {
		t.Errorf("read %d rows of events among 200 other sessions, and %d among 800", reads[0], reads[1])
	}
}

// fillSession creates a session of 20 events.
func fillSession(t testing.TB, log *eventlog.Log, session string) {
	t.Helper()
	var events []event.Event
	for range 20 {
		events = append(events, event.UserMessage("hello"))
	}
	if _, err := log.Append(t.Context(), session, eventlog.New(), events...); err != nil {
		t.Fatal(err)
	}
}

// closeLog closes a log, and waits until the server has counted its work: a connection
// counts at its end.
func closeLog(t testing.TB, dsn string, log *eventlog.Log) {
	t.Helper()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for number(t, dsn, `SELECT count(*) FROM pg_stat_activity WHERE application_name = '%s' AND pid <> pg_backend_pid()`) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// rowsRead returns the number of rows of table events that were read so far.
func rowsRead(t testing.TB, dsn string) int64 {
	t.Helper()
	return number(t, dsn, `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = '%s' AND relname = 'events'`)
}

// number returns the number that a query yields. It puts the schema in the place of %s.
func number(t testing.TB, dsn, query string) int64 {
	t.Helper()
	server, schema, err := pgtest.Split(dsn)
	if err != nil {
		t.Fatal(err)
	}
	n, err := pgtest.Number(server, fmt.Sprintf(query, schema))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

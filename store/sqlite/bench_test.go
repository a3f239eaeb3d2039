package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// benchText gives lines of about 700 bytes.
var benchText = strings.Repeat("lorem ips ", 38)

// rawDatabase opens a plain table through database/sql with the store's settings. The
// benchmarks compare the store with it.
func rawDatabase(b *testing.B, path string) *sql.DB {
	b.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	must(b, err)
	b.Cleanup(func() { must(b, db.Close()) })
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE lines (key INTEGER PRIMARY KEY, line BLOB)")
	must(b, err)
	return db
}

// BenchmarkAppend measures durable appends of one event. Goal: at least 0.7 of the raw
// insert's rate.
func BenchmarkAppend(b *testing.B) {
	events := eventChain("a", event.Head{}, 1, benchText)
	b.Run("store", func(b *testing.B) {
		s := open(b, tempPath(b))
		lines := singleEvents(b.N)
		var head event.Head
		b.ReportAllocs()
		b.ResetTimer()
		for i := range lines {
			must(b, s.Append(b.Context(), "a", head, lines[i:i+1], false))
			head = lines[i].Head()
		}
	})
	b.Run("raw", func(b *testing.B) {
		db := rawDatabase(b, tempPath(b))
		insert, err := db.Prepare("INSERT INTO lines (line) VALUES (?)")
		must(b, err)
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			_, err := insert.Exec(events[0].Line())
			must(b, err)
		}
	})
}

// singleEvents makes n events, one per append.
func singleEvents(n int) []event.Event {
	events := make([]event.Event, n)
	var head event.Head
	for i := range events {
		events[i] = newEvent("a", head, 0, benchText)
		head = events[i].Head()
	}
	return events
}

// BenchmarkAppendTogether measures 16 goroutines on 16 sessions. Goals: at least 3
// times the rate of BenchmarkAppend/store, and a p99 of at most 20 medians.
func BenchmarkAppendTogether(b *testing.B) {
	const writers = 16
	s := open(b, tempPath(b))
	took := make([][]time.Duration, writers)
	var group sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		group.Go(func() { took[w] = appendTimed(b, s, fmt.Sprintf("s%d", w), (b.N+writers-1)/writers) })
	}
	group.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	median, p99 := all[len(all)/2], all[len(all)*99/100]
	b.ReportMetric(float64(median.Microseconds()), "µs-median")
	b.ReportMetric(float64(p99.Microseconds()), "µs-p99")
	b.ReportMetric(float64(p99)/float64(median), "p99/median")
}

func appendTimed(b *testing.B, s *Store, session string, n int) (took []time.Duration) {
	var head event.Head
	for range n {
		events := eventChain(session, head, 1, benchText)
		start := time.Now()
		if err := s.Append(context.Background(), session, head, events, false); err != nil {
			b.Error(err)
			return took
		}
		took = append(took, time.Since(start))
		head = headOf(events)
	}
	return took
}

// BenchmarkRead reads 100,000 events and checks each crc. Goal: at most 1.5 times the
// time of a bare scan of the same rows.
func BenchmarkRead(b *testing.B) {
	const events = 100_000
	path := filepath.Join(b.TempDir(), "s.db")
	s := open(b, path)
	var head event.Head
	for range events / 1000 {
		batch := eventChain("a", head, 1000, benchText)
		must(b, s.Append(b.Context(), "a", head, batch, false))
		head = headOf(batch)
	}
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			n := 0
			for _, err := range s.Read(b.Context(), "a", eventlog.Span{}) {
				must(b, err)
				n++
			}
			if n != events {
				b.Fatalf("read %d events", n)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		db, err := sql.Open("sqlite", path)
		must(b, err)
		defer func() { must(b, db.Close()) }()
		b.ReportAllocs()
		for range b.N {
			scan(b, db, events)
		}
	})
	b.Run("last64", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if got := seqs(b, s, "a", eventlog.Span{Backward: true, Limit: 64}); len(got) != 64 {
				b.Fatalf("read %d events", len(got))
			}
		}
	})
}

// scan reads the session's rows with one query.
func scan(b *testing.B, db *sql.DB, count int) {
	rows, err := db.Query("SELECT line FROM events WHERE session = 1 ORDER BY seq")
	must(b, err)
	n := 0
	var line sql.RawBytes
	for rows.Next() {
		must(b, rows.Scan(&line))
		n++
	}
	must(b, rows.Err())
	must(b, rows.Close())
	if n != count {
		b.Fatalf("scanned %d rows", n)
	}
}

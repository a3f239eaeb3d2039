package stats_test

import (
	"bytes"
	"context"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// headOf is the head of a session.
func headOf(t garden.Failer, log *eventlog.Log, session string) event.Head {
	t.Helper()
	head, err := log.Head(garden.Bg, session)
	if err != nil {
		t.Fatalf("head of %s: %v", session, err)
	}
	return head
}

// A stored summary is the summary that reading the session gives, under all options.
func TestStoredSummariesEqualFreshOnes(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		var last time.Time
		for _, name := range l.Names {
			for _, e := range l.Lineage(name) {
				last = e.Timestamp
			}
		}
		east := time.FixedZone("east", 9*3600)
		for _, opts := range []stats.Options{
			{}, {Days: east, Prices: prices.Builtin()}, {Prices: prices.Builtin()}, {Since: last}, {Until: last}, {Since: last.AddDate(0, 0, 1)},
			{Model: func(name string) bool { return name == "" }}, {},
		} {
			for round := range 2 {
				catalog := stats.NewCatalog(l.Log, stats.CatalogOptions{Options: opts})
				for _, name := range l.Names {
					got, err := catalog.Load(garden.Bg, name, headOf(r, l.Log, name))
					l.Allow(err)
					want, err := stats.Load(garden.Bg, l.Log, name, opts)
					l.Allow(err)
					garden.Same(r, name, want.Total, got.Total)
					if diff := cmp.Diff(want.ByDay, got.ByDay) + cmp.Diff(want.ByModel, got.ByModel) + cmp.Diff(want.ByTool, got.ByTool) + cmp.Diff(want.BySource, got.BySource); diff != "" {
						r.Fatalf("round %d, session %s, options %+v: %s", round, name, opts, diff)
					}
					branches, err := fork.Branches(garden.Bg, l.Log, name, true)
					l.Allow(err)
					if got.Moves == 0 && len(branches) > 0 {
						r.Fatalf("session %s has %d branches and no move", name, len(branches))
					}
				}
				catalog.Flush(garden.Bg)
			}
		}
	})
}

// reads is a store that counts the events that are read, and has foreign rows.
type reads struct {
	*memory.Store
	events  int
	foreign []byte
}

func (s *reads) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range s.Store.Read(ctx, session, r) {
			s.events++
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *reads) CatalogRows(ctx context.Context, sessions []string) (map[string][]byte, error) {
	rows, err := s.Store.CatalogRows(ctx, sessions)
	for session := range rows {
		if s.foreign != nil {
			rows[session] = s.foreign
		}
	}
	return rows, err
}

// loadOne loads the summary of session "s" with a new catalog, and returns the number of
// events that were read.
func loadOne(t *testing.T, log *eventlog.Log, s *reads, opts ...stats.CatalogOptions) (stats.Summary, int) {
	t.Helper()
	catalog := stats.NewCatalog(log, opts...)
	head := headOf(t, log, "s")
	s.events = 0
	got, err := catalog.Load(t.Context(), "s", head)
	if err != nil {
		t.Fatal(err)
	}
	n := s.events
	catalog.Flush(t.Context())
	return got, n
}

// A session is read once, and again after an append, with another time zone or other
// prices, and if its row is damaged or of another session.
func TestASummaryIsReadOnce(t *testing.T) {
	s := &reads{Store: memory.New()}
	log := eventlog.Open(s)
	at := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)
	add := func(session string, e event.Event) {
		t.Helper()
		e.Timestamp = at
		if _, err := log.Append(t.Context(), session, eventlog.Any(), e); err != nil {
			t.Fatal(err)
		}
	}
	add("s", event.New(event.Session{Title: "the title", CWD: "/x"}))
	add("s", event.UserMessage("the input"))
	add("other", event.UserMessage("of another session"))
	want := func(when string, events int, opts ...stats.CatalogOptions) {
		t.Helper()
		got, n := loadOne(t, log, s, opts...)
		if n != events || got.Title != "the title" || got.Input != "the input" || got.CWD != "/x" || !got.First.Equal(at) {
			t.Errorf("%s: read %d events, want %d: %+v", when, n, events, got)
		}
	}
	want("first", 2)
	want("again", 0)
	add("s", event.UserMessage("more"))
	want("after an append", 3)
	want("after an append, again", 0)
	local := stats.CatalogOptions{Options: stats.Options{Days: time.FixedZone("", 3600)}}
	want("in another time zone", 3, local)
	same := stats.CatalogOptions{Options: stats.Options{Days: time.FixedZone("of another name", 3600)}}
	want("in a time zone with the same days", 0, same)
	priced := stats.CatalogOptions{Options: stats.Options{Days: time.FixedZone("", 3600), Prices: prices.Builtin()}}
	want("with prices", 3, priced)
	priced.AnyDays, priced.Days, priced.Prices = true, nil, nil
	want("with any days", 0, priced)

	rows, err := s.Store.CatalogRows(t.Context(), []string{"s"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows["s"] {
		s.foreign = bytes.Clone(rows["s"])
		s.foreign[i] ^= 1
		want("with a flipped bit", 3, priced)
		s.foreign = rows["s"][:i]
		want("with a torn row", 3, priced)
	}
	loadOther := stats.NewCatalog(log)
	if _, err := loadOther.Load(t.Context(), "other", headOf(t, log, "other")); err != nil {
		t.Fatal(err)
	}
	loadOther.Flush(t.Context())
	if rows, err = s.Store.CatalogRows(t.Context(), []string{"other"}); err != nil || rows["other"] == nil {
		t.Fatal(rows, err)
	}
	s.foreign = rows["other"]
	want("with the row of another session", 3)
}

// Redaction and removal erase the row of the session, and a summary that was read before
// does not come back.
func TestErasedSummariesStayAway(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		for _, session := range []string{"s", "t"} {
			if _, err := log.Append(t.Context(), session, eventlog.New(), event.New(event.Session{Title: "the secret"}), event.UserMessage("hello")); err != nil {
				t.Fatal(err)
			}
		}
		before := stats.NewCatalog(log)
		stored := stats.NewCatalog(log)
		for _, catalog := range []*stats.Catalog{before, stored} {
			for _, session := range []string{"s", "t"} {
				if _, err := catalog.Load(t.Context(), session, headOf(t, log, session)); err != nil {
					t.Fatal(err)
				}
			}
		}
		stored.Flush(t.Context())
		rows := func() (n int) {
			t.Helper()
			store, _ := eventlog.As[eventlog.Cataloger](log.Store())
			all, err := store.CatalogRows(t.Context(), []string{"s", "t"})
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		if n := rows(); n != 2 {
			t.Fatalf("%d rows", n)
		}
		if _, err := erase.Redact(t.Context(), log, "s", []int64{1}); err != nil {
			t.Fatal(err)
		}
		if err := erase.Remove(t.Context(), log, "t"); err != nil {
			t.Fatal(err)
		}
		if n := rows(); n != 0 {
			t.Errorf("%d rows after the erasure", n)
		}
		before.Flush(t.Context())
		if n := rows(); n != 0 {
			t.Errorf("%d rows that were read before the erasure", n)
		}
	})
}

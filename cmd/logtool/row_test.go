package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// resolve finds the id that abbreviate shortened.
func TestAbbreviatedIDsResolve(t *testing.T) {
	ids := []string{
		"a", "b1234567", "b123456789", "b1234567890", "main-session", "main-session-2", "main-session.agent-1", "main-session.agent-12",
		"main-session.agent-2", "only", "a-long-session", "a-long-session.agent-compact-1", "a-long-session.agent-compact-2",
		"a-long-session.agent-compact-2.agent-deep-below", "a-long-session.side", "a-long-path", "no.session.here", "Büro & Söhne 1", "Büro & Söhne 2", "日本語のセッション", "日本語のもの",
	}
	slices.Sort(ids)
	log := eventlog.Open(jsonl.New(t.TempDir(), jsonl.Options{NoSync: true}))
	defer func() { _ = log.Close() }()
	for _, id := range ids {
		e := event.UserMessage("hello")
		if _, err := log.Append(t.Context(), id, eventlog.New(), e); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		name := abbreviate(id, ids)
		if got, err := resolve(t.Context(), log, name); got != id || err != nil {
			t.Errorf("%q is abbreviated to %q, which is %q (%v)", id, name, got, err)
		}
	}
	for id, want := range map[string]string{"main-session": "main-session", "b1234567": "b1234567", "only": "only",
		"main-session.agent-2": "main-session.agent-2", "a-long-session.agent-compact-1": "a-long-s.agent-compact-1", "a-long-session.side": "a-long-s.side",
		"a-long-session.agent-compact-2.agent-deep-below": "a-long-s.agent-compact-2.agent-de", "no.session.here": "no.sessi", "日本語のもの": "日本語のも"} {
		if got := abbreviate(id, ids); got != want {
			t.Errorf("abbreviate(%q) = %q, want %q", id, got, want)
		}
	}
	if got := abbreviate("main-session", []string{"main-session", "main-session.agent-1", "other"}); got != "main-ses" {
		t.Errorf("a session with sub-agents is abbreviated to %q", got)
	}
}

// counting is a store that counts the events that are read.
type counting struct {
	eventlog.Store
	mu     sync.Mutex
	events int
}

func (s *counting) Unwrap() eventlog.Store { return s.Store }

func (s *counting) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range s.Store.Read(ctx, session, r) {
			s.mu.Lock()
			s.events++
			s.mu.Unlock()
			if !yield(e, err) {
				return
			}
		}
	}
}

// A listing reads the ends of sessions only.
func TestListingReadsTheEnds(t *testing.T) {
	const sessions, long = 3, 10 * listing.NameEvents
	for name, open := range map[string]func(dir string) eventlog.Store{
		"jsonl":  func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{NoSync: true}) },
		"sqlite": func(dir string) eventlog.Store { return sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			store := &counting{Store: open(t.TempDir())}
			log := eventlog.Open(store)
			defer func() { _ = log.Close() }()
			for i := range sessions {
				var events []event.Event
				for range long {
					e := event.UserMessage("hello")
					events = append(events, e)
				}
				if _, err := log.Append(t.Context(), fmt.Sprint("s", i), eventlog.New(), events...); err != nil {
					t.Fatal(err)
				}
			}
			a := &app{out: io.Discard, getenv: func(string) string { return "" }, now: time.Now}
			for _, json := range []bool{false, true} {
				a.json, store.events = json, 0
				most := sessions * (2*listing.NameEvents + 1)
				if err := a.ls(t.Context(), log, &lsOptions{sort: "activity"}); err != nil || store.events > most {
					t.Errorf("json %v: %d events (%v), want %d at most", json, store.events, err, most)
				}
			}
			store.events = 0
			if err := a.ls(t.Context(), log, &lsOptions{long: true, sort: "id"}); err != nil || store.events != sessions*long {
				t.Errorf("--long: %d events (%v)", store.events, err)
			}
		})
	}
}

// ls --long, stats, cost and tree --long read a session once, and once more after an
// append.
func TestListingsReadWhatChanged(t *testing.T) {
	const sessions, long = 300, 5
	for name, open := range map[string]func(dir string) (string, eventlog.Store){
		"jsonl": func(dir string) (string, eventlog.Store) {
			return dir, jsonl.New(dir, jsonl.Options{NoSync: true})
		},
		"sqlite": func(dir string) (string, eventlog.Store) { return dir + "/s.db", sqlite.New(dir + "/s.db") },
	} {
		t.Run(name, func(t *testing.T) {
			a := &app{out: io.Discard, getenv: func(string) string { return "" }, now: time.Now}
			var inner eventlog.Store
			a.store, inner = open(t.TempDir())
			store := &counting{Store: inner}
			log := eventlog.Open(store)
			defer func() { _ = log.Close() }()
			add := func(session string, n int) {
				t.Helper()
				var events []event.Event
				for range n {
					events = append(events, event.UserMessage("hello"))
				}
				if _, err := log.Append(t.Context(), session, eventlog.Any(), events...); err != nil {
					t.Fatal(err)
				}
			}
			for i := range sessions {
				add(fmt.Sprint("s", i), long)
			}
			commands := map[string]func() error{
				"ls --long": func() error {
					return a.ls(t.Context(), log, &lsOptions{long: true, sort: "cost", priceFlag: builtinPrices().priceFlag})
				},
				"stats":       func() error { return a.stats(t.Context(), log, nil, 0, builtinPrices()) },
				"cost":        func() error { return a.costs(t.Context(), log, nil, builtinPrices()) },
				"tree --long": func() error { return a.tree(t.Context(), log, nil, true, true, "json") },
			}
			readNothing := func(when string) {
				t.Helper()
				for command, run := range commands {
					store.events = 0
					if err := run(); err != nil || store.events > 0 {
						t.Errorf("%s, %s: %d events (%v)", command, when, store.events, err)
					}
				}
			}
			if err := commands["ls --long"](); err != nil {
				t.Fatal(err)
			}
			readNothing("again")
			add("s7", 2)
			store.events = 0
			if err := commands["stats"](); err != nil || store.events != long+2 {
				t.Errorf("stats after an append: %d events (%v), want %d", store.events, err, long+2)
			}
			readNothing("after stats")
		})
	}
}

// builtinPrices are the flags of stats and cost without any.
func builtinPrices() *countFlags { return &countFlags{priceFlag: priceFlag{table: prices.Builtin()}} }

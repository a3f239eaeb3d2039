package adk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/adaptertest"
	"github.com/convlog/convlog/store/jsonl"
)

// A session that was read before another append is no obstacle. ADK's SQL service refuses it (adk-go 1229).
func TestAStaleSessionAppends(t *testing.T) {
	stale := func(t *testing.T, s session.Service) (session.Session, error) {
		first := create(t, s, nil)
		second := get(t, s, 0)
		appendEvents(t, s, first, says("one"))
		err := s.AppendEvent(t.Context(), second, says("two"))
		return get(t, s, 0), err
	}
	if _, err := stale(t, sqlService(t, filepath.Join(t.TempDir(), "adk.db"))); err == nil {
		t.Error("ADK's SQL service accepts a stale session: the guide says that it does not")
	}
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		got, err := stale(t, adk.New(open(t)).Sessions)
		if want := []string{"one", "two"}; err != nil || !slices.Equal(texts(got), want) {
			t.Errorf("stored %q, %v; want %q", texts(got), err, want)
		}
	})
}

// State with the prefix temp: is only in the session of its writer, and stays there when that session appends after
// another writer. ADK's SQL service refuses the append (adk-go 1256).
func TestTemporaryStateOutlivesAnotherWriter(t *testing.T) {
	after := func(t *testing.T, s session.Service) (session.Session, error) {
		first := create(t, s, nil)
		appendEvents(t, s, first, sets("one", map[string]any{"temp:k": "mine", "k": 1}))
		appendEvents(t, s, get(t, s, 0), sets("two", map[string]any{"k": 2}))
		return first, s.AppendEvent(t.Context(), first, says("three"))
	}
	if _, err := after(t, sqlService(t, filepath.Join(t.TempDir(), "adk.db"))); err == nil {
		t.Error("ADK's SQL service accepts a stale session: the guide says that it does not")
	}
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		s := adk.New(open(t)).Sessions
		first, err := after(t, s)
		if err != nil || value(t, first, "temp:k") != "mine" {
			t.Errorf("append: %v", err)
		}
		got := get(t, s, 0)
		if want := []string{"one", "two", "three"}; !slices.Equal(texts(got), want) || value(t, got, "k") != 2.0 {
			t.Errorf("stored %q with k %v", texts(got), value(t, got, "k"))
		}
		if _, err := got.State().Get("temp:k"); err == nil {
			t.Error("another session has the temporary state")
		}
	})
}

// An append that fails leaves the caller's session as it is. ADK's SQL service adds the event and its state to it before
// it stores them, so the program goes on with an event that no other reader has.
func TestAFailedAppendLeavesTheSession(t *testing.T) {
	after := func(t *testing.T, s session.Service, fail func()) session.Session {
		first := create(t, s, map[string]any{"k": 0})
		fail()
		if err := s.AppendEvent(t.Context(), first, sets("one", map[string]any{"k": 1})); err == nil {
			t.Fatal("the append does not fail")
		}
		return first
	}
	sql := sqlService(t, filepath.Join(t.TempDir(), "adk.db"))
	got := after(t, sql, func() { appendEvents(t, sql, get(t, sql, 0), says("other")) })
	if got.Events().Len() == 0 {
		t.Error("ADK's SQL service leaves the session as it was: the comment says that it does not")
	}
	log, _ := fragileLog(t, t.TempDir(), 1000)
	got = after(t, adk.New(log).Sessions, func() {
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if got.Events().Len() != 0 || value(t, got, "k") != 0 {
		t.Errorf("the session has %q and k %v", texts(got), value(t, got, "k"))
	}
}

// A state that was taken from a session before an append shows what the append set, also while other goroutines read
// it (adk-go 1244).
func TestReadersOfASessionWhileItGrows(t *testing.T) {
	s := adk.New(adaptertest.Folder(t)).Sessions
	to := create(t, s, nil)
	state := to.State()
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			for range state.All() {
			}
			for e := range to.Events().All() {
				_ = e.Author
			}
		})
		appendEvents(t, s, to, sets(fmt.Sprint(n), map[string]any{"k": n}))
	}
	group.Wait()
	if v, err := state.Get("k"); err != nil || fmt.Sprint(v) != "19" || to.Events().Len() != 20 {
		t.Errorf("k is %v, %v; %d events", v, err, to.Events().Len())
	}
}

func TestWritersLoseNothing(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		const writers, each = 4, 10
		create(t, adk.New(open(t)).Sessions, nil)
		var group sync.WaitGroup
		for w := range writers {
			s := adk.New(open(t)).Sessions
			to := get(t, s, 0)
			group.Go(func() {
				for n := range each {
					name := fmt.Sprint(w, "-", n)
					e := sets(name, map[string]any{name: n, "app:" + name: n, "user:last": n})
					if err := s.AppendEvent(t.Context(), to, e); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		got := get(t, adk.New(open(t)).Sessions, 0)
		stored := texts(got)
		slices.Sort(stored)
		if len(stored) != writers*each || len(slices.Compact(stored)) != writers*each {
			t.Errorf("stored %d events: %q", len(stored), stored)
		}
		for w := range writers {
			for n := range each {
				name := fmt.Sprint(w, "-", n)
				if value(t, got, name) != float64(n) || value(t, got, "app:"+name) != float64(n) {
					t.Errorf("state %q is lost", name)
				}
			}
		}
	})
}

func TestAnEventIsStoredOnce(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		s := adk.New(open(t)).Sessions
		to := create(t, s, nil)
		first := sets("one", map[string]any{"k": 1, "app:k": 1, "user:k": 1})
		appendEvents(t, s, to, first, first, sets("two", map[string]any{"k": 2, "app:k": 2, "user:k": 2}), first)
		again := adk.New(open(t)).Sessions // as after a restart
		appendEvents(t, again, get(t, again, 1), first)
		got := get(t, again, 0)
		if want := []string{"one", "two"}; !slices.Equal(texts(got), want) {
			t.Errorf("stored %q, want %q", texts(got), want)
		}
		for _, key := range []string{"k", "app:k", "user:k"} {
			if v := value(t, got, key); v != 2.0 {
				t.Errorf("%s is %v: the event was applied again", key, v)
			}
		}
		other := *first
		other.Author = "mallory"
		if err := again.AppendEvent(t.Context(), to, &other); !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("another event with the id: %v", err)
		}
	})
}

// fragile is a store that fails after some appends, as for a process that is killed.
type fragile struct {
	eventlog.Store
	left  *atomic.Int64
	reads *atomic.Int64
}

func (f fragile) Unwrap() eventlog.Store { return f.Store }

var errKilled = errors.New("killed")

func (f fragile) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	if f.left.Add(-1) < 0 {
		return errKilled
	}
	return f.Store.Append(ctx, session, expect, events, durable)
}

func (f fragile) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range f.Store.Read(ctx, session, r) {
			f.reads.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// fragileLog allows n appends, and counts the events that are read.
func fragileLog(t testing.TB, dir string, n int64) (*eventlog.Log, *atomic.Int64) {
	f := fragile{jsonl.New(dir), new(atomic.Int64), new(atomic.Int64)}
	f.left.Store(n)
	return adaptertest.Open(t, func() (eventlog.Store, error) { return f, nil }), f.reads
}

// A process may end after each append: the event and all its changes of the state are stored, or nothing of them.
func TestStatesAgreeAfterAKillBetweenAppends(t *testing.T) {
	whole := false
	for n := int64(0); !whole; n++ {
		dir := t.TempDir()
		log, _ := fragileLog(t, dir, 1000)
		create(t, adk.New(log).Sessions, map[string]any{"k": 0, "app:k": 0, "user:k": 0})
		log.Close()
		log, _ = fragileLog(t, dir, n)
		s := adk.New(log).Sessions
		killed := s.AppendEvent(t.Context(), get(t, s, 0), sets("one", map[string]any{"k": 1, "app:k": 1, "user:k": 1}))
		log.Close()
		whole = n == 10
		check := func(when string) {
			log, _ := fragileLog(t, dir, 1000)
			defer log.Close()
			s := adk.New(log).Sessions
			got := get(t, s, 0)
			stored := float64(got.Events().Len())
			if killed == nil && stored != 1 {
				t.Errorf("%d appends, %s: an acknowledged event is lost", n, when)
			}
			for _, key := range []string{"k", "app:k", "user:k"} {
				if v := value(t, got, key); v != stored {
					t.Errorf("%d appends, %s: %v events and %s is %v", n, when, stored, key, v)
				}
			}
			other, err := s.Create(t.Context(), &session.CreateRequest{AppName: "shop", UserID: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			if v := value(t, other.Session, "app:k"); v != stored {
				t.Errorf("%d appends, %s: another session has app:k %v", n, when, v)
			}
			appendEvents(t, s, other.Session, sets("other", map[string]any{"app:other": 1, "user:other": 1})) // it settles the changes
		}
		check("at once")
		check("after the next change")
	}
}

// A removed session leaves its changes of the app's state.
func TestDeleteKeepsTheStateOfTheApp(t *testing.T) {
	dir := t.TempDir()
	log, _ := fragileLog(t, dir, 1000)
	create(t, adk.New(log).Sessions, nil)
	log.Close()
	log, _ = fragileLog(t, dir, 2) // one pending change, one event
	s := adk.New(log).Sessions
	if err := s.AppendEvent(t.Context(), get(t, s, 0), sets("one", map[string]any{"app:k": 1})); err != nil {
		t.Fatal(err)
	}
	log.Close()
	log, _ = fragileLog(t, dir, 1000)
	s = adk.New(log).Sessions
	if err := s.Delete(t.Context(), &session.DeleteRequest{AppName: "shop", UserID: "ann", SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	if v := value(t, create(t, s, nil), "app:k"); v != 1.0 {
		t.Errorf("app:k is %v", v)
	}
}

// The cost of the newest events does not depend on the length of the session.
func TestNewestEventsReadTheEndOnly(t *testing.T) {
	reads := func(events int) int64 {
		dir := t.TempDir()
		log := adaptertest.Open(t, func() (eventlog.Store, error) { return jsonl.New(dir, jsonl.Options{NoSync: true}), nil })
		s := adk.New(log).Sessions
		to := create(t, s, map[string]any{"first": 1})
		for n := range events {
			appendEvents(t, s, to, sets(fmt.Sprint(n), map[string]any{"k": n}))
		}
		log.Close()
		log, read := fragileLog(t, dir, 0)
		got := get(t, adk.New(log).Sessions, 20)
		if got.Events().Len() != 20 || texts(got)[19] != fmt.Sprint(events-1) || value(t, got, "first") != 1.0 || value(t, got, "k") != float64(events-1) {
			t.Fatalf("of %d events: %q", events, texts(got))
		}
		return read.Load()
	}
	short, long := reads(300), reads(1200)
	if long > 2*short {
		t.Errorf("the newest 20 of 300 events read %d events, of 1,200 events %d", short, long)
	}
}

package listing

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
)

// listCounter counts the sessions that a listing yields.
type listCounter struct {
	*sqlite.Store
	listed int
}

func (s *listCounter) List(ctx context.Context, part eventlog.Part) iter.Seq2[eventlog.SessionInfo, error] {
	return s.count(s.Store.List(ctx, part))
}

func (s *listCounter) Related(ctx context.Context, session string) iter.Seq2[eventlog.SessionInfo, error] {
	return s.count(s.Store.Related(ctx, session))
}

func (s *listCounter) count(all iter.Seq2[eventlog.SessionInfo, error]) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		for info, err := range all {
			if s.listed++; !yield(info, err) {
				return
			}
		}
	}
}

// addAt appends an event with a time.
func addAt(t *testing.T, log *eventlog.Log, session string, at time.Time, e event.Event) {
	t.Helper()
	e.Timestamp = at
	if _, err := log.Append(t.Context(), session, eventlog.Any(), e); err != nil {
		t.Fatal(err)
	}
}

// rowText is all that a listing shows of a row.
func rowText(row *Row) string {
	return fmt.Sprintln(row.ID, row.Kind(), row.Parent, row.At, row.Head, row.Events, row.Bytes, row.First(), row.Last(), row.Forks, row.Runs, row.Copies,
		row.Missing, row.Partial, row.State, *row.Program, row.About(), row.Label(), row.Damage())
}

// checkNewest compares Newest with a listing of all sessions.
func checkNewest(t *testing.T, log *eventlog.Log, q Query, all, wantOK bool) {
	t.Helper()
	got, ids, ok, err := Newest(t.Context(), log, &q, all)
	if err != nil || ok != wantOK {
		t.Fatalf("newest of %+v: %v, %v", q, ok, err)
	}
	if !ok {
		return
	}
	listed, err := Read(t.Context(), stats.NewCatalog(log), func(int) {}, Known{})
	if err != nil {
		t.Fatal(err)
	}
	gotIDs, err := ids()
	if diff := cmp.Diff(IDs(listed), gotIDs); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if !all {
		listed = WithoutState(listed)
	}
	want, err := q.Choose(t.Context(), &Reader{Log: log, Catalog: stats.NewCatalog(log)}, listed)
	if err != nil {
		t.Fatal(err)
	}
	var gotText, wantText []string
	for _, row := range got {
		gotText = append(gotText, rowText(row))
	}
	for _, row := range want {
		wantText = append(wantText, rowText(row))
	}
	if diff := cmp.Diff(wantText, gotText); diff != "" {
		t.Errorf("%+v, all %v: %s", q, all, diff)
	}
}

// Newest has the rows of a listing of all sessions, after each change by any process.
func TestNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	log, other := eventlog.Open(sqlite.New(path)), eventlog.Open(sqlite.New(path))
	defer other.Close()
	defer log.Close()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	check := func() {
		t.Helper()
		for limit := range 8 {
			checkNewest(t, log, Query{Sort: ByActivity, Limit: limit}, false, limit > 0)
			checkNewest(t, log, Query{Sort: ByActivity, Limit: limit}, true, limit > 0)
			checkNewest(t, log, Query{Sort: ByActivity, Limit: limit, Filter: Filter{Since: at.Add(time.Hour)}}, false, limit > 0)
		}
	}
	for i := range 6 { // two each of a time, or of nearly one
		addAt(t, log, fmt.Sprint("s", i), at.Add(time.Duration(i/2)*time.Hour+time.Duration(i%4/3)), event.New(event.Session{CWD: fmt.Sprint("/w/", i), Agent: "a"}))
	}
	addAt(t, log, "state", at.Add(9*time.Hour), event.New(event.Session{State: true}))
	check()
	if _, err := testkit.Fork(t.Context(), log, "f", "s1", 1); err != nil {
		t.Fatal(err)
	}
	addAt(t, log, "run", at.Add(3*time.Hour), event.New(event.Session{Parent: event.SessionParent{SessionID: "gone", Seq: 1}}))
	check()
	addAt(t, other, "s0", at.Add(20*time.Hour), event.UserMessage("of another process"))
	addAt(t, other, "s5", at.Add(-20*time.Hour), event.UserMessage("with an old time"))
	check()
	if _, err := erase.Redact(t.Context(), other, "s2", []int64{1}); err != nil {
		t.Fatal(err)
	}
	if err := erase.Remove(t.Context(), other, "s3"); err != nil {
		t.Fatal(err)
	}
	check()
	for _, q := range []Query{{Sort: ByID, Limit: 3}, {Sort: ByActivity, Limit: 3, Text: "x"}, {Sort: ByActivity, Limit: 3, Filter: Filter{Source: NoSource}}, {Sort: ByActivity, Limit: 1e6}} {
		checkNewest(t, log, q, false, false)
	}
	addAt(t, log, "undated", time.Unix(0, 0), event.UserMessage("of no date"))
	checkNewest(t, log, Query{Sort: ByActivity, Limit: 2}, false, true)
	checkNewest(t, log, Query{Sort: ByActivity, Limit: 100}, false, false)
}

// Newest reads as much of a store of many sessions as of a small one.
func TestNewestIsBounded(t *testing.T) {
	var listed []int
	for _, n := range []int{100, 1000} {
		s := &listCounter{Store: sqlite.New(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{NoSync: true})}
		log := eventlog.Open(s)
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		for i := range n {
			addAt(t, log, fmt.Sprintf("s%04d", i*7%n), at.Add(time.Duration(i)*time.Minute), event.UserMessage("hello"))
		}
		s.listed = 0
		rows, _, ok, err := Newest(t.Context(), log, &Query{Sort: ByActivity, Limit: 20}, false)
		if err != nil || !ok || len(rows) != 20 {
			t.Fatal(len(rows), ok, err)
		}
		listed = append(listed, s.listed)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if listed[0] != listed[1] {
		t.Errorf("read %d sessions of 100, and %d of 1,000", listed[0], listed[1])
	}
}

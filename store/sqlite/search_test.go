package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/pages"
	"github.com/convlog/convlog/internal/testsize"
)

// countedStmt counts the queries and the rows of a statement.
type countedStmt struct {
	driverStmt
	queries, rows int
}

func (s *countedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.queries++
	rows, err := s.driverStmt.QueryContext(ctx, args)
	return &countedRows{rows, s}, err
}

type countedRows struct {
	driver.Rows
	of *countedStmt
}

func (r *countedRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	if err == nil {
		r.of.rows++
	}
	return err
}

// countQueries counts a query on the connection that the next reader gets.
func countQueries(t testing.TB, s *Store, query string) (counted *countedStmt) {
	t.Helper()
	must(t, s.read(t.Context(), func(c *conn) error {
		prepared, err := c.prepared(query)
		if err != nil {
			return err
		}
		counted = &countedStmt{driverStmt: prepared.raw}
		prepared.raw = counted
		return nil
	}))
	return counted
}

// openTexts opens an indexed store with one session: every so many events have the text
// and the others have another one.
func openTexts(t testing.TB, events, every int, text string) *Store {
	t.Helper()
	s := openUnindexed(t, tempPath(t))
	chain, after := []event.Event(nil), event.Head{}
	for i := range events {
		words := "nothing"
		if i%every == 0 {
			words = text
		}
		chain = append(chain, newEvent("a", after, 0, words))
		after = chain[i].Head()
	}
	must(t, s.Append(t.Context(), "a", event.Head{}, chain, false))
	must(t, s.Index(t.Context(), false))
	return s
}

// A search reads the matches of a session in pages of 64, 256 and up to 1000 events, and
// at most 1 MiB and one line. It finds the rows of a large page by their keys. Where most
// events match, it reads all of them.
func TestSearchStatements(t *testing.T) {
	for _, test := range []struct {
		events, every, byKey, bySeq, all, few int
		text                                  string
	}{
		{events: 4200, every: 3, byKey: 7, text: "common"}, // 64 and 64; 256 and 256; again; 248
		{events: 1400, every: 1, byKey: 2, all: 3, text: "common"},
		{events: 90, every: 3, few: 1, text: "common"},
		{events: 40, every: 1, few: 1, bySeq: 10, text: "common " + strings.Repeat("x", 256<<10)},
		{events: 70, every: 1, byKey: 1, bySeq: 1, text: "common"},
	} {
		s := openTexts(t, test.events, test.every, test.text)
		byKey, bySeq := countQueries(t, s, readSearchedKeys), countQueries(t, s, readSearched)
		all, few := countQueries(t, s, readForward), countQueries(t, s, readPlanned)
		if got := candidates(t, s, "common", "", 0); len(got) != test.events/test.every {
			t.Errorf("%d events match, want %d", len(got), test.events/test.every)
		}
		if byKey.queries != test.byKey || bySeq.queries != test.bySeq || all.queries != test.all || few.queries != test.few {
			t.Errorf("%d, %d, %d and %d statements, want %+v", byKey.queries, bySeq.queries, all.queries, few.queries, test)
		}
	}
}

// A search with few hits in many sessions reads their sessions and their lines with one
// statement each.
func TestSearchRareStatements(t *testing.T) {
	for _, sessions := range []int{1, 30} {
		s := openUnindexed(t, tempPath(t))
		for i := range sessions {
			must(t, s.Append(t.Context(), fmt.Sprint(i), event.Head{}, eventChain(fmt.Sprint(i), event.Head{}, 2, "rare"), false))
		}
		must(t, s.Index(t.Context(), false))
		describe, few, each := countQueries(t, s, readActivity), countQueries(t, s, readPlanned), countQueries(t, s, readSearched)
		if got := candidates(t, s, "rare", "", 0); len(got) != 2*sessions {
			t.Errorf("%d events match, want %d", len(got), 2*sessions)
		}
		if describe.queries != 1 || few.queries != 1 || each.queries != 0 {
			t.Errorf("%d sessions: %d, %d and %d statements, want 1, 1 and 0", sessions, describe.queries, few.queries, each.queries)
		}
	}
}

// A search that ends after the first hits reads as many rows of the index in a session
// of 10,000 matches as in one of 5,000.
func TestSearchFirstHits(t *testing.T) {
	for _, events := range testsize.Pick([]int{5000}, []int{5000}, []int{5000, 10_000}) {
		s := openTexts(t, events, 1, "common")
		index, lines := countQueries(t, s, searchRows), countQueries(t, s, readSearchedKeys)
		left := 50
		for c, err := range s.Search(t.Context(), []string{"common"}, "", 0) {
			must(t, err)
			for _, err := range c.Events {
				must(t, err)
				if left--; left == 0 {
					break
				}
			}
			break
		}
		if left != 0 || index.rows != firstHits+1 || lines.rows != pages.FirstRows {
			t.Errorf("%d events: %d hits are missing; %d rows of the index, %d lines", events, left, index.rows, lines.rows)
		}
	}
}

// The keys of two sessions that were appended to in turn are not consecutive: a search
// finds their events by seq.
func TestSearchMixedSessions(t *testing.T) {
	s := openUnindexed(t, tempPath(t))
	heads := map[string]event.Head{}
	for range 3 {
		for _, session := range []string{"a", "b"} {
			chain := eventChain(session, heads[session], 100, "common")
			must(t, s.Append(t.Context(), session, heads[session], chain, false))
			heads[session] = chain[len(chain)-1].Head()
		}
	}
	must(t, s.Index(t.Context(), false))
	for _, session := range []string{"a", "b"} {
		if got := candidates(t, s, "common", session, 250); len(got) != 250 || got[0] != session+":250" {
			t.Errorf("session %s: %d events match, the first is %s", session, len(got), got[0])
		}
	}
}

// The index is rebuilt while a search is between two parts of a session.
func TestSearchDuringRebuild(t *testing.T) {
	const events = 5000
	s := openTexts(t, events, 1, "common")
	seen := map[int64]bool{}
	parts := 0
	for c, err := range s.Search(t.Context(), []string{"common"}, "", 0) {
		must(t, err)
		if parts++; parts == 2 {
			must(t, s.write(t.Context(), resetOp{}, false))
		}
		for e, err := range c.Events {
			must(t, err)
			seen[e.Seq] = true
		}
	}
	if len(seen) != events || parts < 3 {
		t.Errorf("%d of %d events in %d parts", len(seen), events, parts)
	}
}

// Check looks up one gram of each event: every lookup reads the index.
func TestSampleOfGrams(t *testing.T) {
	const text = "the parcel of a quick brown fox is in a lazy depot"
	if sample := strings.TrimSpace(sampleOf(text)); !slices.Contains(strings.Fields(newGramSet().words(text)), sample) {
		t.Errorf("gram %q of the sample is not in the text", sample)
	}
	if sample := sampleOf("a to"); sample != "" {
		t.Errorf("a text without grams has the sample %q", sample)
	}
}

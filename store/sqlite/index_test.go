package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
)

// openUnindexed opens a store without background updates of the index.
func openUnindexed(t testing.TB, path string) *Store {
	t.Helper()
	return open(t, path, Options{NoIndex: true})
}

// candidates returns the events that a search must read, as session:seq.
func candidates(t testing.TB, s *Store, term, session string, to int64) []string {
	t.Helper()
	seen := []string{}
	for c, err := range s.Search(t.Context(), []string{term}, session, to) {
		must(t, err)
		for e, err := range c.Events {
			must(t, err)
			seen = append(seen, fmt.Sprintf("%s:%d", c.Session, e.Seq))
		}
	}
	return seen
}

func wantSeen(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func stateOf(t testing.TB, s *Store) (state indexState) {
	t.Helper()
	must(t, s.read(t.Context(), func(c *conn) (err error) {
		state, err = readIndexState(c)
		return err
	}))
	return state
}

// A process is killed between an append and the update of the index. A search reads
// each event that is not indexed yet once.
func TestSearchWithStaleIndex(t *testing.T) {
	path := tempPath(t)
	s := openUnindexed(t, path)
	head := add(t, s, "a", event.Head{}, 2, "apple")
	wantSeen(t, "nothing indexed", candidates(t, s, "pear", "", 0), "a:2", "a:1")
	must(t, s.Index(t.Context(), false))
	wantSeen(t, "all indexed", candidates(t, s, "pear", "", 0))
	wantSeen(t, "all indexed, found", candidates(t, s, "apple", "", 0), "a:2", "a:1")
	head = add(t, s, "a", head, 2, "pear")
	other := add(t, s, "b", event.Head{}, 1, "plum")
	for range 2 {
		wantSeen(t, "some not indexed", candidates(t, s, "apple", "", 0), "a:4", "a:3", "a:2", "a:1", "b:1")
		wantSeen(t, "some not indexed, none found", candidates(t, s, "cherry", "", 0), "a:4", "a:3", "b:1")
		wantSeen(t, "one session", candidates(t, s, "apple", "a", 3), "a:3", "a:2", "a:1")
		must(t, s.Close())
		s = openUnindexed(t, path)
	}
	must(t, s.Index(t.Context(), true))
	wantSeen(t, "rebuilt", candidates(t, s, "pear", "", 0), "a:4", "a:3")
	add(t, s, "a", head, 1, "x")
	add(t, s, "b", other, 1, "x")
}

// A store with NoIndex leaves the index alone when it is closed. A search finds the events.
func TestNoIndex(t *testing.T) {
	path := tempPath(t)
	s := openUnindexed(t, path)
	add(t, s, "a", event.Head{}, 2, "apple")
	must(t, s.Close())
	s = openUnindexed(t, path)
	if state := stateOf(t, s); state.watermark != 0 {
		t.Errorf("%d events are indexed", state.watermark)
	}
	wantSeen(t, "nothing indexed", candidates(t, s, "apple", "", 0), "a:2", "a:1")
}

// A store updates its index in the background, and when it is closed.
func TestIndexInBackground(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 3, "apple")
	for stateOf(t, s).watermark < 3 {
		must(t, t.Context().Err())
	}
	head = add(t, s, "a", head, 1, "pear")
	must(t, s.Close())
	s = openUnindexed(t, path)
	if state := stateOf(t, s); state.watermark != 4 || state.rules != indexRules {
		t.Errorf("after closing: %+v", state)
	}
	add(t, s, "a", head, 1, "x")
}

// An index batch ends early when a write is queued.
func TestIndexBatchYieldsToWriters(t *testing.T) {
	s := openUnindexed(t, tempPath(t))
	add(t, s, "a", event.Head{}, 3*indexChunk, "apple")
	b, err := s.index.nextBatch(t.Context())
	must(t, err)
	var waiting sync.WaitGroup
	op := beforeCommit{indexBatch: b, before: func() {
		waiting.Go(func() { add(t, s, "b", event.Head{}, 1, "pear") })
		for !s.writer.hasJobs() {
			must(t, t.Context().Err())
		}
	}}
	must(t, s.writer.do(t.Context(), &job{op: op, standalone: true}))
	waiting.Wait()
	if state := stateOf(t, s); state.watermark != indexChunk {
		t.Errorf("the index came to %d, not %d", state.watermark, indexChunk)
	}
	wantSeen(t, "not indexed", candidates(t, s, "cherry", "b", 0), "b:1")
	if seen := candidates(t, s, "apple", "", 0); len(seen) != 3*indexChunk+1 {
		t.Errorf("looks at %d events", len(seen))
	}
}

type beforeCommit struct {
	*indexBatch
	before func()
}

func (m beforeCommit) apply(w *writer) error {
	m.before()
	return m.indexBatch.apply(w)
}

// A batch is dropped if an erasure ran since the batch was read.
func TestIndexBatchAfterErasure(t *testing.T) {
	s := openUnindexed(t, tempPath(t))
	events := eventChain("a", event.Head{}, 3, "secret")
	must(t, s.Append(t.Context(), "a", event.Head{}, events, false))
	b, err := s.index.nextBatch(t.Context())
	must(t, err)
	head := headOf(events)
	must(t, s.Rewrite(t.Context(), "a", head, []event.Event{withText(events[1], "harmless")}, eventChain("a", head, 1, "note")))
	must(t, s.writer.do(t.Context(), &job{op: b, standalone: true}))
	if state := stateOf(t, s); state.watermark != 0 {
		t.Errorf("the index came to %d", state.watermark)
	}
	must(t, s.Index(t.Context(), false))
	wantSeen(t, "secret", candidates(t, s, "secret", "", 0), "a:3", "a:1")
}

// vocabulary returns the words of the index, with the number of rows and uses.
func vocabulary(t testing.TB, s *Store) (words []string) {
	t.Helper()
	c, err := dial(s.path, writerParameters)
	must(t, err)
	defer func() { must(t, c.close()) }()
	must(t, c.run("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, search, 'row')"))
	must(t, c.each(func(row []driver.Value) { words = append(words, fmt.Sprint(row)) }, 3, "SELECT * FROM temp.vocabulary ORDER BY term"))
	return words
}

// An erasure leaves no trace in the index: the index is equal to a rebuilt one.
func TestErasureLeavesIndex(t *testing.T) {
	s := openUnindexed(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 300, "filler")
	secret := eventChain("a", head, 2, "zyzzyva")
	must(t, s.Append(t.Context(), "a", head, secret, false))
	head = add(t, s, "a", headOf(secret), 5, "filler again")
	other := add(t, s, "b", event.Head{}, 3, "quetzal")
	must(t, s.Index(t.Context(), false))
	before := vocabulary(t, s)
	must(t, s.Rewrite(t.Context(), "a", head, []event.Event{withText(secret[0], "harmless"), withText(secret[1], "")}, eventChain("a", head, 1, "note")))
	wantSeen(t, "what it became", candidates(t, s, "harmless", "a", 307), "a:301")
	must(t, s.RemoveSession(t.Context(), "b", other))
	must(t, s.Index(t.Context(), false))
	after := vocabulary(t, s)
	must(t, s.Index(t.Context(), true))
	if rebuilt := vocabulary(t, s); !slices.Equal(after, rebuilt) || slices.Equal(before, rebuilt) || len(rebuilt) == 0 {
		t.Errorf("the index has %d words, %d when rebuilt, had %d", len(after), len(rebuilt), len(before))
	}
}

// Two stores update the index of one file.
func TestIndexFromTwoStores(t *testing.T) {
	path := tempPath(t)
	stores := []*Store{open(t, path), open(t, path)}
	var writers sync.WaitGroup
	for i, s := range stores {
		writers.Go(func() {
			head := event.Head{}
			for n := range 40 {
				head = add(t, s, fmt.Sprintf("s%d", i), head, 3, fmt.Sprintf("word%d", n))
				if n%7 == 0 {
					must(t, s.Index(t.Context(), false))
				}
			}
		})
	}
	writers.Wait()
	must(t, stores[0].Index(t.Context(), false))
	both := vocabulary(t, stores[0])
	wantSeen(t, "one word", candidates(t, stores[1], "word39", "s0", 0), "s0:120", "s0:119", "s0:118")
	must(t, stores[1].Index(t.Context(), true))
	if rebuilt := vocabulary(t, stores[0]); !slices.Equal(both, rebuilt) {
		t.Errorf("the index of two has %d words, rebuilt %d", len(both), len(rebuilt))
	}
}

// When the index is missing, or pages of it are damaged, a search reads all events. Check reports the
// damage, erasures still work, and the index can be rebuilt.
func TestIndexDamaged(t *testing.T) {
	for name, damage := range map[string]string{
		"pages":     "UPDATE search_data SET block = x'00ff' WHERE id > 10",
		"structure": "UPDATE search_data SET block = x'00' WHERE id = 10",
		"no pages":  "DELETE FROM search_data WHERE id > 10",
		"dropped":   "DROP TABLE search",
		"emptied":   "INSERT INTO search (search) VALUES ('delete-all')",
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			s := openUnindexed(t, path)
			events := eventChain("a", event.Head{}, 3, "apple")
			must(t, s.Append(t.Context(), "a", event.Head{}, events, false))
			must(t, s.Index(t.Context(), false))
			must(t, s.Close())
			makeDatabase(t, path, damage)
			s = openUnindexed(t, path)
			if name == "pages" || name == "no pages" || name == "dropped" {
				wantSeen(t, "damaged", candidates(t, s, "apple", "", 0), "a:3", "a:2", "a:1")
			}
			defects, err := collect(s.Check(t.Context()))
			must(t, err)
			if len(defects) == 0 {
				t.Error("Check finds nothing")
			}
			head := headOf(events)
			must(t, s.Rewrite(t.Context(), "a", head, []event.Event{withText(events[1], "")}, eventChain("a", head, 1, "note")))
			must(t, s.Index(t.Context(), true))
			wantSeen(t, "rebuilt", candidates(t, s, "apple", "", 0), "a:3", "a:1")
			if defects, err = collect(s.Check(t.Context())); err != nil || len(defects) > 0 {
				t.Errorf("rebuilt: %v, %v", defects, err)
			}
		})
	}
}

// The grams of a term are among the grams of every text that contains the term.
func FuzzGrams(f *testing.F) {
	f.Add("the store.go of C++", 4, 8)
	f.Add("日本語の検索 with spaces", 3, 9)
	f.Add("aaaaaaaa a a", 0, 5)
	set := newGramSet()
	f.Fuzz(func(t *testing.T, text string, from, to int) {
		text = searchtext.Fold(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
		if from < 0 || to < from || to > len(text) {
			return
		}
		all := strings.Fields(set.words(text))
		seen := map[string]bool{}
		for _, gram := range all {
			if seen[gram] {
				t.Fatalf("%q comes twice", gram)
			}
			seen[gram] = true
		}
		query, ok := indexQuery([]string{text[from:to]})
		if !ok {
			return
		}
		words := strings.TrimSuffix(strings.TrimPrefix(query, "("), `) OR "`+unreadGram+`"`)
		for word := range strings.SplitSeq(words, " AND ") {
			if !seen[strings.Trim(word, `"`)] {
				t.Fatalf("%s of %q is not in %q", word, text[from:to], text)
			}
		}
	})
}

// Close returns no error when it cannot update the index.
func TestCloseIgnoresIndexErrors(t *testing.T) {
	path := tempPath(t)
	s := openUnindexed(t, path)
	add(t, s, "a", event.Head{}, 3, "apple")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Index(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	release := holdWriteLock(t, path)
	s = open(t, path)
	must(t, s.open(t.Context()))
	must(t, s.Close())
	release()
	want(t, eventlog.ErrReadOnly, open(t, path, Options{ReadOnly: true}).Index(t.Context(), true))
}

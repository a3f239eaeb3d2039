package eventlog

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Query says what Search looks for. Text is all it needs.
type Query struct {
	// Text is what a person types. Words are separated by white space, and an
	// event must hold all of them, anywhere in its text and also inside of longer
	// words. What stands in double quotes is one phrase. Nothing else has a
	// meaning of its own, nor has a quote that is not closed; see Search.
	Text string
	// Session restricts the search to the lineage of one session; "" is all
	// sessions.
	Session string
	// Types restricts it to events of these types, by name, in any version; nil
	// is all.
	Types []Type
	// Active leaves out events that were rewound: those that count on the
	// active path only and are not on it.
	Active bool
	// Limit bounds how many hits are yielded, PerSession how many of them are of
	// one session; 0 is no bound.
	Limit, PerSession int
	// Context is how many characters a snippet has before the first match and
	// about as many behind it; 60 if 0.
	Context int
}

// Hit is an event that holds what was looked for.
type Hit struct {
	// Session holds the event: the one that was searched, or an ancestor of it.
	Session   string
	Seq       int64
	Type      Type
	Timestamp time.Time
	// Event is the event as it is stored, with spilled data fetched.
	Event   Event
	Snippet Snippet
}

// Snippet is a piece of an event's text around a match, on one line: a run of
// white space is one space.
type Snippet struct {
	Text string
	// Matches are where in Text the words and phrases stand, in bytes, in order
	// and apart from each other.
	Matches []TextRange
	// Before and After say that the event's text goes on there.
	Before, After bool
}

// TextRange is a range of bytes of a text; To is not in it.
type TextRange struct{ From, To int }

// Search yields the events that hold the query's words and phrases, newest
// first: the session with the latest newest event comes first, and of each
// session its newest hits. A fork's hits are its own events; those of its
// parent come with the parent, unless the query names the fork.
//
// Letters match in either case (by Unicode's simple folding, where ASCII letters
// match ASCII letters only), all else as it is; white space of any kind and
// length is one space, and bytes that are no UTF-8 are U+FFFD. What is searched
// is the text of an event (docs/FORMAT.md, chapter 7), spilled or not; redacted
// events have none. A query without anything to look for is ErrInvalidQuery.
//
// A session that cannot be read on, and an event whose body is missing, is
// reported by an error with a Hit that names it and has no event, and a caller
// that goes on gets the other hits. A query's session that is missing is
// ErrNotFound. All stores give the same
// hits; those with an index (Searcher) read little more than those. The iteration
// uses all processors, and may be some hits ahead of what was consumed.
func (l *Log) Search(ctx context.Context, q Query) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		terms, err := q.Terms()
		if err == nil {
			err = l.usable(ctx)
		}
		if err == nil && q.Session != "" {
			err = CheckSessionID(q.Session)
		}
		if err != nil {
			yield(Hit{}, err)
			return
		}
		s := &search{log: l, query: q, matcher: newMatcher(terms), yield: yield, left: q.Limit}
		s.run(ctx)
	}
}

// Candidates are events of one session that a search has to look at.
type Candidates struct {
	Session string
	// Events come newest first. They are of the session itself, and may be read
	// at most once.
	Events iter.Seq2[Event, error]
}

// Searcher finds events by an index of their text. A store without one is read.
type Searcher interface {
	// Search yields what may match, and leaves nothing out that does: each
	// event, of those that stood when it began, whose folded SearchText has all
	// of the terms, which are folded, in it. session restricts it to that session's
	// own events up to seq to, or "" and 0 do not. The sessions come as of
	// ByActivity. Events whose text cannot be told are among them. Each
	// session's events may be read after the iteration has gone on, and by another
	// goroutine.
	Search(ctx context.Context, terms []string, session string, to int64) iter.Seq2[Candidates, error]
}

// Indexer keeps an index of the text of events.
type Indexer interface {
	// Index brings the index up to date, or makes it anew. A store does so by
	// itself, in time; searches are right meanwhile, and slower.
	Index(ctx context.Context, anew bool) error
}

// Index brings the store's index of texts up to date, or makes it anew; a store
// without one is ErrUnsupported.
func (l *Log) Index(ctx context.Context, anew bool) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	indexer, ok := As[Indexer](l.store)
	if !ok {
		return fmt.Errorf("index: %w", ErrUnsupported)
	}
	if err := indexer.Index(ctx, anew); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// ByActivity orders sessions for a search by the time of their newest events,
// the latest first, and then by id.
func ByActivity(a, b SessionActivity) int {
	if c := b.Last.Compare(a.Last); c != 0 {
		return c
	}
	if a.Session < b.Session {
		return -1
	}
	return 1
}

// SessionActivity is when the newest event of a session was recorded, to the
// microsecond.
type SessionActivity struct {
	Session string
	Last    time.Time
}

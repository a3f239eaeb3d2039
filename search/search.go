// Package search finds events by their text.
//
//	for hit, err := range search.Events(ctx, log, search.Query{Text: "parcel"}) {
//		...
//	}
//
// Stores with an index (eventlog.Searcher) propose candidates; all others are read.
// Either way this package decides on each event, so every store gives the same
// hits.
package search

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Query says what Events looks for. Text is all it needs.
type Query struct {
	// Text is what a person types: words separated by white space. An event must
	// contain all of them, anywhere in its text, also inside longer words. Words in
	// double quotes are one phrase. No other character has a meaning of its own, nor
	// has a quote that is not closed; see Terms.
	Text string
	// Session restricts the search to the lineage of one session; "" is all
	// sessions.
	Session string
	// Types restricts it to events of these types, by name, in any version; nil is
	// all.
	Types []event.Type
	// Active excludes orphaned events: those of path scope that are not on the
	// active path.
	Active bool
	// Limit bounds how many hits are yielded, PerSession how many of them belong to
	// one session; 0 is no bound.
	Limit, PerSession int
	// Context is how many characters a snippet has before the first match, and about
	// as many after it; 60 if 0.
	Context int
}

// Hit is an event that contains the words.
type Hit struct {
	// Session holds the event: the session that was searched, or an ancestor of it.
	Session   string
	Seq       int64
	Type      event.Type
	Timestamp time.Time
	// Event is the event as it is stored, with spilled data fetched.
	Event   event.Event
	Snippet Snippet
}

// Snippet is a piece of an event's text around a match, on one line: a run of white
// space is one space.
type Snippet struct {
	Text string
	// Matches are the places of the words and phrases in Text, in bytes, in order
	// and without overlap.
	Matches []TextRange
	// Before and After say that the event's text continues there.
	Before, After bool
}

// TextRange is a range of bytes of a text; To is not part of it.
type TextRange struct{ From, To int }

// Events yields the events that contain the query's words and phrases, newest
// first: the session with the latest newest event comes first, and within a session
// its newest hits. A fork's hits are its own events; the parent's come with the
// parent, unless the query names the fork.
//
// Case is ignored (event.Fold); all other differences count. White space of any
// kind and length is one space, and bytes that are not UTF-8 are U+FFFD. The text
// of an event is what event.TextReader reads, spilled or not; redacted events have
// none. A query without words is ErrInvalidQuery.
//
// An error with a Hit that names a session and has no event concerns that session,
// or one event whose body is missing; iteration may continue. A missing session of
// the query is ErrNotFound. The iteration uses all processors, and may be some hits
// ahead of its consumer.
func Events(ctx context.Context, log *eventlog.Log, q Query) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		terms, err := q.Terms()
		if err == nil {
			err = usable(ctx, log, q.Session)
		}
		if err != nil {
			yield(Hit{}, err)
			return
		}
		s := &search{log: log, query: q, matcher: newMatcher(terms), yield: yield, left: q.Limit}
		s.run(ctx)
	}
}

// usable checks the log and, if there is one, the session id.
func usable(ctx context.Context, log *eventlog.Log, session string) error {
	if session == "" {
		session = "any"
	}
	return engine.Of(log).Usable(ctx, session)
}

// Index brings the store's index of texts up to date, or rebuilds it. A store
// without an index is ErrUnsupported.
func Index(ctx context.Context, log *eventlog.Log, rebuild bool) error {
	if err := usable(ctx, log, ""); err != nil {
		return err
	}
	searcher, ok := eventlog.As[eventlog.Searcher](log.Store())
	if !ok {
		return fmt.Errorf("index: %w", eventlog.ErrUnsupported)
	}
	if err := searcher.Index(ctx, rebuild); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

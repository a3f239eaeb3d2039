// Package search finds events by their text.
//
//	for hit, err := range search.Events(ctx, log, search.Query{Text: "parcel"}) {
//		...
//	}
//
// A store with an index (eventlog.Searcher) proposes candidates; Events reads every
// other store whole. Events itself checks each candidate, so every store gives the same
// hits. They come by session, since a merge by time would read all sessions before the
// first hit.
//
// # The text of an event
//
// A search reads the data of an event as stored, before upcasts. The text of an unknown
// type is all strings and numbers of the data. The text of a known type is, in order and
// joined by spaces:
//
//   - the strings in text, title, summary, name, message, reason, description, prompt,
//     note, task, label, from_agent, to_agent, target, url, uri, read_files and
//     modified_files, also below parts, content, entries and message;
//   - all strings and numbers below arguments, value, result, answer, detail, patch,
//     labels, input, context and error;
//   - bodies with a textual media_type (text, JSON, XML, YAML, TOML, JavaScript or a shell
//     script): data in base64, and the first 16 MiB of a blob.
//
// Names of members, other members, metadata, and strings of 1 KiB or more that have only
// base64 characters are not text. Redacted events, projection_snapshotted,
// accounting_flushed, and events with repeats in their metadata have no text.
//
// A run of white space (Unicode) becomes one space, and the text has none at its ends.
// Characters are composed (normalization form C), except U+037E, U+1FEF and U+212A, which
// would become ASCII. Texts are compared after Unicode's simple case folding: an ASCII
// letter becomes lower case, and any other character becomes the first non-ASCII character
// that folding makes equal to it. An ASCII character and a non-ASCII character are never
// equal. Accents are not removed.
package search

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Query selects events. Only Text is required, or Where.
type Query struct {
	// Text has words, separated by white space. An event must contain all words, at
	// any place of its text, also inside longer words. Words in double quotes are one
	// phrase. All other characters match themselves, and so does an unclosed quote;
	// see Terms. Without words, the query selects all events with a text for which Where is
	// true; the stores read all events for it.
	Text string
	// Session restricts the search to one session and the events that it shares with
	// its parents; "" means all sessions.
	Session string
	// Types restricts the search to events of these types, by name, in any version;
	// nil means all types.
	Types []event.Type
	// Where, if it is set, restricts the search to events for which it is true. It gets
	// events that contain the words, with spilled data fetched. Several goroutines call it.
	Where func(e *event.Event) bool
	// Active excludes orphaned events: events of path scope beside the active path.
	Active bool
	// Limit bounds the number of hits, PerSession the number of hits of one session; 0
	// is no bound.
	Limit, PerSession int
	// Context is the number of characters of a snippet before the first match, and
	// roughly after it; 60 if 0.
	Context int
}

// Hit is an event that contains the words.
type Hit struct {
	// Session has the event: the session of the query, or an ancestor of it.
	Session   string
	Seq       int64
	Type      event.Type
	Timestamp time.Time
	// Event is the stored event, with spilled data fetched and without upcasts.
	Event event.Event
	// Snippet is a piece of the event's text around a match, on one line. Each run of white
	// space becomes one space.
	Snippet string
	// Matches are the words and phrases in Snippet, in order and without overlap: the
	// offsets of the first byte and after the last byte.
	Matches [][2]int
	// Before and After are true if the event's text continues on that side of Snippet.
	Before, After bool
}

// textRange is the range From <= i < To of byte offsets in a text.
type textRange struct{ From, To int }

// Events yields the events that contain the words and phrases of the query, newest
// first: sessions in the order of their newest event, and the hits of a session from
// its newest to its oldest. Hits of a fork are its own events. Hits in a shared event
// come with the parent, unless the query names the fork.
//
// Events ignores case (searchtext.Fold) and whether characters are composed; all other
// differences count. White space of any
// kind and length equals one space, and bytes that are not UTF-8 equal U+FFFD. The text
// of an event is the result of searchtext.Reader; a redacted event has no text.
//
// A query without words and without Where is ErrInvalidQuery. A missing session of the query is
// eventlog.ErrNotFound. If an error comes with a Hit that names a session, only that
// session, or one event with a missing body, could not be searched: the caller may
// continue. Every other error ends the sequence. The iteration uses all processors,
// and may search some hits in advance.
func Events(ctx context.Context, log *eventlog.Log, q Query) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		terms, err := q.Terms()
		if errors.Is(err, ErrInvalidQuery) && q.Where != nil {
			err = nil
		}
		if err == nil {
			err = usable(ctx, log, q.Session)
		}
		if err != nil {
			yield(Hit{}, err)
			return
		}
		s := &search{log: log, query: q, matcher: newMatcher(terms), yield: yield, left: q.Limit}
		if len(terms) > 0 {
			s.index, _ = eventlog.As[eventlog.Searcher](log.Store())
			s.lines, _ = eventlog.As[eventlog.LineReader](log.Store())
		}
		s.run(ctx)
	}
}

// usable checks the log, the context and, if it is not "", the session id.
func usable(ctx context.Context, log *eventlog.Log, session string) error {
	if session == "" {
		return engine.Of(log).Usable(ctx)
	}
	return engine.Of(log).Usable(ctx, session)
}

// Index updates the store's index of texts, or rebuilds it if rebuild is true. A store
// without an index is eventlog.ErrUnsupported.
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

package search_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/jsonl"
)

// parsedLines counts the events that a search gets from a jsonl store.
type parsedLines struct {
	*jsonl.Store
	events int
}

func (p *parsedLines) ReadLines(ctx context.Context, session string, r eventlog.Span, wanted func(line []byte) bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range p.Store.ReadLines(ctx, session, r, wanted) {
			p.events++
			if !yield(e, err) {
				return
			}
		}
	}
}

// A search without an index parses the lines that may have the words, and few others. It
// finds words that the bytes of a line do not have: under escapes, in base64, in bodies.
func TestSearchParsesFewLines(t *testing.T) {
	store := &parsedLines{Store: jsonl.New(t.TempDir())}
	log := eventlog.Open(store)
	defer log.Close()
	ref, err := log.PutBlob(t.Context(), strings.NewReader("the body has a MARMOSET"))
	if err != nil {
		t.Fatal(err)
	}
	document := func(p event.Part) event.Event {
		p.Type, p.MediaType = event.DocumentPart, "text/plain"
		return event.New(event.Message{Role: event.User, Parts: []event.Part{p}})
	}
	escaped := event.UserMessage("x")
	escaped.Data = []byte(`{"role":"user","parts":[{"type":"text","text":"the \u006darmoset"}]}`)
	hits := []event.Event{
		event.UserMessage("a Marmoset"),
		event.UserMessage("Marmoset " + strings.Repeat("long enough to spill ", 1<<14)),
		escaped,
		document(event.Part{Data: []byte("inline marmoset")}),
		document(event.Part{Blob: ref}),
	}
	const others = 500
	for i, hit := range hits {
		for k := range others / len(hits) {
			if _, err := log.Append(t.Context(), "a", eventlog.Any(), event.UserMessage(fmt.Sprintf("other %d of %d", k, i))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := log.Append(t.Context(), "a", eventlog.Any(), hit); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for _, err := range search.Events(t.Context(), log, search.Query{Text: "marmoset"}) {
		if err != nil {
			t.Fatal(err)
		}
		found++
	}
	if found != len(hits) {
		t.Errorf("found %d events, want %d", found, len(hits))
	}
	if store.events < len(hits) || store.events > len(hits)+2 {
		t.Errorf("parsed %d events for %d hits among %d others", store.events, len(hits), others)
	}
}

package search_test

import (
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/memory"
)

// A search without an index finds the same hits of a long session, newest first, although
// several goroutines read it.
func TestLongSession(t *testing.T) {
	const n = 3*8192 + 5
	log := eventlog.Open(suite.Overwriting{Store: memory.New()})
	t.Cleanup(func() { _ = log.Close() })
	var want []int64
	events := make([]event.Event, n)
	for i := range events {
		text := "letter"
		if i%1000 == 0 || i >= n-2 || i%8192 < 2 {
			text, want = "parcel", append(want, int64(i+1))
		}
		events[i] = event.UserMessage(text)
	}
	for part := range slices.Chunk(events, 1000) {
		if _, err := log.Append(t.Context(), "long", eventlog.Any(), part...); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(want)
	few := want[:7]
	for _, s := range []struct {
		name  string
		query search.Query
		want  []int64
	}{
		{"all sessions", search.Query{Text: "parcel"}, want},
		{"one session", search.Query{Text: "parcel", Session: "long"}, want},
		{"a limit", search.Query{Text: "parcel", Limit: len(few)}, few},
		{"a limit for each session", search.Query{Text: "parcel", PerSession: len(few)}, few},
	} {
		var got []int64
		for hit, err := range search.Events(t.Context(), log, s.query) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, hit.Seq)
		}
		if !slices.Equal(got, s.want) {
			t.Errorf("%s: hits %v, want %v", s.name, got, s.want)
		}
	}
}

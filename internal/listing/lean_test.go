package listing

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/jsonl"
)

// A lean Choose returns the same sessions in the same order, whichever of them the catalog knows. It
// forgets the content of each session that it reads.
func TestLeanChoose(t *testing.T) {
	log := eventlog.Open(jsonl.New(t.TempDir()))
	defer log.Close()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	add := func(from, to int) {
		for i := from; i < to; i++ {
			answer := event.New(event.Message{Role: event.Assistant, Model: fmt.Sprint("model-", i%3), Usage: event.Usage{OutputTokens: int64(i * 7 % 5)}, Parts: []event.Part{event.Text("x")}})
			answer.Cost = event.Cost(i * 5 % 11)
			events := []event.Event{event.New(event.Session{CWD: fmt.Sprint("/w/", i%4), Title: fmt.Sprint("title ", i%10), Source: event.SessionSource{Format: []string{"claude", "codex"}[i%2]}}), answer}
			if i%5 == 0 {
				events = append([]event.Event{event.UserMessage("first")}, event.New(event.Session{Updated: true, Title: "late title", Source: event.SessionSource{Format: "gemini"}}), answer)
			}
			for j := range events {
				events[j].Timestamp = begin.Add(time.Duration(i*31%40) * time.Hour)
			}
			if _, err := log.Append(t.Context(), fmt.Sprintf("s%03d", i*37%101), eventlog.New(), events...); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(0, 50)
	catalogued(t, log)
	add(50, 90)
	for _, sort := range Orders {
		for _, text := range []string{"", "title 3", "late", "none"} {
			for _, f := range []Filter{{}, {Model: "model-1"}, {Source: "gemini"}, {Source: "codex", CWD: "/w/1"}, {Model: "model-2", Source: "claude"}} {
				choose := func(lean bool) (ids []string) {
					c := stats.NewCatalog(log)
					all, err := Read(t.Context(), c, func(int) {}, Known{})
					if err != nil {
						t.Fatal(err)
					}
					q := Query{Filter: f, Text: text, Sort: sort}
					rows, err := q.Choose(t.Context(), &Reader{Log: log, Catalog: c, Lean: lean}, all)
					if err != nil {
						t.Fatal(err)
					}
					for _, row := range all {
						if lean && row.Content != nil {
							t.Fatalf("the row of %s has %q", row.ID, row.Title)
						}
					}
					if ids = IDs(rows); len(rows) > 1 { // the place of a row is the same for both
						row := rows[len(rows)/2]
						r := Reader{Log: log, Catalog: c}
						if err := r.Summaries(t.Context(), []*Row{row}); err != nil {
							t.Fatal(err)
						}
						if sort == ByCost {
							after, ok := After(rows, sort, Place(row))
							if !ok {
								t.Fatal("no place")
							}
							ids = append(ids, IDs(after)...)
						}
					}
					return ids
				}
				want := choose(false)
				if diff := cmp.Diff(want, choose(true)); diff != "" {
					t.Errorf("%s, text %q, %+v (-whole +lean):\n%s", sort, text, f, diff)
				}
			}
		}
	}
}

package listing

import (
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
)

// Name reads the ends of a session only. The newest title counts, else the first
// text.
func TestName(t *testing.T) {
	const long = 5 * NameEvents
	for _, tt := range []struct {
		name   string
		events int
		titles []int // the events that give one
		want   string
	}{
		{"nothing", 3, nil, "words of 1"},
		{"a short session", NameEvents / 2, []int{2, 5}, "title 5"},
		{"the first event", long, []int{1}, "title 1"},
		{"near the start", long, []int{1, NameEvents}, fmt.Sprint("title ", NameEvents)},
		{"in between", long, []int{1, long / 2}, "title 1"},
		{"only in between", long, []int{long / 2}, "words of 1"},
		{"near the end", long, []int{1, long - NameEvents + 1}, fmt.Sprint("title ", long-NameEvents+1)},
		{"the last event", long, []int{1, long - 3, long}, fmt.Sprint("title ", long)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := eventlog.Open(memory.New())
			titles := map[int]bool{}
			for _, seq := range tt.titles {
				titles[seq] = true
			}
			var events []event.Event
			for seq := 1; seq <= tt.events; seq++ {
				e := event.UserMessage(fmt.Sprint("words of ", seq))
				if titles[seq] {
					e = event.New(event.Session{Updated: true, Title: fmt.Sprint("title ", seq)})
				}
				events = append(events, e)
			}
			if _, err := log.Append(t.Context(), "s", eventlog.New(), events...); err != nil {
				t.Fatal(err)
			}
			if got := Name(t.Context(), log, "s"); got != tt.want {
				t.Errorf("called %q, want %q", got, tt.want)
			}
			rows := catalogued(t, log)
			if got := namesByID(t, stats.NewCatalog(log), rows); got["s"] != tt.want {
				t.Errorf("the catalog calls it %q, want %q", got["s"], tt.want)
			}
		})
	}
}

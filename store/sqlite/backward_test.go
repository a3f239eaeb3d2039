package sqlite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

// A backward read yields the events of a forward read, for lines of any size, and searches the
// tree for each row only if ascending reads no whole page.
func TestBackwardReadsAscend(t *testing.T) {
	type run struct{ events, bytes int } // events with texts of so many bytes
	for _, tt := range []struct {
		name     string
		runs     []run
		descends bool
	}{
		{"short lines", []run{{2000, 10}}, false},
		{"lines of a kilobyte", []run{{2000, 1200}}, false},
		{"large lines", []run{{20, pages.MaxBytes / 3}}, true},
		{"large lines at the end", []run{{500, 10}, {10, pages.MaxBytes / 3}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tempPath(t), Options{NoSync: true})
			var head event.Head
			for _, r := range tt.runs {
				events := eventChain("a", head, r.events, strings.Repeat("x", r.bytes))
				must(t, s.Append(t.Context(), "a", head, events, false))
				head = headOf(events)
			}
			forward, err := collect(s.Read(t.Context(), "a", eventlog.Span{}))
			must(t, err)
			backward, err := collect(s.Read(t.Context(), "a", eventlog.Span{Backward: true}))
			must(t, err)
			slices.Reverse(backward)
			if !slices.EqualFunc(forward, backward, func(a, b event.Event) bool { return a.Hash() == b.Hash() }) || int64(len(forward)) != head.Seq {
				t.Errorf("%d events forward, %d backward of %d, or other ones", len(forward), len(backward), head.Seq)
			}
			descends := func() bool {
				s.readers.mu.Lock()
				defer s.readers.mu.Unlock()
				return slices.ContainsFunc(s.readers.idle, func(c *conn) bool { return c.stmts[readBackward] != nil })
			}
			for tt.descends && !descends() && t.Context().Err() == nil {
				time.Sleep(time.Millisecond) // the indexer may have the connection
			}
			if descends := descends(); descends != tt.descends {
				t.Errorf("descending reads: %v", descends)
			}
		})
	}
}

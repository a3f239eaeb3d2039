package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

// A block begins at the hour of its first answer and lasts five hours, over all sessions. Hours
// without answers begin none.
func TestBlocks(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	answers := func(n int) stats.Tally {
		return stats.Tally{Sessions: 1, Events: 2, Spend: projection.Spend{Responses: n, Usage: event.Usage{OutputTokens: int64(n)}}}
	}
	quiet := stats.Tally{Sessions: 1, Events: 1}
	sums := blocks([]map[string]stats.Tally{
		{"2026-03-01T09:00:00Z": answers(1), "2026-03-01T13:00:00Z": answers(2), "2026-03-01T08:00:00Z": quiet},
		{"2026-03-01T10:00:00Z": quiet, "2026-03-01T14:00:00Z": answers(4), "2026-03-02T07:00:00Z": quiet},
		{"2026-03-03T00:00:00Z": answers(8), stats.Undated: answers(16)},
	})
	got := map[string][2]int{}
	for name, t := range sums {
		got[name] = [2]int{t.Sessions, t.Responses}
	}
	want := map[string][2]int{"2026-03-01 09:00": {2, 3}, "2026-03-01 14:00": {1, 4}, "2026-03-03 00:00": {1, 8}, noBlock: {2, 0}, stats.Undated: {1, 16}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if names := slices.Sorted(maps.Keys(sums)); names[3] != noBlock || names[4] != stats.Undated {
		t.Errorf("in this order: %q", names)
	}
}

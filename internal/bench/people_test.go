//go:build unix

package main

import (
	"math"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/testsize"
)

// TestPeopleShares compares generated sessions with the shares that were measured.
func TestPeopleShares(t *testing.T) {
	n := testsize.Pick(20_000, 40_000, 200_000)
	got, bytes := map[string]float64{}, 0
	for _, e := range people(n) {
		got[kindOf(t, e)] += 1000 / float64(n)
		bytes += len(e.Data)
	}
	for kind, want := range shares {
		if math.Abs(got[kind]-want) > 0.15*want+0.2 {
			t.Errorf("%s: %.1f of 1,000 events, want %.1f", kind, got[kind], want)
		}
	}
	const want = 1365 // measured
	if mean := float64(bytes) / float64(n); math.Abs(mean-want) > 0.15*want {
		t.Errorf("%.0f bytes of data per event, want %d", mean, want)
	}
}

// kindOf returns the key of the event in shares.
func kindOf(t *testing.T, e event.Event) string {
	t.Helper()
	switch e.Type {
	case "bench:progress":
		return "program"
	case event.CompactionTriggered:
		return "compaction"
	case event.MessageAdded:
	default:
		return string(e.Type)
	}
	m, _, err := event.Decode[event.Message](&e)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case m.Role == event.Tool:
		return "result"
	case m.Role != event.Assistant:
		return string(m.Role)
	case len(m.ToolCalls()) > 0:
		return "call"
	case m.Text() != "":
		return "answer"
	default:
		return "reasoning"
	}
}

package projection_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// The bytes that Steps allocates per event do not grow with the events, also if the
// session is rewound again and again.
func TestStepsOfManyRewindsAllocateInProportion(t *testing.T) {
	perEvent := func(rewinds int) float64 {
		log := eventlog.Open(memory.New())
		g := garden.Plant(t, log, nil)
		for range rewinds {
			bulk(g, "s", 35)
			g.Append("s", event.New(event.HeadMove{To: g.Head("s").Seq}))
			bulk(g, "s", 3)
			g.Append("s", event.New(event.HeadMove{To: g.Head("s").Seq - 4}))
		}
		set := projection.Of("test:rewinds", projection.History(), projection.Transcript(), projection.Branches())
		steps := 0
		used := allocated(func() {
			for _, err := range projection.Steps(garden.Bg, log, "s", set, 0) {
				g.Allow(err)
				steps++
			}
		})
		return used / float64(steps)
	}
	n := testsize.Pick(20, 20, 50)
	if few, many := perEvent(n), perEvent(16*n); many > 2*few {
		t.Errorf("%.0f bytes per event with %d rewinds, %.0f with %d", few, n, many, 16*n)
	}
}

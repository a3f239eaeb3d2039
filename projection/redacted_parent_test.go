package projection_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// A Live on a fork at any depth gets the redactions in its shared prefix, and makes
// no body with erased content.
func TestALiveOnAForkDropsContentThatItsParentRedacts(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		g.Append("s", event.UserMessage("the secret"))
		for range 3 {
			g.Append("s", event.UserMessage("more"))
		}
		for i, from := range []string{"s", "f0", "s"} {
			at := []fork.Point{fork.AtSeq(3), fork.Head(), fork.AtSeq(0)}[i]
			_, err := fork.At(garden.Bg, g.Log, from, at, fork.Options{ID: []string{"f0", "f1", "none"}[i], Force: true})
			g.Allow(err)
		}
		lives := map[string]*projection.Live{}
		for _, name := range []string{"f0", "f1"} {
			bulk(g, name, 2)
			lives[name] = resume(g, name, projection.LiveOptions{})
		}
		before := g.Head("none")
		_, err := erase.Redact(garden.Bg, g.Log, "s", []int64{1, 4}, erase.RedactOptions{Reason: "test"})
		g.Allow(err)
		for name, live := range lives {
			if _, _, err := live.Snapshot(garden.Bg, projection.Request{Body: true}); !errors.Is(err, eventlog.ErrConflict) {
				t.Fatalf("%s: a snapshot of erased content: %v", name, err)
			}
			g.Allow(live.Follow(garden.Bg))
			_, taken, err := live.Snapshot(garden.Bg, projection.Request{Body: true})
			if !taken || err != nil {
				t.Fatalf("%s: taken %v, %v", name, taken, err)
			}
			for _, e := range g.Lineage(name) {
				if strings.Contains(string(e.Data), "the secret") {
					t.Errorf("%s: event %d holds %s", name, e.Seq, e.Data)
				}
				if note, ok, err := event.Decode[event.RedactionNote](&e); ok && e.SessionID == name {
					g.Allow(err)
					garden.Same(t, "named in "+name, []int64{1}, note.Seqs)
				}
			}
			report, err := verify.Session(garden.Bg, g.Log, name)
			g.Allow(err)
			garden.Same(t, "defects of "+name, 0, len(report.Defects))
		}
		garden.Same(t, "a fork that shares nothing", before, g.Head("none"))
	})
}

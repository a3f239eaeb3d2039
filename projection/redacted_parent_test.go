package projection_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// A Live on a fork, or on a fork of that, learns that something it shares was
// redacted, and makes no body with it.
func TestALiveOnAForkForgetsWhatItsParentRedacts(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.append("s", event.UserMessage("the secret"))
		for range 3 {
			g.append("s", event.UserMessage("more"))
		}
		for i, from := range []string{"s", "f0", "s"} {
			at := []fork.Point{fork.AtSeq(3), fork.Head(), fork.AtSeq(0)}[i]
			_, err := fork.At(bg, g.log, from, at, fork.Options{ID: []string{"f0", "f1", "none"}[i], Force: true})
			g.allow(err)
		}
		lives := map[string]*projection.Live{}
		for _, name := range []string{"f0", "f1"} {
			g.bulk(name, 2)
			lives[name] = g.resume(name, projection.LiveOptions{})
		}
		before := g.head("none")
		_, err := erase.Redact(bg, g.log, "s", []int64{1, 4}, erase.RedactOptions{Reason: "test"})
		g.allow(err)
		for name, live := range lives {
			if _, _, err := live.Snapshot(bg, projection.Request{Body: true}); !errors.Is(err, eventlog.ErrConflict) {
				t.Fatalf("%s: a snapshot of what is gone: %v", name, err)
			}
			g.allow(live.Follow(bg))
			_, taken, err := live.Snapshot(bg, projection.Request{Body: true})
			if !taken || err != nil {
				t.Fatalf("%s: taken %v, %v", name, taken, err)
			}
			for _, e := range g.lineage(name) {
				if strings.Contains(string(e.Data), "the secret") {
					t.Errorf("%s: event %d holds %s", name, e.Seq, e.Data)
				}
				if note, ok, err := event.Decode[event.RedactionNote](&e); ok && e.SessionID == name {
					g.allow(err)
					same(t, "named in "+name, []int64{1}, note.Seqs)
				}
			}
			report, err := verify.Session(bg, g.log, name)
			g.allow(err)
			same(t, "defects of "+name, 0, len(report.Defects))
		}
		same(t, "a fork that shares nothing", before, g.head("none"))
	})
}

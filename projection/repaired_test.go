//go:build !js

package projection_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/repair"
)

// A snapshot can contain an event that is lost later. After the repair a load skips
// it, also in a fork. A load uses a snapshot that does not cover the lost event, or
// that was made after the repair.
func TestASnapshotFromBeforeALossIsSkipped(t *testing.T) {
	dir := t.TempDir()
	log := eventlog.Open(jsonl.New(dir, jsonl.Options{NoSync: true}))
	defer func() { _ = log.Close() }()
	g := &garden.Garden{T: t, Log: log}
	say := func(name, text string) { g.Append(name, event.UserMessage(text)) }
	say("s", "one")
	g.Snapshot("s", garden.Traces[3], true) // 2
	say("s", "which will be lost")          // 3
	say("s", "three")
	g.Snapshot("s", garden.Traces[3], true) // 5
	say("s", "four")
	path := filepath.Join(dir, "s.jsonl")
	text, err := os.ReadFile(path)
	g.Allow(err)
	g.Allow(os.WriteFile(path, bytes.Replace(text, []byte("will be lost"), []byte("will be LOST"), 1), 0o600))
	_, err = repair.Session(garden.Bg, log, "s", repair.Options{InPlace: true})
	g.Allow(err)
	_, err = fork.At(garden.Bg, log, "s", fork.Head(), fork.Options{ID: "f", Force: true})
	g.Allow(err)
	for _, name := range []string{"s", "f"} {
		head := g.Head(name).Seq
		got, err := projection.LoadSet(garden.Bg, log, name, garden.Traces[3])
		g.Allow(err)
		state := g.Expected(head, g.Lineage(name))
		path, _ := projection.State(got, garden.PathTrace)
		session, _ := projection.State(got, garden.SessionTrace)
		garden.Same(t, "path of "+name, state.Path, path.Seen)
		garden.Same(t, "session of "+name, state.Session, session.Seen)
		garden.Same(t, "skipped in "+name, []int64{5}, dedupe(skipped(got.Explain, "other_events")))
		if from := got.Explain.Parts[0].From.Seq; from != 2 {
			t.Errorf("%s begins from %d", name, from)
		}
		g.Snapshot(name, garden.Traces[3], true)
		got, err = projection.LoadSet(garden.Bg, log, name, garden.Traces[3])
		g.Allow(err)
		if x := got.Explain; x.Parts[0].From.Seq != head+1 || x.Events != 1 || len(x.Skipped) != 0 {
			t.Errorf("%s: after a new snapshot: %+v", name, x)
		}
	}
}

// A body has the hash of the last event it covers.
func TestASnapshotOfOtherEventsIsSkipped(t *testing.T) {
	for name, spoil := range map[string]func(s *event.Snapshot){
		"other":        func(s *event.Snapshot) { s.Hash[0]++ },
		"not said":     func(s *event.Snapshot) { s.Hash = event.Hash{} },
		"further back": func(s *event.Snapshot) { s.Seq-- },
		"none":         func(s *event.Snapshot) { s.Seq = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
				bulk(g, "s", 3)
				first := g.Snapshot("s", garden.Traces[3], true)
				live := resume(g, "s", projection.LiveOptions{})
				seq := bad(g, spoil)
				bulk(g, "s", 2)
				got, err := projection.LoadSet(garden.Bg, g.Log, "s", garden.Traces[3])
				g.Allow(err)
				path, _ := projection.State(got, garden.PathTrace)
				garden.Same(t, "path", g.Expected(g.Head("s").Seq, g.Lineage("s")).Path, path.Seen)
				garden.Same(t, "skipped", []int64{seq}, dedupe(skipped(got.Explain, "other_events")))
				if from := got.Explain.Parts[0].From; from.ID != first.SnapshotID {
					t.Errorf("begins from %+v", from)
				}
				g.Allow(live.Follow(garden.Bg))
				_, _, err = live.Snapshot(garden.Bg, projection.Request{})
				g.Allow(err)
			})
		})
	}
}

// A snapshot may cover fewer events than there are before it.
func TestASnapshotMayCoverFewerEvents(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		for range 4 {
			bulk(g, "s", 1)
		}
		covered, err := g.Log.Event(garden.Bg, "s", 2)
		g.Allow(err)
		state := `{"seen":["of two"]}`
		seq := bad(g, func(s *event.Snapshot) { s.Seq, s.Hash, s.State = 2, covered.Hash(), body(g, 1, state) })
		got, err := projection.LoadSet(garden.Bg, g.Log, "s", garden.Traces[3])
		g.Allow(err)
		path, _ := projection.State(got, garden.PathTrace)
		want := append([]string{"of two"}, g.Expected(seq, g.Lineage("s")).Path[2:]...)
		garden.Same(t, "path", want, path.Seen)
	})
}

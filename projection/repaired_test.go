package projection_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/repair"
)

// A snapshot that was taken before an event was lost holds what no replay has any
// more: after the repair it is passed over, in a fork too. One that does not cover
// the lost event, or was taken since, is used.
func TestASnapshotFromBeforeALossIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	log := eventlog.Open(jsonl.New(dir, jsonl.Options{Sync: jsonl.Never}))
	defer func() { _ = log.Close() }()
	g := &garden{t: t, log: log}
	say := func(name, text string) { g.append(name, event.UserMessage(text)) }
	say("s", "one")
	g.snapshot("s", traces[3], true) // 2
	say("s", "which will be lost")   // 3
	say("s", "three")
	g.snapshot("s", traces[3], true) // 5
	say("s", "four")
	path := filepath.Join(dir, "s.jsonl")
	text, err := os.ReadFile(path)
	g.allow(err)
	g.allow(os.WriteFile(path, bytes.Replace(text, []byte("will be lost"), []byte("will be LOST"), 1), 0o600))
	_, err = repair.Session(bg, log, "s", repair.Options{InPlace: true})
	g.allow(err)
	_, err = fork.At(bg, log, "s", fork.Head(), fork.Options{ID: "f", Force: true})
	g.allow(err)
	for _, name := range []string{"s", "f"} {
		head := g.head(name).Seq
		got, err := projection.LoadSet(bg, log, name, traces[3])
		g.allow(err)
		state := g.expected(head, g.lineage(name))
		path, _ := projection.State(got, pathTrace)
		session, _ := projection.State(got, sessionTrace)
		same(t, "path of "+name, state.Path, path.Seen)
		same(t, "session of "+name, state.Session, session.Seen)
		same(t, "passed over in "+name, []int64{5}, dedupe(passed(got.Explain, projection.ErrOtherPast)))
		if from := got.Explain.Parts[0].From.Seq; from != 2 {
			t.Errorf("%s begins from %d", name, from)
		}
		g.snapshot(name, traces[3], true)
		got, err = projection.LoadSet(bg, log, name, traces[3])
		g.allow(err)
		if x := got.Explain; x.Parts[0].From.Seq != head+1 || x.Events != 1 || len(x.Passed) != 0 {
			t.Errorf("%s: after a new snapshot: %+v", name, x)
		}
	}
}

// A body says of which events it was made.
func TestASnapshotOfAnotherPastIsPassedOver(t *testing.T) {
	for name, spoil := range map[string]func(s *event.Snapshot){
		"other":        func(s *event.Snapshot) { s.Hash[0]++ },
		"not said":     func(s *event.Snapshot) { s.Hash = event.Hash{} },
		"further back": func(s *event.Snapshot) { s.Seq-- },
		"none":         func(s *event.Snapshot) { s.Seq = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			onCounted(t, func(t *testing.T, g *garden, _ *counted) {
				g.bulk("s", 3)
				first := g.snapshot("s", traces[3], true)
				live := g.resume("s", projection.LiveOptions{})
				seq := g.bad(spoil)
				g.bulk("s", 2)
				got, err := projection.LoadSet(bg, g.log, "s", traces[3])
				g.allow(err)
				path, _ := projection.State(got, pathTrace)
				same(t, "path", g.expected(g.head("s").Seq, g.lineage("s")).Path, path.Seen)
				same(t, "passed over", []int64{seq}, dedupe(passed(got.Explain, projection.ErrOtherPast)))
				if from := got.Explain.Parts[0].From; from.ID != first.SnapshotID {
					t.Errorf("begins from %+v", from)
				}
				g.allow(live.Follow(bg))
				_, _, err = live.Snapshot(bg, projection.Request{})
				g.allow(err)
			})
		})
	}
}

// What a snapshot covers need not stand just before it.
func TestASnapshotMayCoverLessThanStandsBeforeIt(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		for range 4 {
			g.bulk("s", 1)
		}
		covered, err := g.log.Event(bg, "s", 2)
		g.allow(err)
		state := `{"seen":["of two"]}`
		seq := g.bad(func(s *event.Snapshot) { s.Seq, s.Hash, s.State = 2, covered.Hash(), g.body(1, state) })
		got, err := projection.LoadSet(bg, g.log, "s", traces[3])
		g.allow(err)
		path, _ := projection.State(got, pathTrace)
		want := append([]string{"of two"}, g.expected(seq, g.lineage("s")).Path[2:]...)
		same(t, "path", want, path.Seen)
	})
}

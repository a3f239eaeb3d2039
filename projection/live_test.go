package projection_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// resume makes a Live of the traces.
func (g *garden) resume(name string, opts projection.LiveOptions) *projection.Live {
	g.t.Helper()
	live, err := projection.Resume(bg, g.log, name, allTraces, opts)
	g.allow(err)
	return live
}

// asked is what a Live tells its policy.
func (g *garden) asked(live func(projection.LiveOptions) *projection.Live) (o projection.Opportunity) {
	g.t.Helper()
	asked := 0
	v := live(projection.LiveOptions{Policy: func(got *projection.Opportunity) bool {
		asked++
		o = *got
		return false
	}})
	if _, taken, err := v.Snapshot(bg, projection.Request{}); taken || err != nil || asked != 1 {
		g.t.Fatalf("taken %v after asking %d times: %v", taken, asked, err)
	}
	o.Live, o.Age = nil, 0
	return o
}

// A Live that goes along with a session, whoever writes to it, has the states of
// a fresh load, and tells policies the same.
func TestALiveIsAFreshLoad(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				g := plant(r, log, nil)
				var told projection.Opportunity
				live := g.resume("s0", projection.LiveOptions{Policy: func(o *projection.Opportunity) bool {
					told = *o
					told.Live, told.Age = nil, 0
					return false
				}})
				for _, d := range drawScript.Draw(r, "script") {
					d.b = d.b / len(traces) * len(traces) // all snapshots are of one set
					if g.run(d); d.a%2 == 0 {
						continue
					}
					g.allow(live.Follow(bg))
					want, _ := g.load("s0", projection.Options{})
					same(r, "states", want, viewOf(&live.Loaded))
					_, _, err := live.Snapshot(bg, projection.Request{})
					g.allow(err)
					fresh := g.asked(func(o projection.LiveOptions) *projection.Live { return g.resume("s0", o) })
					same(r, "opportunity", fresh, told)
				}
			})
		})
	}
}

func TestAbsorbTakesTheNextEventOnly(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 2)
		g.bulk("other", 3)
		live := g.resume("s", projection.LiveOptions{})
		g.bulk("s", 2)
		for what, e := range map[string]event.Event{
			"a gap": g.lineage("s")[3], "a repeat": g.lineage("s")[1], "another session": g.lineage("other")[2],
		} {
			if err := live.Absorb(bg, e); !errors.Is(err, projection.ErrNotNext) || live.Head.Seq != 2 {
				t.Errorf("%s: %v, head %d", what, err, live.Head.Seq)
			}
		}
		g.allow(live.Absorb(bg, g.lineage("s")[2:]...))
		want, _ := g.load("s", projection.Options{})
		same(t, "states", want, viewOf(&live.Loaded))
	})
}

// A snapshot is refused when others appended since, and nothing is written.
func TestASnapshotOfAnOldHeadIsAConflict(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 2)
		live := g.resume("s", projection.LiveOptions{})
		g.bulk("s", 1)
		before := g.head("s")
		_, taken, err := live.Snapshot(bg, projection.Request{Body: true})
		if taken || !errors.Is(err, eventlog.ErrConflict) || g.head("s") != before {
			t.Fatalf("taken %v, %v; the head is %v, was %v", taken, err, g.head("s"), before)
		}
		g.allow(live.Follow(bg))
		s, taken, err := live.Snapshot(bg, projection.Request{Body: true, ID: "reserved", Durable: true})
		if !taken || err != nil || s.Seq != before.Seq || s.SnapshotID != "reserved" || s.Index != 0 {
			t.Fatalf("taken %v, %v: %+v", taken, err, s)
		}
		if live.Head != g.head("s") {
			t.Errorf("the Live is at %v, the session at %v", live.Head, g.head("s"))
		}
	})
}

// What was erased does not stay in a Live, nor in a body that it makes.
func TestALiveForgetsWhatIsRedacted(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 3)
		live := g.resume("s", projection.LiveOptions{})
		_, err := erase.Redact(bg, g.log, "s", []int64{2}, erase.RedactOptions{Reason: "test"})
		g.allow(err)
		g.allow(live.Follow(bg))
		same(t, "states", g.expected(4, g.lineage("s")), viewOf(&live.Loaded))
	})
}

// A Live that could not go on does so later, from where it was.
func TestALiveGoesOnAfterAnError(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 3)
		live := g.resume("s", projection.LiveOptions{})
		g.append("s", event.New(event.HeadMove{To: 1}))
		moved := g.lineage("s")[3]
		g.bulk("s", 1)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := live.Absorb(ctx, moved); !errors.Is(err, context.Canceled) || live.Head.Seq != 3 {
			t.Fatalf("%v, head %d", err, live.Head.Seq)
		}
		g.allow(live.Follow(bg))
		want, _ := g.load("s", projection.Options{})
		same(t, "states", want, viewOf(&live.Loaded))
	})
}

// A projection that fails on an event fails alike wherever it is asked, and a Live
// keeps no half of the event.
func TestAnEventThatCannotBeFoldedIsLocated(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		broken, refuse := errors.New("broken"), true
		p := projection.Projection[trace]{Name: "picky", Version: 1, Apply: func(s *trace, e *event.Event) error {
			s.Seen = append(s.Seen, fmt.Sprint(e.Seq))
			if e.Seq == 3 && refuse {
				return broken
			}
			return nil
		}}
		g.bulk("s", 2)
		live, err := projection.Resume(bg, g.log, "s", projection.Of("", p))
		g.allow(err)
		g.bulk("s", 2)
		for what, err := range map[string]error{
			"live":   live.Follow(bg),
			"load":   second(projection.Load(bg, g.log, "s", p)),
			"replay": second(projection.Load(bg, g.log, "s", p, projection.Options{Replay: true})),
		} {
			var located *projection.FoldError
			if !errors.Is(err, broken) || !errors.As(err, &located) || located.Seq != 3 || located.Projection != "picky" {
				t.Errorf("%s: %v", what, err)
			}
		}
		refuse = false
		g.allow(live.Follow(bg))
		state, _ := projection.State(live, p)
		same(t, "states", []string{"1", "2", "3", "4"}, state.Seen)
	})
}

func second[A any](_ A, err error) error { return err }

package projection_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// resume makes a Live of the traces.
func resume(g *garden.Garden, name string, opts projection.LiveOptions) *projection.Live {
	g.T.Helper()
	live, err := projection.Resume(garden.Bg, g.Log, name, garden.AllTraces, opts)
	g.Allow(err)
	return live
}

// opportunities returns the opportunities that a Live gives its policy.
func opportunities(g *garden.Garden, live func(projection.LiveOptions) *projection.Live) (o projection.Opportunity) {
	g.T.Helper()
	asked := 0
	v := live(projection.LiveOptions{Policy: func(got *projection.Opportunity) bool {
		asked++
		o = *got
		return false
	}})
	if _, taken, err := v.Snapshot(garden.Bg, projection.Request{}); taken || err != nil || asked != 1 {
		g.T.Fatalf("taken %v after asking %d times: %v", taken, asked, err)
	}
	o.Live, o.Age = nil, 0
	return o
}

// Live.Append stores and folds events with the result of a Follow. It reads no
// events, and returns a conflict after events of another writer.
func TestLiveAppend(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, asks("hello"))
		live, err := projection.Resume(garden.Bg, g.Log, "s", garden.AllTraces)
		g.Allow(err)
		ctx := eventlog.WithMetadata(garden.Bg, map[string]any{"who": "me"})
		same := func(what string) {
			t.Helper()
			fresh, err := projection.LoadSet(garden.Bg, g.Log, "s", garden.AllTraces)
			g.Allow(err)
			a, err := live.Digest()
			g.Allow(err)
			b, err := fresh.Digest()
			g.Allow(err)
			garden.Same(t, what+": head", fresh.Head, live.Head)
			garden.Same(t, what+": digest", b, a)
		}
		large := event.New(says(event.Text(strings.Repeat("x", 400<<10)))) // is spilled
		retried := []event.Event{event.New(asks("again")), event.New(says(event.Text("done")))}
		before := live.Head
		for _, events := range [][]event.Event{{event.UserMessage("one"), event.AssistantMessage("two")}, {large}, retried, {event.New(event.HeadMove{To: 2})}} {
			head, err := live.Append(ctx, events...)
			g.Allow(err)
			garden.Same(t, "head", live.Head, head)
			same("appended")
		}
		if head, err := live.Append(ctx); err != nil || head != live.Head {
			t.Errorf("no events: %v, %v", head, err)
		}
		do(g, asks("another writer"))
		if _, err := live.Append(ctx, event.UserMessage("too late")); !errors.Is(err, eventlog.ErrConflict) || !errors.Is(live.Follow(ctx), nil) {
			t.Errorf("append after another writer: %v", err)
		}
		same("followed")
		old, err := projection.Resume(garden.Bg, g.Log, "s", garden.AllTraces)
		g.Allow(err)
		_, err = live.Append(ctx, retried[0]) // its id is stored already
		if !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("the same event twice: %v", err)
		}
		again := event.New(asks("retry"))
		if _, err := live.Append(ctx, again); err != nil {
			t.Fatal(err)
		}
		head, err := old.Append(ctx, again) // stored already, after the same head
		if err != nil || head != live.Head || old.Head != live.Head || before == head {
			t.Errorf("retry: %v, %v", head, err)
		}
	})
}

// A Live that follows the events of any writer has the states of a load, and gives
// its policies the same opportunities. Only after a rewind it also knows a body that is not
// on the path.
func TestALiveEqualsALoad(t *testing.T) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				g := garden.Plant(r, log, nil)
				var told projection.Opportunity
				live := resume(g, "s0", projection.LiveOptions{Policy: func(o *projection.Opportunity) bool {
					told = *o
					told.Live, told.Age = nil, 0
					return false
				}})
				for _, d := range garden.DrawScript.Draw(r, "script") {
					d.B = d.B / len(garden.Traces) * len(garden.Traces) // all snapshots are of one set
					if g.Run(d); d.A%2 == 0 {
						continue
					}
					g.Allow(live.Follow(garden.Bg))
					want, _ := g.Load("s0", projection.Options{})
					garden.Same(r, "states", want, garden.ViewOf(&live.Loaded))
					_, _, err := live.Snapshot(garden.Bg, projection.Request{})
					g.Allow(err)
					fresh := opportunities(g, func(o projection.LiveOptions) *projection.Live { return resume(g, "s0", o) })
					garden.Same(r, "newest body of a load", [2]int64{fresh.AnyBytes, fresh.AnyBodyBytes}, [2]int64{fresh.Bytes, fresh.BodyBytes})
					if slices.ContainsFunc(g.Lineage("s0"), func(e event.Event) bool { return e.Type.Name() == event.HeadMoved }) {
						told.AnyBytes, told.AnyBodyBytes = fresh.AnyBytes, fresh.AnyBodyBytes
					}
					garden.Same(r, "opportunity", fresh, told)
				}
			})
		})
	}
}

func TestFoldAcceptsTheNextEventOnly(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 2)
		bulk(g, "other", 3)
		live := resume(g, "s", projection.LiveOptions{})
		bulk(g, "s", 2)
		for what, e := range map[string]event.Event{
			"a gap": g.Lineage("s")[3], "a repeat": g.Lineage("s")[1], "another session": g.Lineage("other")[2],
		} {
			if err := live.Fold(garden.Bg, e); !errors.Is(err, projection.ErrNotNext) || live.Head.Seq != 2 {
				t.Errorf("%s: %v, head %d", what, err, live.Head.Seq)
			}
		}
		g.Allow(live.Fold(garden.Bg, g.Lineage("s")[2:]...))
		want, _ := g.Load("s", projection.Options{})
		garden.Same(t, "states", want, garden.ViewOf(&live.Loaded))
	})
}

// A snapshot is a conflict if another writer appended since, and no event is written.
func TestASnapshotOfAnOldHeadIsAConflict(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 2)
		live := resume(g, "s", projection.LiveOptions{})
		bulk(g, "s", 1)
		before := g.Head("s")
		_, taken, err := live.Snapshot(garden.Bg, projection.Request{Body: true})
		if taken || !errors.Is(err, eventlog.ErrConflict) || g.Head("s") != before {
			t.Fatalf("taken %v, %v; the head is %v, was %v", taken, err, g.Head("s"), before)
		}
		g.Allow(live.Follow(garden.Bg))
		s, taken, err := live.Snapshot(garden.Bg, projection.Request{Body: true, ID: "reserved", Durable: true})
		if !taken || err != nil || s.Seq != before.Seq || s.SnapshotID != "reserved" || s.Index != 0 {
			t.Fatalf("taken %v, %v: %+v", taken, err, s)
		}
		if live.Head != g.Head("s") {
			t.Errorf("the Live is at %v, the session at %v", live.Head, g.Head("s"))
		}
	})
}

// A Live and its bodies have no erased content.
func TestALiveDropsRedactedContent(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 3)
		live := resume(g, "s", projection.LiveOptions{})
		_, err := erase.Redact(garden.Bg, g.Log, "s", []int64{2}, erase.RedactOptions{Reason: "test"})
		g.Allow(err)
		g.Allow(live.Follow(garden.Bg))
		garden.Same(t, "states", g.Expected(4, g.Lineage("s")), garden.ViewOf(&live.Loaded))
	})
}

// A Live continues after an error from its last head.
func TestALiveContinuesAfterAnError(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 3)
		live := resume(g, "s", projection.LiveOptions{})
		g.Append("s", event.New(event.HeadMove{To: 1}))
		moved := g.Lineage("s")[3]
		bulk(g, "s", 1)
		ctx, cancel := context.WithCancel(garden.Bg)
		cancel()
		if err := live.Fold(ctx, moved); !errors.Is(err, context.Canceled) || live.Head.Seq != 3 {
			t.Fatalf("%v, head %d", err, live.Head.Seq)
		}
		g.Allow(live.Follow(garden.Bg))
		want, _ := g.Load("s", projection.Options{})
		garden.Same(t, "states", want, garden.ViewOf(&live.Loaded))
	})
}

// A fold error is the same in each call, and a Live folds no part of the event.
func TestAnEventThatCannotBeFoldedIsLocated(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		broken, refuse := errors.New("broken"), true
		p := projection.Projection[garden.Trace]{Name: "test:picky", Version: 1, Apply: func(s *garden.Trace, e *event.Event) error {
			s.Seen = append(s.Seen, fmt.Sprint(e.Seq))
			if e.Seq == 3 && refuse {
				return broken
			}
			return nil
		}}
		bulk(g, "s", 2)
		live, err := projection.Resume(garden.Bg, g.Log, "s", projection.Of("", p))
		g.Allow(err)
		bulk(g, "s", 2)
		for what, err := range map[string]error{
			"live":   live.Follow(garden.Bg),
			"load":   second(projection.Load(garden.Bg, g.Log, "s", p)),
			"replay": second(projection.Load(garden.Bg, g.Log, "s", p, projection.Options{Replay: true})),
		} {
			var located *projection.FoldError
			if !errors.Is(err, broken) || !errors.As(err, &located) || located.Seq != 3 || located.Projection != "test:picky" {
				t.Errorf("%s: %v", what, err)
			}
		}
		refuse = false
		g.Allow(live.Follow(garden.Bg))
		state, _ := projection.State(live, p)
		garden.Same(t, "states", []string{"1", "2", "3", "4"}, state.Seen)
	})
}

func second[A any](_ A, err error) error { return err }

// TakeTail returns the events that the Live has read, up to its head and once. After a
// rewind it returns the events without a gap that end with the head.
func TestTakeTail(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, asks("one"), asks("two"))
		live := resume(g, "s", projection.LiveOptions{KeepTail: true})
		if _, err := live.Append(garden.Bg, event.UserMessage("three"), event.New(event.HeadMove{To: 2}), event.UserMessage("four")); err != nil {
			t.Fatal(err)
		}
		tail := live.TakeTail()
		for i, e := range tail {
			stored, err := g.Log.Event(garden.Bg, "s", live.Head.Seq-int64(len(tail)-1-i))
			g.Allow(err)
			garden.Same(t, "the hash of an event", stored.Hash(), e.Hash())
		}
		if _, err := live.Append(garden.Bg, event.UserMessage("five")); err != nil {
			t.Fatal(err)
		}
		if again := live.TakeTail(); len(tail) == 0 || len(again) > 0 {
			t.Fatalf("%d events, then %d", len(tail), len(again))
		}
	})
}

// A long tail is decoded in a goroutine too. The states and the events stay the same.
func TestALongTailGivesTheStatesOfAReplay(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		turn := do(g, event.TurnStart{Index: 1})
		var events []event.Event
		for i := range 500 {
			ordinal := strconv.Itoa(i)
			events = append(events,
				event.New(event.EffectIntent{Key: "key " + ordinal, TurnID: turn, Ordinal: ordinal, Class: event.EffectPure, Name: "step"}),
				event.New(event.EffectCompletion{Key: "key " + ordinal, TurnID: turn, Ordinal: ordinal, Result: jsontext.Value(ordinal)}))
		}
		g.Append("s", events[:len(events)-1]...)
		live, err := projection.Resume(garden.Bg, g.Log, "s", projection.Session(), projection.LiveOptions{KeepTail: true})
		g.Allow(err)
		want, err := projection.LoadSet(garden.Bg, g.Log, "s", projection.Session(), projection.Options{Replay: true})
		g.Allow(err)
		for _, part := range []string{"control", "usage"} {
			a, err1 := projection.StateJSON(want, part)
			b, err2 := projection.StateJSON(live, part)
			g.Allow(errors.Join(err1, err2))
			garden.Same(t, part, string(a), string(b))
		}
		tail := live.TakeTail()
		for i, e := range tail {
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d is at place %d", e.Seq, i+1)
			}
		}
		garden.Same(t, "events", int(live.Head.Seq), len(tail))
	})
}

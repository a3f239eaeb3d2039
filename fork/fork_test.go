package fork_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/upkeep/erase"
)

// where resolves a point to its seq.
func (t *bench) where(session string, p fork.Point) int64 {
	t.Helper()
	e, err := fork.Resolve(t.ctx, t.log, session, p)
	t.must(err)
	return e.Seq
}

func (t *bench) fork(id, parent string, p fork.Point) fork.Session {
	t.Helper()
	child, err := fork.At(t.ctx, t.log, parent, p, fork.Options{ID: id, Force: true})
	t.must(err)
	return child
}

// nothing checks that a fork was refused for a reason and left no session of that
// id.
func (t *bench) nothing(id string, want, err error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	if _, err := t.log.Head(t.ctx, id); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("session %q: %v", id, err)
	}
}

func TestPointsOfTurns(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 3) // 1–6, 7–12, 13–18
		for _, c := range []struct {
			p    fork.Point
			want int64
		}{
			{fork.Head(), 18}, {fork.AtSeq(0), 0}, {fork.AtSeq(5), 5},
			{fork.BeforeTurn(0), 0}, {fork.AtTurn(0), 6}, {fork.BeforeTurn(1), 6}, {fork.AtTurn(1), 12},
			{fork.BeforeTurn(2), 12}, {fork.AtTurn(2), 18},
		} {
			if got := t.where("a", c.p); got != c.want {
				t.Errorf("%v is %d, want %d", c.p, got, c.want)
			}
		}
		for _, c := range []struct {
			p    fork.Point
			want error
		}{
			{fork.AtTurn(3), fork.Error("no_turn")}, {fork.BeforeTurn(-1), fork.Error("no_turn")}, {fork.AtSeq(19), fork.Error("past_head")},
			{fork.AtSeq(-1), eventlog.ErrEventNotFound}, {fork.AtEvent(event.NewID()), eventlog.ErrEventNotFound},
			{fork.AtSnapshot("none"), fork.Error("no_snapshot")},
		} {
			if _, err := fork.Resolve(t.ctx, t.log, "a", c.p); !errors.Is(err, c.want) {
				t.Errorf("%v: %v, want %v", c.p, err, c.want)
			}
			if _, err := fork.Resolve(t.ctx, t.log, "none", c.p); !errors.Is(err, eventlog.ErrNotFound) {
				t.Errorf("%v of a missing session: %v", c.p, err)
			}
		}
	})
}

// Orphaned events have no turns. An unfinished turn ends where the next turn begins.
func TestPointsAfterRewind(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 2) // 1–6, 7–12
		t.add("a", moved(6))
		t.add("a", user("again"), started(1)) // 14, 15
		t.add("a", assistant("crashed"))      // 16
		t.turns("a", 2, 1)                    // 17–22
		for p, want := range map[fork.Point]int64{
			fork.AtTurn(0): 6, fork.BeforeTurn(1): 13, fork.AtTurn(1): 16, fork.BeforeTurn(2): 16, fork.AtTurn(2): 22,
		} {
			if got := t.where("a", p); got != want {
				t.Errorf("%v is %d, want %d", p, got, want)
			}
		}
	})
}

// An import has no turn events: its turns begin with the user's messages.
func TestPointsOfImports(t *testing.T) {
	everywhere(t, func(t *bench) {
		results := event.Message{Role: event.User, Parts: []event.Part{
			{Type: event.ToolResultPart, CallID: "c", Content: []event.Part{{Type: event.TextPart, Text: "found"}}}}}
		t.each("a", user("one"), user("and more"), calls("c"), event.New(results), assistant("done")) // 1–5
		t.each("a", user("two"), assistant("well"), user("three"))                                    // 6–8
		for p, want := range map[fork.Point]int64{
			fork.BeforeTurn(0): 0, fork.AtTurn(0): 5, fork.BeforeTurn(1): 5, fork.AtTurn(1): 7, fork.AtTurn(2): 8,
		} {
			if got := t.where("a", p); got != want {
				t.Errorf("%v is %d, want %d", p, got, want)
			}
		}
		_, err := fork.Resolve(t.ctx, t.log, "a", fork.AtTurn(3))
		t.nothing("b", fork.Error("no_turn"), err)
		_, err = fork.At(t.ctx, t.log, "a", fork.AtSeq(3), fork.Options{ID: "b"})
		t.nothing("b", fork.Error("open_turn"), err)
		for _, seq := range []int64{2, 4, 5, 6, 8} {
			_, err := fork.At(t.ctx, t.log, "a", fork.AtSeq(seq))
			t.must(err)
		}
	})
}

func TestPointOfASnapshot(t *testing.T) {
	everywhere(t, func(t *bench) {
		snapshot := event.New(event.Snapshot{Projection: "p", SnapshotID: "s1", Seq: 1})
		start := started(0)
		t.add("a", user("one"), start)
		t.add("a", snapshot, completed(start)) // 3, 4
		t.add("a", user("two"))
		if got := t.where("a", fork.AtSnapshot("s1")); got != 4 {
			t.Errorf("the snapshot is at %d", got)
		}
		if got := t.where("a", fork.AtEvent(snapshot.ID)); got != 3 {
			t.Errorf("its event is at %d", got)
		}
		_, err := erase.Redact(t.ctx, t.log, "a", []int64{3}, erase.RedactOptions{Reason: "test"})
		t.must(err)
		if got := t.where("a", fork.AtSnapshot("s1")); got != 4 {
			t.Errorf("the redacted snapshot is at %d", got)
		}
	})
}

func TestFork(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 2)
		child, err := fork.At(t.ctx, t.log, "a", fork.AtTurn(0), fork.Options{ID: "b", Label: "retry", Reason: "wrong",
			Metadata: map[string]any{"by": "me"}})
		t.must(err)
		if child.ID != "b" || child.Parent != "a" || child.Seq != 6 || child.Head.Seq != 7 {
			t.Errorf("child is %+v", child)
		}
		e, err := t.log.Event(t.ctx, "b", 7)
		t.must(err)
		f, _, err := event.Decode[event.Fork](&e)
		t.must(err)
		if by, _ := e.MetadataValue("by"); f.Label != "retry" || f.Reason != "wrong" || string(by) != `"me"` {
			t.Errorf("session_forked says %+v, metadata %s", f, e.Metadata)
		}
		t.turns("b", 1, 1)
		t.turns("a", 2, 1)
		want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
		if diff := cmp.Diff(want, t.path("b")); diff != "" {
			t.Error(diff)
		}
		t.sound("b")
		minted, err := fork.At(t.ctx, t.log, "b", fork.AtSeq(0), fork.Options{NewID: func() string { return "c" }})
		t.must(err)
		if minted.ID != "c" || minted.Head.Seq != 1 {
			t.Errorf("the fork of nothing is %+v", minted)
		}
	})
}

func TestForkRefused(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1) // 1–6
		t.add("a", user("two"), started(1))
		t.add("a", calls("x")) // 9
		at := func(p fork.Point) error {
			_, err := fork.At(t.ctx, t.log, "a", p, fork.Options{ID: "b"})
			return err
		}
		for seq, want := range map[int64]error{1: fork.Error("inside_append"), 5: fork.Error("inside_append"), 7: event.ErrInvalidTree,
			2: fork.Error("open_turn"), 3: fork.Error("open_turn"), 4: fork.Error("open_turn"), 8: fork.Error("open_turn"), 9: fork.Error("open_turn"),
			10: fork.Error("past_head"), -1: eventlog.ErrEventNotFound} {
			t.nothing("b", want, at(fork.AtSeq(seq)))
		}
		t.nothing("b", fork.Error("open_turn"), at(fork.Head()))
		_, err := fork.At(t.ctx, t.log, "none", fork.Head(), fork.Options{ID: "b"})
		t.nothing("b", eventlog.ErrNotFound, err)
		_, err = fork.At(t.ctx, t.log, "a", fork.AtSeq(6), fork.Options{ID: "a"})
		if !errors.Is(err, eventlog.ErrExists) && !errors.Is(err, event.ErrInvalidTree) {
			t.Errorf("onto itself: %v", err)
		}
		_, err = fork.At(t.ctx, t.log, "a", fork.AtSeq(6), fork.Options{ID: "a\n"})
		t.nothing("b", event.ErrInvalidSession, err)
		t.must(at(fork.AtSeq(6)))
		if err := at(fork.AtSeq(6)); !errors.Is(err, eventlog.ErrExists) {
			t.Errorf("onto an existing session: %v", err)
		}
		if head, err := t.log.Head(t.ctx, "b"); err != nil || head.Seq != 7 {
			t.Errorf("which is then at %v, %v", head, err)
		}
		t.fork("forced", "a", fork.AtSeq(9))
		t.add("forced", result("x"))
		_, err = fork.At(t.ctx, t.log, "a", fork.AtSeq(1), fork.Options{ID: "d", Force: true})
		t.nothing("d", fork.Error("inside_append"), err)
	})
}

// A hibernating turn may be forked; once it is resumed, not.
func TestForkOfAHibernatedTurn(t *testing.T) {
	everywhere(t, func(t *bench) {
		start := started(0)
		cursor := event.Cursor{ID: "k", Kind: "review"}
		t.add("a", user("one"), start)
		t.add("a", calls("x"))
		t.add("a", event.New(event.TurnHibernation{TurnID: start.ID, Cursor: cursor})) // 4
		t.add("a", event.New(event.TurnResumption{TurnID: start.ID, CursorID: "k"}))
		t.fork("f", "a", fork.AtSeq(4))
		_, err := fork.At(t.ctx, t.log, "a", fork.AtSeq(4), fork.Options{ID: "b"})
		t.must(err)
		_, err = fork.At(t.ctx, t.log, "a", fork.AtSeq(5), fork.Options{ID: "c"})
		t.nothing("c", fork.Error("open_turn"), err)
		_, err = fork.At(t.ctx, t.log, "a", fork.AtSeq(3), fork.Options{ID: "c"})
		t.nothing("c", fork.Error("open_turn"), err)
		_, err = fork.At(t.ctx, t.log, "f", fork.Head(), fork.Options{ID: "g"})
		t.must(err)
	})
}

// A long turn with user messages in it is open too.
func TestForkOfALongTurn(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1)
		t.add("a", started(1))
		t.add("a", user("go"))
		for i := range 50 {
			t.each("a", calls(fmt.Sprint(i)), result(fmt.Sprint(i)))
			if i == 5 {
				t.add("a", assistant("so far"))
				t.add("a", user("go on"))
			}
		}
		_, err := fork.At(t.ctx, t.log, "a", fork.Head(), fork.Options{ID: "b"})
		t.nothing("b", fork.Error("open_turn"), err)
	})
}

// Forking reads as much of a long session as of a short one.
func TestForkReadsLittle(t *testing.T) {
	for name, fill := range map[string]func(t *bench, session string, n int){
		"turns": func(t *bench, session string, n int) { t.turns(session, 0, n) },
		"import": func(t *bench, session string, n int) {
			for range n {
				t.each(session, user("q"), calls("c"), result("c"), assistant("a"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *bench) {
				fill(t, "short", 30)
				fill(t, "long", 300)
				cost := func(session string, p fork.Point) (events int64) {
					_, events = t.store.count(func() {
						_, err := fork.At(t.ctx, t.log, session, p)
						t.must(err)
					})
					return events
				}
				if short, long := cost("short", fork.Head()), cost("long", fork.Head()); long > short {
					t.Errorf("a fork at the head reads %d events of a short session, %d of a long one", short, long)
				}
				if short, long := cost("short", fork.AtSeq(96)), cost("long", fork.AtSeq(960)); long > short {
					t.Errorf("a fork at a seq reads %d events of a short session, %d of a long one", short, long)
				}
			})
		})
	}
}

func TestForksAtOnce(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 2)
		var group sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		for i := range 16 {
			group.Go(func() {
				_, err := fork.At(t.ctx, t.log, "a", fork.AtTurn(i%2), fork.Options{ID: fmt.Sprint("f", i)})
				if err != nil {
					t.Error(err)
				}
				_, err = fork.At(t.ctx, t.log, "a", fork.Head(), fork.Options{ID: "same"})
				if errors.Is(err, eventlog.ErrExists) {
					err = nil
					mu.Lock()
					taken++
					mu.Unlock()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if taken != 15 {
			t.Errorf("15 of 16 find the id taken, not %d", taken)
		}
		children := idsOf(t.node("a").Forks())
		if len(children) != 17 {
			t.Errorf("the forks are %q", children)
		}
		for _, child := range children {
			t.sound(child)
		}
	})
}

// Of a fork and a concurrent removal one is refused: no fork loses its parent.
func TestForkWhileItsParentIsRemoved(t *testing.T) {
	everywhere(t, func(t *bench) {
		for i := range 20 {
			parent, child := fmt.Sprint("p", i), fmt.Sprint("f", i)
			t.turns(parent, 0, 1)
			var group sync.WaitGroup
			var forked, removed error
			group.Go(func() { _, forked = fork.At(t.ctx, t.log, parent, fork.Head(), fork.Options{ID: child}) })
			group.Go(func() { removed = erase.Remove(t.ctx, t.log, parent) })
			group.Wait()
			switch {
			case forked == nil && errors.Is(removed, eventlog.ErrInUse):
				t.sound(child)
			case removed == nil:
				t.nothing(child, eventlog.ErrNotFound, forked)
			default:
				t.Errorf("forked: %v; removed: %v", forked, removed)
			}
		}
	})
}

// A turn ends with the first turn_completed that names it, or no turn.
func TestEndOfATurn(t *testing.T) {
	everywhere(t, func(t *bench) {
		one, two := started(0), started(1)
		end := func(turn event.Event) event.Event {
			return event.New(event.TurnCompletion{TurnID: turn.ID, Status: event.TurnStatusCompleted})
		}
		t.add("a", one)                                                             // 1
		t.add("a", end(one))                                                        // 2
		t.add("a", end(one))                                                        // 3: void
		t.add("a", two)                                                             // 4
		t.add("a", end(one))                                                        // 5: void
		t.add("a", user("more"))                                                    // 6
		t.add("a", event.New(event.TurnCompletion{Status: event.TurnStatusFailed})) // 7
		for n, want := range []int64{2, 7} {
			if got := t.where("a", fork.AtTurn(n)); got != want {
				t.Errorf("turn %d ends at %d, want %d", n, got, want)
			}
		}
	})
}

// In a fork an abort of the parent is void, so the turn would be open there.
func TestForkOfAnAbortedTurn(t *testing.T) {
	everywhere(t, func(t *bench) {
		turn := started(0)
		t.add("a", turn, event.New(event.Abort{TurnID: turn.ID}))
		_, err := fork.At(t.ctx, t.log, "a", fork.Head(), fork.Options{ID: "b"})
		t.nothing("b", fork.Error("open_turn"), err)
		t.add("a", event.New(event.TurnCompletion{TurnID: turn.ID, Status: event.TurnStatusAborted}))
		_, err = fork.At(t.ctx, t.log, "a", fork.Head(), fork.Options{ID: "b"})
		t.must(err)
	})
}

// A fork reads a bounded number of events to find an open turn, whatever events the
// parent ends with.
func TestForksOfLongParentsReadFewEvents(t *testing.T) {
	everywhere(t, func(t *bench) {
		for name, e := range map[string]func() event.Event{
			"user messages": func() event.Event { return user("and") },
			"answers":       func() event.Event { return assistant("well") },
			"states": func() event.Event {
				return event.New(event.CustomPatch{Name: "s", Patch: []byte(`[{"op":"add","path":"","value":1}]`)})
			},
		} {
			read := map[int]int64{}
			for _, n := range []int{1500, 6000} {
				parent := fmt.Sprint(name, " ", n)
				t.add(parent, user("go"), calls("c"), result("c"))
				events := make([]event.Event, n)
				for i := range events {
					events[i] = e()
				}
				t.add(parent, events...)
				_, read[n] = t.store.count(func() {
					_, err := fork.At(t.ctx, t.log, parent, fork.Head(), fork.Options{ID: parent + " fork"})
					t.must(err)
				})
			}
			if read[6000] != read[1500] || read[1500] > 1100 {
				t.Errorf("%s: a fork reads %v events", name, read)
			}
		}
	})
}

// A call opens a turn until 16 user messages follow it.
func TestACallBeforeManyUserMessagesIsInterrupted(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.add("a", user("go"), calls("c"))
		for range 15 {
			t.add("a", user("and"))
		}
		_, err := fork.At(t.ctx, t.log, "a", fork.Head(), fork.Options{ID: "b"})
		t.nothing("b", fork.Error("open_turn"), err)
		t.add("a", user("and"))
		_, err = fork.At(t.ctx, t.log, "a", fork.Head(), fork.Options{ID: "b"})
		t.must(err)
	})
}

// A fork of a fork of a fork reads a bounded number of events.
func TestForksOfDeepForksReadFewEvents(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.add("0", user("go"), calls("c"), result("c"))
		read := map[int]int64{}
		for i := range 200 {
			_, read[i] = t.store.count(func() {
				_, err := fork.At(t.ctx, t.log, fmt.Sprint(i), fork.Head(), fork.Options{ID: fmt.Sprint(i + 1)})
				t.must(err)
			})
		}
		if read[199] != read[30] {
			t.Errorf("a fork reads %d events, a deeper one %d", read[30], read[199])
		}
	})
}

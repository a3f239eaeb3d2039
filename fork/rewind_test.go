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
)

func (t *bench) rewind(session string, p fork.Point) fork.Moved {
	t.Helper()
	moved, err := fork.Rewind(t.ctx, t.log, session, p, fork.Options{Label: p.String(), Reason: "test"})
	t.must(err)
	return moved
}

// told is the active path without its head_moved events.
func (t *bench) told(session string) (seqs []int64) {
	t.Helper()
	for e, err := range t.log.Read(t.ctx, session, eventlog.All().OnPath()) {
		t.must(err)
		if e.Type != event.HeadMoved {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func (t *bench) tells(session string, want ...int64) {
	t.Helper()
	if diff := cmp.Diff(want, t.told(session)); diff != "" {
		t.Errorf("the path of %q (-want +got):\n%s", session, diff)
	}
}

func TestRewindAndRecover(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("a", user("1"), user("2"), user("3"))
		moved := t.rewind("a", fork.AtSeq(1)) // 4
		if moved.From != 3 || moved.To != 1 || moved.Head.Seq != 4 {
			t.Errorf("moved: %+v", moved)
		}
		t.tells("a", 1)
		t.each("a", user("5"), user("6"))
		recovered := func() int64 {
			t.Helper()
			moved, err := fork.Recover(t.ctx, t.log, "a")
			t.must(err)
			return moved.To
		}
		if to := recovered(); to != 3 { // 7
			t.Errorf("recovered %d", to)
		}
		t.tells("a", 1, 2, 3)
		if to := recovered(); to != 6 { // 8
			t.Errorf("recovered the other %d", to)
		}
		t.tells("a", 1, 5, 6)
		t.rewind("a", fork.AtSeq(0)) // 9
		t.tells("a")
		_, err := fork.Rewind(t.ctx, t.log, "a", fork.AtSeq(2), fork.Options{Force: true})
		t.must(err)
		t.tells("a", 1, 2)
		t.sound("a")
	})
}

// A rewind that expects a head fails at another one, and changes nothing.
func TestRewindAtAHead(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("a", user("1"), user("2"))
		old, err := t.log.Head(t.ctx, "a")
		t.must(err)
		t.add("a", user("3"))
		head, err := t.log.Head(t.ctx, "a")
		t.must(err)
		var conflict *eventlog.ConflictError
		if _, err := fork.Rewind(t.ctx, t.log, "a", fork.AtSeq(1), fork.Options{Head: old}); !errors.As(err, &conflict) || conflict.Actual != head {
			t.Errorf("rewind at an old head: %v", err)
		}
		t.tells("a", 1, 2, 3)
		if _, err := fork.Rewind(t.ctx, t.log, "a", fork.AtSeq(1), fork.Options{Head: head}); err != nil {
			t.Error(err)
		}
		t.tells("a", 1)
	})
}

func TestRewindOfAFork(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("a", user("1"), user("2"), user("3"))
		t.fork("b", "a", fork.Head())
		t.add("b", user("5"))
		t.rewind("b", fork.AtSeq(2))
		t.tells("b", 1, 2)
		t.tells("a", 1, 2, 3)
		_, err := fork.Recover(t.ctx, t.log, "b")
		t.must(err)
		t.tells("b", 1, 2, 3, 4, 5)
		if _, err := fork.Recover(t.ctx, t.log, "a"); !errors.Is(err, fork.Error("nothing_orphaned")) {
			t.Errorf("recovered a: %v", err)
		}
	})
}

func TestMovesRefused(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("a", user("1"), user("2"))
		t.add("a", user("3"), user("4"))
		refused := func(want, err error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		rewind := func(p fork.Point) error {
			_, err := fork.Rewind(t.ctx, t.log, "a", p)
			return err
		}
		recover := func() error {
			_, err := fork.Recover(t.ctx, t.log, "a")
			return err
		}
		refused(fork.Error("no_move"), rewind(fork.Head()))
		refused(fork.Error("no_move"), rewind(fork.AtSeq(4)))
		refused(fork.Error("inside_append"), rewind(fork.AtSeq(3)))
		refused(fork.Error("past_head"), rewind(fork.AtSeq(5)))
		refused(fork.Error("nothing_orphaned"), recover())
		if head, err := t.log.Head(t.ctx, "a"); err != nil || head.Seq != 4 {
			t.Errorf("a is at %v, %v", head, err)
		}
		t.must(rewind(fork.AtSeq(2))) // 5
		refused(fork.Error("no_move"), rewind(fork.AtSeq(2)))
		refused(fork.Error("no_move"), rewind(fork.Head()))
		t.must(recover()) // 6
		refused(fork.Error("nothing_orphaned"), recover())
		refused(fork.Error("no_move"), rewind(fork.AtSeq(4)))
		t.must(rewind(fork.AtSeq(0))) // 7
		refused(fork.Error("no_move"), rewind(fork.AtSeq(0)))
		// A rewind needs an event that a rewind can undo.
		t.must(rewind(fork.AtSeq(4))) // 8
		t.add("a", event.New(event.Session{Updated: true, Title: "t"}))
		refused(fork.Error("no_move"), rewind(fork.AtSeq(4)))
	})
}

// Events of a failed turn can be recovered, even if the move is in their append.
func TestRecoverOfAFailedTurn(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1)
		start := started(1)
		t.add("a", user("two"), start) // 7, 8
		failed := event.New(event.TurnCompletion{TurnID: start.ID, Status: event.TurnStatusFailed})
		t.add("a", failed, moved(6)) // 9, 10
		t.tells("a", 1, 2, 3, 4, 5, 6)
		t.must(func() error { _, err := fork.At(t.ctx, t.log, "a", fork.Head()); return err }())
		m, err := fork.Recover(t.ctx, t.log, "a")
		t.must(err)
		if m.To != 9 {
			t.Errorf("recovered %d", m.To)
		}
		t.tells("a", 1, 2, 3, 4, 5, 6, 7, 8, 9)
	})
}

// Concurrent rewinds and appends take effect one after the other.
func TestRewindWhileOthersAppend(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.add("a", user("first"))
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for range 10 {
					if _, err := t.log.Append(t.ctx, "a", eventlog.Any(), user(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		moves := 0
		for range 10 {
			moved, err := fork.Rewind(t.ctx, t.log, "a", fork.AtSeq(1))
			if errors.Is(err, fork.Error("no_move")) {
				continue
			}
			t.must(err)
			moves++
			if moved.Head.Seq != moved.From+1 {
				t.Errorf("moved from %d by event %d", moved.From, moved.Head.Seq)
			}
		}
		group.Wait()
		head, err := t.log.Head(t.ctx, "a")
		t.must(err)
		if head.Seq != int64(41+moves) {
			t.Errorf("after %d moves the head is %d", moves, head.Seq)
		}
		t.sound("a")
	})
}

func TestBranches(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("a", user("1"), user("2"), user("3"))
		t.rewind("a", fork.AtSeq(1))              // 4
		t.each("a", user("5"), user("6"))         //
		t.rewind("a", fork.AtSeq(5))              // 7
		t.each("a", user("8"), user("9"))         //
		t.rewind("a", fork.AtSeq(3))              // 10
		t.add("a", assistant("11"))               //
		t.fork("b", "a", fork.Head())             // 12
		t.rewind("b", fork.AtSeq(8))              // 13
		t.add("b", assistant("14"))               //
		t.rewind("a", fork.BeforeTurn(0))         // 12
		_, err := fork.Recover(t.ctx, t.log, "a") // 13
		t.must(err)
		branches := func(session string) (got []fork.Branch) {
			t.Helper()
			got, err := fork.Branches(t.ctx, t.log, session, false)
			t.must(err)
			for i := range got {
				if got[i].Active == got[i].Time.IsZero() {
					got[i].Time = got[0].Time
				}
			}
			return got
		}
		label := func(seq int64) string { return fork.AtSeq(seq).String() }
		want := []fork.Branch{
			{Active: true, Tip: 13, Own: []event.Stretch{{From: 1, To: 3}, {From: 10, To: 11}, {From: 13, To: 13}}, Counted: 4},
			{Tip: 9, Base: 1, Own: []event.Stretch{{From: 4, To: 5}, {From: 7, To: 9}}, Counted: 3, Left: 10, Label: label(3), Reason: "test"},
			{Tip: 6, Base: 5, Own: []event.Stretch{{From: 6, To: 6}}, Counted: 1, Left: 7, Label: label(5), Reason: "test"},
		}
		if diff := cmp.Diff(want, branches("a")); diff != "" {
			t.Errorf("branches of a:\n%s", diff)
		}
		want = []fork.Branch{
			{Active: true, Tip: 14, Own: []event.Stretch{{From: 1, To: 1}, {From: 4, To: 5}, {From: 7, To: 8}, {From: 13, To: 14}}, Counted: 4},
			{Tip: 12, Base: 1, Own: []event.Stretch{{From: 2, To: 3}, {From: 10, To: 12}}, Counted: 3, Left: 13, Label: label(8), Reason: "test"},
			{Tip: 9, Base: 8, Own: []event.Stretch{{From: 9, To: 9}}, Counted: 1, Left: 10, Label: label(3), Reason: "test"},
			{Tip: 6, Base: 5, Own: []event.Stretch{{From: 6, To: 6}}, Counted: 1, Left: 7, Label: label(5), Reason: "test"},
		}
		got := branches("b")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("branches of b:\n%s", diff)
		}
		for session, inherited := range map[string]int{"a": 0, "b": 2} {
			all, err := fork.Branches(t.ctx, t.log, session, false)
			t.must(err)
			all = all[1:]
			own, err := fork.Branches(t.ctx, t.log, session, true)
			t.must(err)
			if diff := cmp.Diff(all[:len(all)-inherited], own); diff != "" {
				t.Errorf("own branches of %s:\n%s", session, diff)
			}
		}
		if !got[1].Orphaned(11) || got[1].Orphaned(4) || got[0].Orphaned(1) {
			t.Error("orphaned is wrong")
		}
	})
}

// The own branches of a fork are those that its own rewinds orphaned. Finding them reads
// the shared events only if a rewind went back to one of them.
func TestOwnBranchesOfAFork(t *testing.T) {
	everywhere(t, func(t *bench) {
		for range 100 {
			t.add("a", user("x"))
		}
		t.rewind("a", fork.AtSeq(50))       // 101
		t.fork("b", "a", fork.Head())       // 102
		t.each("b", user("103"), user("4")) //
		t.rewind("b", fork.AtSeq(103))      // 105
		t.each("b", user("106"))            //
		t.rewind("b", fork.AtSeq(101))      // 107
		own := func() (branches []fork.Branch, events int64) {
			_, events = t.store.count(func() {
				var err error
				branches, err = fork.Branches(t.ctx, t.log, "b", true)
				t.must(err)
			})
			all, err := fork.Branches(t.ctx, t.log, "b", false)
			t.must(err)
			if diff := cmp.Diff(all[1:len(all)-1], branches); diff != "" {
				t.Errorf("own branches:\n%s", diff)
			}
			return branches, events
		}
		if branches, events := own(); len(branches) != 2 || events > 10 {
			t.Errorf("%d own branches, %d events are read", len(branches), events)
		}
		t.rewind("b", fork.AtSeq(20)) // 108
		if branches, events := own(); len(branches) != 3 || events < 100 {
			t.Errorf("after a rewind to a shared event: %d own branches, %d events are read", len(branches), events)
		}
	})
}

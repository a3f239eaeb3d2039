package fork_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

func TestDiff(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.each("a", user("1"), user("2"), user("3"))
		t.fork("b", "a", fork.AtSeq(2)) // 3
		t.add("b", user("b4"))
		t.fork("c", "a", fork.Head()) // 4
		t.add("a", user("a4"))
		t.fork("d", "b", fork.Head())   // 5
		t.fork("e", "b", fork.AtSeq(1)) // 2
		t.fork("f", "a", fork.AtSeq(0)) // 1
		t.rewind("c", fork.AtSeq(1))    // 5
		for _, c := range []struct {
			a, b     fork.Tip
			ancestor fork.Tip
			left     []int64
			right    []int64
		}{
			{fork.Tip{Session: "a"}, fork.Tip{Session: "a"}, fork.Tip{Session: "a", Seq: 4}, nil, nil},
			{fork.Tip{Session: "a", Seq: 2}, fork.Tip{Session: "a"}, fork.Tip{Session: "a", Seq: 2}, nil, []int64{3, 4}},
			{fork.Tip{Session: "a"}, fork.Tip{Session: "b"}, fork.Tip{Session: "a", Seq: 2}, []int64{3, 4}, []int64{3, 4}},
			{fork.Tip{Session: "b"}, fork.Tip{Session: "d"}, fork.Tip{Session: "b", Seq: 4}, nil, []int64{5}},
			{fork.Tip{Session: "d"}, fork.Tip{Session: "a"}, fork.Tip{Session: "a", Seq: 2}, []int64{3, 4, 5}, []int64{3, 4}},
			{fork.Tip{Session: "d"}, fork.Tip{Session: "e"}, fork.Tip{Session: "a", Seq: 1}, []int64{2, 3, 4, 5}, []int64{2}},
			{fork.Tip{Session: "c"}, fork.Tip{Session: "b"}, fork.Tip{Session: "a", Seq: 1}, []int64{5}, []int64{2, 3, 4}},
			{fork.Tip{Session: "c", Seq: 4}, fork.Tip{Session: "c"}, fork.Tip{Session: "a", Seq: 1}, []int64{2, 3, 4}, []int64{5}},
			{fork.Tip{Session: "f"}, fork.Tip{Session: "a"}, fork.Tip{}, []int64{1}, []int64{1, 2, 3, 4}},
		} {
			d, err := fork.Diff(t.ctx, t.log, c.a, c.b)
			t.must(err)
			if d.Ancestor != c.ancestor {
				t.Errorf("%v and %v part at %v, want %v", c.a, c.b, d.Ancestor, c.ancestor)
			}
			for i, side := range []*fork.Side{&d.A, &d.B} {
				if diff := cmp.Diff([][]int64{c.left, c.right}[i], t.seqsOf(side)); diff != "" {
					t.Errorf("%v and %v, side %d:\n%s", c.a, c.b, i, diff)
				}
			}
		}
		t.add("z", user("1"))
		if _, err := fork.Diff(t.ctx, t.log, fork.Tip{Session: "a"}, fork.Tip{Session: "z"}); !errors.Is(err, fork.Error("unrelated")) {
			t.Errorf("a and z: %v", err)
		}
		if _, err := fork.Diff(t.ctx, t.log, fork.Tip{Session: "a", Seq: 9}, fork.Tip{Session: "a"}); !errors.Is(err, eventlog.ErrEventNotFound) {
			t.Errorf("a past its head: %v", err)
		}
	})
}

func (t *bench) seqsOf(side *fork.Side) (seqs []int64) {
	t.Helper()
	for e, err := range side.Events(t.ctx) {
		t.must(err)
		seqs = append(seqs, e.Seq)
	}
	if int64(len(seqs)) != side.Len() {
		t.Errorf("%d events, its length is %d", len(seqs), side.Len())
	}
	return seqs
}

func TestMerge(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1)
		t.fork("b", "a", fork.Head())
		t.fork("c", "b", fork.Head())
		point, err := t.log.Event(t.ctx, "a", 6)
		t.must(err)
		head, err := fork.Merge(t.ctx, t.log, "a", "c", event.Child{Summary: "found it", ArtifactIDs: []string{"x"}, Note: "n", ChildID: "k"})
		t.must(err)
		e, err := t.log.Event(t.ctx, "a", head.Seq)
		t.must(err)
		got, _, err := event.Decode[event.Child](&e)
		t.must(err)
		want := event.Child{State: event.ChildMerged, ChildID: "k", ChildSessionID: "c", ParentEventID: point.ID,
			Mode: event.ChildFork, Summary: "found it", ArtifactIDs: []string{"x"}, Note: "n"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		run := event.Session{Parent: event.SessionParent{SessionID: "a", Seq: 6, EventID: point.ID, CallID: "c0"}}
		t.add("run", event.New(run))
		head, err = fork.Merge(t.ctx, t.log, "a", "run", event.Child{Summary: "ran"})
		t.must(err)
		e, err = t.log.Event(t.ctx, "a", head.Seq)
		t.must(err)
		if got, _, err = event.Decode[event.Child](&e); err != nil || got.Mode != event.ChildFresh || got.CallID != "c0" || got.ChildID != "run" {
			t.Errorf("the run's outcome is %+v, %v", got, err)
		}
		for _, other := range []string{"a", "run"} {
			if _, err := fork.Merge(t.ctx, t.log, "b", other, event.Child{}); !errors.Is(err, fork.Error("unrelated")) {
				t.Errorf("merged %q into b: %v", other, err)
			}
		}
		if after, err := t.log.Head(t.ctx, "b"); err != nil || after.Seq != 7 {
			t.Errorf("b is at %v, %v", after, err)
		}
		t.sound("a")
	})
}

package fork_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// drawn draws a forest, a line each session.
func drawn(f *fork.Forest) string {
	var b strings.Builder
	for depth, n := range f.All() {
		fmt.Fprintf(&b, "%s%s %s", strings.Repeat("  ", depth), n.Kind, n.ID)
		if n.Seq > 0 {
			fmt.Fprintf(&b, " at %d", n.Seq)
		}
		if n.Missing {
			fmt.Fprintf(&b, ", of %s which is gone", n.Parent)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestForest(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 2)
		t.fork("c", "a", fork.AtTurn(0))
		t.fork("b", "a", fork.Head())
		t.fork("d", "b", fork.AtTurn(0)) // what b shares with a
		t.fork("e", "b", fork.Head())
		run := event.Session{Parent: event.SessionParent{SessionID: "a", Seq: 3}}
		t.add("run", event.New(run))
		run.Parent.SessionID = "gone"
		t.add("stray", event.New(run))
		_, err := fork.Copy(t.ctx, t.log, "b", fork.CopyOptions{ID: "copy"})
		t.must(err)
		_, err = fork.At(t.ctx, t.log, "c", fork.Head(), fork.Options{ID: "child", Force: true, Child: event.ForkChild{ChildID: "1"}})
		t.must(err)
		forest, err := fork.Tree(t.ctx, t.log)
		t.must(err)
		want := `root a
  run run at 3
  fork c at 6
    fork child at 7
  fork b at 12
    fork d at 6
    copy copy at 13
    fork e at 13
run stray at 3, of gone which is gone
`
		if diff := cmp.Diff(want, drawn(forest)); diff != "" {
			t.Error(diff)
		}
		for _, c := range []struct {
			name string
			got  []*fork.Node
			want []string
		}{
			{"children of a", forest.Node("a").Forks(), []string{"c", "b"}},
			{"children of e", forest.Node("e").Forks(), nil},
			{"siblings of b", forest.Node("b").Siblings(), []string{"c"}},
			{"siblings of a", forest.Node("a").Siblings(), nil},
			{"leaves of a", forest.Node("a").Leaves(), []string{"c", "d", "e"}},
			{"children of c", forest.Node("c").Forks(), []string{"child"}},
			{"siblings of child", forest.Node("child").Siblings(), nil},
			{"leaves of e", forest.Node("e").Leaves(), []string{"e"}},
			{"who needs b", forest.Node("b").Forks(), []string{"d", "e"}},
		} {
			if diff := cmp.Diff(c.want, idsOf(c.got)); diff != "" {
				t.Errorf("%s:\n%s", c.name, diff)
			}
		}
		line, err := lineage(t.ctx, t.log, "d")
		t.must(err)
		if len(line) != 2 || line[0].Session != "b" || line[0].Through.Seq != 6 || line[1].Session != "a" || line[1].Through.Seq != 6 || line[1].Fork.Seq != 12 {
			t.Errorf("lineage of d is %+v", line)
		}
		line, err = lineage(t.ctx, t.log, "e")
		if err != nil || len(line) == 0 || line[0].Session != "b" || line[0].Through.Seq != 13 {
			t.Errorf("parent of e is in %+v, %v", line, err)
		}
		if line, err := lineage(t.ctx, t.log, "a"); len(line) > 0 || err != nil {
			t.Errorf("a has a parent: %v, %v", line, err)
		}
	})
}

func TestKinOfAMissingSession(t *testing.T) {
	everywhere(t, func(t *bench) {
		_, lineage := lineage(t.ctx, t.log, "x")
		_, branches := fork.Branches(t.ctx, t.log, "x", false)
		_, diff := fork.Diff(t.ctx, t.log, fork.Tip{Session: "x"}, fork.Tip{Session: "x"})
		_, rewind := fork.Rewind(t.ctx, t.log, "x", fork.Head())
		_, recover := fork.Recover(t.ctx, t.log, "x")
		_, copied := fork.Copy(t.ctx, t.log, "x", fork.CopyOptions{ID: "y"})
		_, merged := fork.Merge(t.ctx, t.log, "x", "y", event.Child{})
		for i, err := range []error{lineage, branches, diff, rewind, recover, copied, merged,
			erase.Remove(t.ctx, t.log, "x")} {
			if !errors.Is(err, eventlog.ErrNotFound) {
				t.Errorf("%d: %v", i, err)
			}
		}
	})
}

func TestRemoveIsRefusedWhileForksNeedIt(t *testing.T) {
	everywhere(t, func(t *bench) {
		t.turns("a", 0, 1)
		t.fork("b", "a", fork.Head())
		if err := erase.Remove(t.ctx, t.log, "a"); !errors.Is(err, eventlog.ErrInUse) || !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("removed a: %v", err)
		}
		_, err := fork.Copy(t.ctx, t.log, "b", fork.CopyOptions{ID: "c"})
		t.must(err)
		t.must(erase.Remove(t.ctx, t.log, "b"))
		t.must(erase.Remove(t.ctx, t.log, "a"))
		t.sound("c")
	})
}

// A deep chain of forks costs no more than its events: reading its end does not read
// its beginning, and reading all of it reads each event once.
func TestDeepForks(t *testing.T) {
	everywhere(t, func(t *bench) {
		depth := testsize.Pick(100, 200, 1000)
		bound := int64(3 * depth)
		half := depth / 2
		name := func(i int) string { return fmt.Sprint("s", i) }
		t.add(name(0), user("root"))
		for i := 1; i <= depth; i++ {
			t.fork(name(i), name(i-1), fork.Head())
		}
		last := name(depth)
		within := func(what string, most int64, fn func()) {
			t.Helper()
			if reads, events := t.store.count(fn); reads > most || events > most {
				t.Errorf("%s makes %d reads of %d events, more than %d", what, reads, events, most)
			}
		}
		within("a fork", 20, func() { t.fork("more", last, fork.Head()) })
		within("the last ten", 40, func() {
			for _, err := range t.log.Read(t.ctx, last, eventlog.Last(10)) {
				t.must(err)
			}
		})
		within("ten events back", 40, func() {
			n := 0
			for _, err := range t.log.Read(t.ctx, last, eventlog.All().Backward()) {
				t.must(err)
				if n++; n == 10 {
					break
				}
			}
		})
		within("all of it", bound, func() {
			n := 0
			for _, err := range t.log.Read(t.ctx, last, eventlog.All()) {
				t.must(err)
				n++
			}
			if n != depth+1 {
				t.Errorf("the lineage has %d events", n)
			}
		})
		within("the lineage", bound, func() {
			line, err := lineage(t.ctx, t.log, last)
			t.must(err)
			if len(line) != depth || line[depth-1].Session != name(0) {
				t.Errorf("the lineage has %d sessions", len(line))
			}
		})
		within("comparing its ends", 4*bound, func() {
			d, err := fork.Diff(t.ctx, t.log, fork.Tip{Session: last}, fork.Tip{Session: name(half)})
			t.must(err)
			if d.Ancestor != (fork.Tip{Session: name(half), Seq: int64(half + 1)}) || d.A.Len() != int64(half) || d.B.Len() != 0 {
				t.Errorf("the difference is %+v", d)
			}
		})
	})
}

// files is a jsonl log over hand-made files.
func files(t *testing.T, sessions map[string]string) *eventlog.Log {
	t.Helper()
	dir := t.TempDir()
	for id, lines := range sessions {
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := eventlog.Open(jsonl.New(dir))
	t.Cleanup(func() { _ = log.Close() })
	return log
}

// linesOf are the own lines of a session.
func (t *bench) linesOf(session string) []string {
	t.Helper()
	var lines []string
	for e, err := range t.log.Read(t.ctx, session, eventlog.All().Own()) {
		t.must(err)
		lines = append(lines, string(e.Line())+"\n")
	}
	return lines
}

// family is a parent of four events and a fork at the third.
func family(t *bench) {
	t.each("a", user("1"), user("2"), user("3"), user("4"))
	t.fork("b", "a", fork.AtSeq(3))
	t.add("b", user("mine"))
}

func TestParentGoneOrCut(t *testing.T) {
	everywhere(t, func(b *bench) {
		family(b)
		parent, child := b.linesOf("a"), strings.Join(b.linesOf("b"), "")
		var corrupt *eventlog.CorruptError
		gone := files(t, map[string]string{"b": child})
		if _, err := lineage(b.ctx, gone, "b"); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("lineage without the parent: %v", err)
		}
		if _, err := fork.At(b.ctx, gone, "b", fork.AtSeq(2), fork.Options{ID: "c"}); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("forked where the parent is gone: %v", err)
		}
		forest, err := fork.Tree(b.ctx, gone)
		if err != nil || drawn(forest) != "fork b at 3, of a which is gone\n" {
			t.Errorf("tree: %v\n%s", err, drawn(forest))
		}
		cut := files(t, map[string]string{"a": parent[0] + parent[1], "b": child})
		for name, err := range asked(b, cut) {
			if !errors.As(err, &corrupt) {
				t.Errorf("%s of a fork whose parent was cut: %v", name, err)
			}
		}
		stranger := newBench(t, stores["jsonl"])
		stranger.each("a", user("x"), user("y"), user("z"))
		other := strings.Join(stranger.linesOf("a"), "")
		for name, err := range asked(b, files(t, map[string]string{"a": other, "b": child})) {
			if !errors.Is(err, eventlog.ErrCorrupt) {
				t.Errorf("%s of a fork of another parent: %v", name, err)
			}
		}
	})
}

// asked calls all functions that read the fork b through its parent.
func asked(b *bench, log *eventlog.Log) map[string]error {
	_, lineage := lineage(b.ctx, log, "b")
	_, forked := fork.At(b.ctx, log, "b", fork.AtSeq(3), fork.Options{ID: "c"})
	_, diff := fork.Diff(b.ctx, log, fork.Tip{Session: "b"}, fork.Tip{Session: "a"})
	_, branches := fork.Branches(b.ctx, log, "b", false)
	_, copied := fork.Copy(b.ctx, log, "b", fork.CopyOptions{ID: "c"})
	b.nothingIn(log, "c")
	return map[string]error{"lineage": lineage, "fork": forked, "diff": diff, "branches": branches, "copy": copied}
}

func (t *bench) nothingIn(log *eventlog.Log, session string) {
	t.Helper()
	if _, err := log.Head(t.ctx, session); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("session %q: %v", session, err)
	}
}

// The files of two sessions make them forks of each other.
func TestCycle(t *testing.T) {
	b := newBench(t, stores["jsonl"])
	b.add("x", user("1"))
	b.fork("a", "x", fork.Head())
	b.add("a", user("2"))
	b.fork("b", "a", fork.AtSeq(2))
	line := strings.Join(b.linesOf("b"), "")
	// A second log, where x is a fork of b.
	c := newBench(t, stores["jsonl"])
	c.each("b", user("1"), user("2"), user("3"), user("4"))
	c.fork("x", "b", fork.AtSeq(4))
	log := files(t, map[string]string{"x": strings.Join(c.linesOf("x"), ""), "a": strings.Join(b.linesOf("a"), ""), "b": line})
	var corrupt *eventlog.CorruptError
	if _, err := lineage(b.ctx, log, "b"); !errors.As(err, &corrupt) {
		t.Errorf("lineage: %v", err)
	}
	_, err := fork.Copy(b.ctx, log, "b", fork.CopyOptions{ID: "c"})
	if !errors.As(err, &corrupt) {
		t.Errorf("copied: %v", err)
	}
	_, err = fork.At(b.ctx, log, "b", fork.AtSeq(1), fork.Options{ID: "c"})
	if !errors.As(err, &corrupt) {
		t.Errorf("forked: %v", err)
	}
	b.nothingIn(log, "c")
	forest, err := fork.Tree(b.ctx, log)
	if err != nil || len(forest.Roots) != 1 || !errors.Is(forest.Roots[0].Err, engine.ErrCycle) {
		t.Errorf("tree: %v\n%s", err, drawn(forest))
	}
	if n := strings.Count(drawn(forest), "fork "); n != 3 {
		t.Errorf("the tree has %d sessions of 3:\n%s", n, drawn(forest))
	}
	if forks := idsOf(forest.Node("a").Forks()); len(forks) != 1 {
		t.Errorf("the forks of a are %q", forks)
	}
}

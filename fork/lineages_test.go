package fork_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/upkeep/verify"
)

// checked checks the lineages of sessions, in that order.
func (t *bench) checked(log *eventlog.Log, sessions ...string) map[string]error {
	t.Helper()
	all, found := fork.NewLineages(log), map[string]error{}
	for _, session := range sessions {
		found[session] = all.Check(t.ctx, session)
		if _, alone := fork.Lineage(t.ctx, log, session); (alone == nil) != (found[session] == nil) {
			t.Errorf("lineage of %s: %v alone, %v among others", session, alone, found[session])
		}
	}
	return found
}

// descent is a parent a, a fork b of its end, a fork c of that, and d, a fork of
// b at what b shares with a.
func descent(t *bench) {
	t.each("a", user("1"), user("2"), user("3"), user("4"))
	t.fork("b", "a", fork.Head())
	t.add("b", user("mine"))
	t.fork("c", "b", fork.Head())
	t.fork("d", "b", fork.AtSeq(2))
}

func TestLineages(t *testing.T) {
	everywhere(t, func(t *bench) {
		descent(t)
		for session, parent := range map[string]string{"a": "", "b": "a", "c": "b", "d": "b"} {
			if report, err := verify.Session(t.ctx, t.log, session); err != nil || report.Parent != parent {
				t.Errorf("parent of %s: %q, %v", session, report.Parent, err)
			}
		}
		for session, err := range t.checked(t.log, "d", "c", "b", "a", "d", "c") {
			if err != nil {
				t.Errorf("%s: %v", session, err)
			}
		}
		var bad *fork.LineageError
		if err := t.checked(t.log, "x")["x"]; !errors.As(err, &bad) || !errors.Is(err, eventlog.ErrNotFound) || bad.Seq != 0 {
			t.Errorf("missing: %v", err)
		}
	})
}

// Each fork whose past is gone is named, with the place where it begins, and no
// other.
func TestLineagesThatAreBroken(t *testing.T) {
	b := newBench(t, stores["jsonl"])
	descent(b)
	parent := b.linesOf("a")
	rest := func(a string) *eventlog.Log {
		sessions := map[string]string{"b": strings.Join(b.linesOf("b"), ""), "c": strings.Join(b.linesOf("c"), ""), "d": strings.Join(b.linesOf("d"), "")}
		if a != "" {
			sessions["a"] = a
		}
		return files(t, sessions)
	}
	stranger := newBench(t, stores["jsonl"])
	stranger.each("a", user("1"), user("2"), user("3"), user("4"))
	seqs := map[string]int64{"b": 5, "c": 7, "d": 3}
	for _, c := range []struct {
		name   string
		log    *eventlog.Log
		broken string
		why    error
	}{
		{"the parent is gone", rest(""), "bcd", eventlog.ErrNotFound},
		{"it was cut below the fork point", rest(parent[0] + parent[1]), "bc", eventlog.ErrEventNotFound},
		{"it was cut below all of them", rest(parent[0]), "bcd", eventlog.ErrEventNotFound},
		{"another has its name", rest(strings.Join(stranger.linesOf("a"), "")), "bcd", eventlog.ErrCorrupt},
	} {
		for _, order := range []string{"bcd", "dcb", "cdbcd"} {
			for session, err := range b.checked(c.log, strings.Split(order, "")...) {
				var bad *fork.LineageError
				switch {
				case !strings.Contains(c.broken, session):
					if err != nil {
						t.Errorf("%s: %s: %v", c.name, session, err)
					}
				case !errors.Is(err, c.why) || !errors.As(err, &bad) || bad.Session != session || bad.Seq != seqs[session]:
					t.Errorf("%s: %s: %v", c.name, session, err)
				default:
					if d := bad.Defect(); d.Session != session || d.Seq != bad.Seq || d.Rule != "fork" || d.Detail != bad.Err.Error() {
						t.Errorf("%s: %+v", c.name, d)
					}
				}
			}
		}
	}
}

// Forks of the empty start of each other have nothing in common but the cycle.
func TestLineageOfACycleThatSharesNothing(t *testing.T) {
	b, c := newBench(t, stores["jsonl"]), newBench(t, stores["jsonl"])
	b.add("x", user("1"))
	b.fork("y", "x", fork.AtSeq(0))
	c.add("y", user("1"))
	c.fork("x", "y", fork.AtSeq(0))
	log := files(t, map[string]string{"x": strings.Join(c.linesOf("x"), ""), "y": strings.Join(b.linesOf("y"), "")})
	for session, err := range b.checked(log, "x", "y", "x") {
		var bad *fork.LineageError
		if !errors.Is(err, fork.ErrCycle) || !errors.Is(err, eventlog.ErrCorrupt) || !errors.As(err, &bad) || bad.Seq != 1 {
			t.Errorf("%s: %v", session, err)
		}
	}
}

// A long line of forks of forks is looked at once, in whatever order.
func TestLineagesOfDeepForks(t *testing.T) {
	everywhere(t, func(t *bench) {
		const depth = 300
		name := func(i int) string { return fmt.Sprint("s", i) }
		t.add(name(0), user("root"))
		for i := 1; i <= depth; i++ {
			t.fork(name(i), name(i-1), fork.Head())
		}
		check := func(sessions func(yield func(int) bool)) {
			t.Helper()
			all := fork.NewLineages(t.log)
			reads, _ := t.store.count(func() {
				for i := range sessions {
					t.must(all.Check(t.ctx, name(i)))
				}
			})
			if reads > 4*depth {
				t.Errorf("made %d reads of %d sessions", reads, depth)
			}
		}
		check(func(yield func(int) bool) {
			for i := 0; i <= depth && yield(i); i++ {
			}
		})
		check(func(yield func(int) bool) {
			for i := depth; i >= 0 && yield(i); i-- {
			}
		})
	})
}

package fork_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/upkeep/verify"
)

// brokenAt verifies sessions in that order with one Verifier, and gives the seq of
// the defect in each session's lineage; 0 is none. log.CheckAncestor must agree.
func (t *bench) brokenAt(log *eventlog.Log, sessions ...string) map[string]int64 {
	t.Helper()
	all, found := verify.New(log), map[string]int64{}
	for _, session := range sessions {
		report, err := all.Session(t.ctx, session)
		t.must(err)
		found[session] = 0
		for _, d := range report.Defects {
			if d.Rule == verify.RuleFork {
				found[session] = d.Seq
			}
		}
		if _, err := lineage(t.ctx, log, session); (err == nil) != (found[session] == 0) {
			t.Errorf("lineage of %s: %v, but the verifier finds a defect at %d", session, err, found[session])
		}
	}
	return found
}

// descent makes a parent a, a fork b of a's end, a fork c of b, and d, a fork of b
// at an event that b shares with a.
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
		for session, seq := range t.brokenAt(t.log, "d", "c", "b", "a", "d", "c") {
			if seq != 0 {
				t.Errorf("%s: defect at %d", session, seq)
			}
		}
		_, missing := lineage(t.ctx, t.log, "x")
		if _, err := verify.Session(t.ctx, t.log, "x"); !errors.Is(err, eventlog.ErrNotFound) || !errors.Is(missing, eventlog.ErrNotFound) {
			t.Errorf("missing: %v, %v", err, missing)
		}
	})
}

// Exactly the forks without their past have a defect, at their session_forked.
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
		{"it was cut below the fork point", rest(parent[0] + parent[1]), "bc", eventlog.ErrCorrupt},
		{"it was cut below all of them", rest(parent[0]), "bcd", eventlog.ErrCorrupt},
		{"another has its name", rest(strings.Join(stranger.linesOf("a"), "")), "bcd", eventlog.ErrCorrupt},
	} {
		for _, order := range []string{"bcd", "dcb", "cdbcd"} {
			for session, seq := range b.brokenAt(c.log, strings.Split(order, "")...) {
				want := int64(0)
				if strings.Contains(c.broken, session) {
					want = seqs[session]
					if _, err := lineage(b.ctx, c.log, session); !errors.Is(err, c.why) {
						t.Errorf("%s: %s: %v", c.name, session, err)
					}
				}
				if seq != want {
					t.Errorf("%s: %s has a defect at %d, want %d", c.name, session, seq, want)
				}
			}
		}
	}
}

// Two forks of the empty start of each other share no events, but are a cycle.
func TestLineageOfACycleThatSharesNothing(t *testing.T) {
	b, c := newBench(t, stores["jsonl"]), newBench(t, stores["jsonl"])
	b.add("x", user("1"))
	b.fork("y", "x", fork.AtSeq(0))
	c.add("y", user("1"))
	c.fork("x", "y", fork.AtSeq(0))
	log := files(t, map[string]string{"x": strings.Join(c.linesOf("x"), ""), "y": strings.Join(b.linesOf("y"), "")})
	for session, seq := range b.brokenAt(log, "x", "y", "x") {
		_, err := lineage(b.ctx, log, session)
		if !errors.Is(err, engine.ErrCycle) || !errors.Is(err, eventlog.ErrCorrupt) || seq != 1 {
			t.Errorf("%s: defect at %d, %v", session, seq, err)
		}
	}
}

// A Verifier checks each session of a deep chain of forks once, in any order.
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
			all := verify.New(t.log)
			reads, _ := t.store.count(func() {
				for i := range sessions {
					_, err := all.Session(t.ctx, name(i))
					t.must(err)
				}
			})
			if reads > 8*depth {
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

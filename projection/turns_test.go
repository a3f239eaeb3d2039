package projection_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// talkers makes up a session of turns, or of exchanges without any.
type talkers struct {
	*garden
	turn    ulid.ULID
	indexes map[ulid.ULID]int // of the turns that were started
}

func (g *talkers) act(r *rapid.T, turns bool) {
	head := g.head("s").Seq
	kind := rapid.IntRange(0, 9).Draw(r, "kind")
	switch {
	case kind < 2:
		g.spend("s", asks("please"))
	case kind < 4:
		g.spend("s", says(event.Text("so")))
	case kind == 4:
		g.spend("s", event.Message{Role: event.User, Parts: []event.Part{event.ToolResult("a", "tool", event.Text("done"))}})
	case kind == 5:
		g.spend("s", event.Message{Role: event.User, Parts: []event.Part{event.ToolResult("a", "tool"), event.Text("and?")}})
	case kind == 6:
		g.spend("s", event.HeadMove{To: rapid.Int64Range(0, head).Draw(r, "to")})
	case kind == 7:
		_, err := erase.Redact(bg, g.log, "s", []int64{rapid.Int64Range(1, head).Draw(r, "seq")}, erase.RedactOptions{Reason: "test"})
		g.allow(err, event.ErrInvalidType)
	case turns && kind == 8:
		g.turn = g.do(event.TurnStart{Index: len(g.indexes)})
		g.indexes[g.turn] = len(g.indexes)
	case turns && !g.turn.IsZero():
		g.do(event.TurnCompletion{TurnID: g.turn, Status: event.TurnStatusCompleted})
	default:
		g.spend("s", event.External{Source: "clock"})
	}
}

// onTalkers checks a law on random sessions of each backend.
func onTalkers(t *testing.T, turns bool, law func(r *rapid.T, g *talkers)) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				g := &talkers{garden: &garden{t: r, log: log}, indexes: map[ulid.ULID]int{}}
				g.spend("s", says(event.Text("welcome")))
				for range rapid.IntRange(2, 25).Draw(r, "events") {
					g.act(r, turns)
				}
				law(r, g)
			})
		})
	}
}

// before is the event of the path before one of it.
func (g *garden) before(seq int64) (before int64) {
	g.t.Helper()
	for e, err := range g.log.Read(bg, "s", eventlog.All().OnPath()) {
		if g.allow(err); e.Seq == seq {
			return before
		}
		before = e.Seq
	}
	g.t.Fatalf("%d is not on the path", seq)
	return 0
}

// resolved is what a point of s stands for; -1 if there is no such turn.
func (g *garden) resolved(p fork.Point) int64 {
	g.t.Helper()
	e, err := fork.Resolve(bg, g.log, "s", p)
	if errors.Is(err, fork.ErrNoTurn) {
		return -1
	}
	g.allow(err)
	return e.Seq
}

// Where no turn was started on the path, the exchanges of a run are the turns to
// fork at.
func TestExchangesAreTheTurnsToForkAt(t *testing.T) {
	for _, turns := range []bool{false, true} {
		onTalkers(t, turns, func(r *rapid.T, g *talkers) {
			for e, err := range g.log.Read(bg, "s", eventlog.All().OnPath()) {
				if g.allow(err); e.Type.Name() == event.TurnStarted {
					return
				}
			}
			g.exchanges(r)
		})
	}
}

func (g *talkers) exchanges(r *rapid.T) {
	run, err := projection.LoadRuns(bg, g.log, "s")
	g.allow(err)
	var starts []int64
	for _, x := range run.Turns {
		if !x.Orphaned {
			same(r, "index", len(starts), x.Index)
			starts = append(starts, x.From)
		}
	}
	for n, start := range starts {
		same(r, fmt.Sprintf("before turn %d, which begins at %d", n, start), g.before(start), g.resolved(fork.BeforeTurn(n)))
		end := g.head("s").Seq
		if n+1 < len(starts) {
			end = g.before(starts[n+1])
		}
		same(r, fmt.Sprintf("the end of turn %d", n), end, g.resolved(fork.AtTurn(n)))
	}
	same(r, "one more", int64(-1), g.resolved(fork.AtTurn(len(starts))))
}

// Where turns were started, a run has each of the path at which a fork can be
// made, and its end.
func TestTurnsOfARunAreTheTurnsToForkAt(t *testing.T) {
	onTalkers(t, true, func(r *rapid.T, g *talkers) {
		run, err := projection.LoadRuns(bg, g.log, "s")
		g.allow(err)
		ids := map[ulid.ULID]*projection.RunTurn{}
		for _, x := range run.Turns {
			if !x.ID.IsZero() {
				ids[x.ID] = x
			}
		}
		for e, err := range g.log.Read(bg, "s", eventlog.All().OnPath()) {
			g.allow(err)
			if e.Type.Name() != event.TurnStarted {
				continue
			}
			x, index := ids[e.ID], g.indexes[e.ID]
			if x == nil {
				r.Fatalf("the run lacks turn %d at %d", index, e.Seq)
			}
			same(r, "index", index, x.Index)
			same(r, "orphaned", false, x.Orphaned)
			same(r, fmt.Sprintf("before turn %d", index), g.before(e.Seq), g.resolved(fork.BeforeTurn(index)))
			if end := g.resolved(fork.AtTurn(index)); end < e.Seq || x.From > e.Seq || x.To < e.Seq {
				r.Fatalf("turn %d from %d to %d starts at %d and ends at %d", x.Index, x.From, x.To, e.Seq, end)
			}
		}
	})
}

// A turn that took the user's message over leaves it when the head moves back to
// the message: what follows is another turn of the same message.
func TestATurnThatWasRewoundLeavesItsInput(t *testing.T) {
	onGarden(t, func(t *testing.T, g *garden) {
		g.do(asks("please")) // 1
		first := g.do(event.TurnStart{Index: 7})
		g.do(says(event.Text("no"))) // 3
		g.append("s", event.New(event.TurnCompletion{TurnID: first, Status: event.TurnStatusFailed}))
		turns := func() (list []string) {
			run, err := projection.LoadRuns(bg, g.log, "s")
			g.allow(err)
			for _, x := range run.Turns {
				list = append(list, fmt.Sprintf("%d from %d to %d, orphaned %v", x.Index, x.From, x.To, x.Orphaned))
			}
			return list
		}
		same(t, "a turn", []string{"7 from 1 to 4, orphaned false"}, turns())
		g.do(event.HeadMove{To: 1}) // 5
		same(t, "rewound", []string{"0 from 1 to 1, orphaned false", "7 from 1 to 4, orphaned true"}, turns())
		g.do(says(event.Text("well"))) // 6
		same(t, "an exchange", []string{"0 from 1 to 6, orphaned false", "7 from 1 to 4, orphaned true"}, turns())
		g.do(event.HeadMove{To: 1}, event.TurnStart{Index: 8}, says(event.Text("yes"))) // 7 to 9
		same(t, "tried again", []string{"8 from 1 to 9, orphaned false", "7 from 1 to 4, orphaned true"}, turns())
	})
}

// An exchange of the path is left as it is by a turn that took its message over
// on a branch which the head left.
func TestATurnOfABranchLeavesTheExchangeToThePath(t *testing.T) {
	onGarden(t, func(t *testing.T, g *garden) {
		g.do(asks("please"), says(event.Text("so")), asks("and then?")) // 1 to 3
		g.do(event.HeadMove{To: 1}, event.TurnStart{Index: 7})          // 4, 5
		g.do(event.HeadMove{To: 3})                                     // 6
		run, err := projection.LoadRuns(bg, g.log, "s")
		g.allow(err)
		var turns []string
		for _, x := range run.Turns {
			turns = append(turns, fmt.Sprintf("%d from %d to %d, %d messages, orphaned %v", x.Index, x.From, x.To, len(x.Input), x.Orphaned))
		}
		same(t, "turns", []string{"0 from 1 to 2, 1 messages, orphaned false", "1 from 3 to 3, 1 messages, orphaned false", "7 from 1 to 5, 1 messages, orphaned true"}, turns)
	})
}

package runlog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// talkers makes a session of turns, or of exchanges without turns.
type talkers struct {
	*garden.Garden
	turn    ulid.ULID
	indexes map[ulid.ULID]int // of the turns that were started
}

func (g *talkers) act(r *rapid.T, turns bool) {
	head := g.Head("s").Seq
	kind := rapid.IntRange(0, 9).Draw(r, "kind")
	switch {
	case kind < 2:
		add(g.Garden, "s", asks("please"))
	case kind < 4:
		add(g.Garden, "s", says(event.Text("so")))
	case kind == 4:
		add(g.Garden, "s", event.Message{Role: event.User, Parts: []event.Part{event.ToolResult("a", "tool", event.Text("done"))}})
	case kind == 5:
		add(g.Garden, "s", event.Message{Role: event.User, Parts: []event.Part{event.ToolResult("a", "tool"), event.Text("and?")}})
	case kind == 6:
		add(g.Garden, "s", event.HeadMove{To: rapid.Int64Range(0, head).Draw(r, "to")})
	case kind == 7:
		_, err := erase.Redact(garden.Bg, g.Log, "s", []int64{rapid.Int64Range(1, head).Draw(r, "seq")}, erase.RedactOptions{Reason: "test"})
		g.Allow(err, event.ErrInvalidType)
	case turns && kind == 8:
		g.turn = do(g.Garden, event.TurnStart{Index: len(g.indexes)})
		g.indexes[g.turn] = len(g.indexes)
	case turns && !g.turn.IsZero():
		do(g.Garden, event.TurnCompletion{TurnID: g.turn, Status: event.TurnStatusCompleted})
	default:
		add(g.Garden, "s", event.External{Source: "clock"})
	}
}

// onTalkers checks a law on random sessions of each backend.
func onTalkers(t *testing.T, turns bool, law func(r *rapid.T, g *talkers)) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				g := &talkers{Garden: &garden.Garden{T: r, Log: log}, indexes: map[ulid.ULID]int{}}
				add(g.Garden, "s", says(event.Text("welcome")))
				for range rapid.IntRange(2, 25).Draw(r, "events") {
					g.act(r, turns)
				}
				law(r, g)
			})
		})
	}
}

// before is the seq before seq on the path.
func before(g *garden.Garden, seq int64) (before int64) {
	g.T.Helper()
	for e, err := range g.Log.Read(garden.Bg, "s", eventlog.All().OnPath()) {
		if g.Allow(err); e.Seq == seq {
			return before
		}
		before = e.Seq
	}
	g.T.Fatalf("%d is not on the path", seq)
	return 0
}

// resolved is the seq of a fork point in s; -1 if there is no such turn.
func resolved(g *garden.Garden, p fork.Point) int64 {
	g.T.Helper()
	e, err := fork.Resolve(garden.Bg, g.Log, "s", p)
	if errors.Is(err, fork.Error("no_turn")) {
		return -1
	}
	g.Allow(err)
	return e.Seq
}

// If no turn_started is on the path, the exchanges of a run are the turns that a fork
// point can name.
func TestExchangesAreTheTurnsToForkAt(t *testing.T) {
	for _, turns := range []bool{false, true} {
		onTalkers(t, turns, func(r *rapid.T, g *talkers) {
			for e, err := range g.Log.Read(garden.Bg, "s", eventlog.All().OnPath()) {
				if g.Allow(err); e.Type.Name() == event.TurnStarted {
					return
				}
			}
			g.exchanges(r)
		})
	}
}

func (g *talkers) exchanges(r *rapid.T) {
	run, err := runlog.Load(garden.Bg, g.Log, "s")
	g.Allow(err)
	var starts []int64
	for _, x := range run.Turns {
		if !x.Orphaned {
			garden.Same(r, "index", len(starts), x.Index)
			starts = append(starts, x.From)
		}
	}
	for n, start := range starts {
		garden.Same(r, fmt.Sprintf("before turn %d, which begins at %d", n, start), before(g.Garden, start), resolved(g.Garden, fork.BeforeTurn(n)))
		end := g.Head("s").Seq
		if n+1 < len(starts) {
			end = before(g.Garden, starts[n+1])
		}
		garden.Same(r, fmt.Sprintf("the end of turn %d", n), end, resolved(g.Garden, fork.AtTurn(n)))
	}
	garden.Same(r, "one more", int64(-1), resolved(g.Garden, fork.AtTurn(len(starts))))
}

// With turns on the path, a run has each turn that a fork point can name, with its
// end.
func TestTurnsOfARunAreTheTurnsToForkAt(t *testing.T) {
	onTalkers(t, true, func(r *rapid.T, g *talkers) {
		run, err := runlog.Load(garden.Bg, g.Log, "s")
		g.Allow(err)
		ids := map[ulid.ULID]*runlog.Turn{}
		for _, x := range run.Turns {
			if !x.ID.IsZero() {
				ids[x.ID] = x
			}
		}
		for e, err := range g.Log.Read(garden.Bg, "s", eventlog.All().OnPath()) {
			g.Allow(err)
			if e.Type.Name() != event.TurnStarted {
				continue
			}
			x, index := ids[e.ID], g.indexes[e.ID]
			if x == nil {
				r.Fatalf("the run lacks turn %d at %d", index, e.Seq)
			}
			garden.Same(r, "index", index, x.Index)
			garden.Same(r, "orphaned", false, x.Orphaned)
			garden.Same(r, fmt.Sprintf("before turn %d", index), before(g.Garden, e.Seq), resolved(g.Garden, fork.BeforeTurn(index)))
			if end := resolved(g.Garden, fork.AtTurn(index)); end < e.Seq || x.From > e.Seq || x.To < e.Seq {
				r.Fatalf("turn %d from %d to %d starts at %d and ends at %d", x.Index, x.From, x.To, e.Seq, end)
			}
		}
	})
}

// A turn took the user's message over. When the head moves back to the message, the
// message stays and begins another turn.
func TestARewoundTurnKeepsItsInput(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, asks("please")) // 1
		first := do(g, event.TurnStart{Index: 7})
		do(g, says(event.Text("no"))) // 3
		g.Append("s", event.New(event.TurnCompletion{TurnID: first, Status: event.TurnStatusFailed}))
		turns := func() (list []string) {
			run, err := runlog.Load(garden.Bg, g.Log, "s")
			g.Allow(err)
			for _, x := range run.Turns {
				list = append(list, fmt.Sprintf("%d from %d to %d, orphaned %v", x.Index, x.From, x.To, x.Orphaned))
			}
			return list
		}
		garden.Same(t, "a turn", []string{"7 from 1 to 4, orphaned false"}, turns())
		do(g, event.HeadMove{To: 1}) // 5
		garden.Same(t, "rewound", []string{"0 from 1 to 1, orphaned false", "7 from 1 to 4, orphaned true"}, turns())
		do(g, says(event.Text("well"))) // 6
		garden.Same(t, "an exchange", []string{"0 from 1 to 6, orphaned false", "7 from 1 to 4, orphaned true"}, turns())
		do(g, event.HeadMove{To: 1}, event.TurnStart{Index: 8}, says(event.Text("yes"))) // 7 to 9
		garden.Same(t, "tried again", []string{"8 from 1 to 9, orphaned false", "7 from 1 to 4, orphaned true"}, turns())
	})
}

// A turn on an orphaned branch does not change the exchange on the path whose message
// it took over.
func TestATurnOfABranchLeavesTheExchangeToThePath(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, asks("please"), says(event.Text("so")), asks("and then?")) // 1 to 3
		do(g, event.HeadMove{To: 1}, event.TurnStart{Index: 7})          // 4, 5
		do(g, event.HeadMove{To: 3})                                     // 6
		run, err := runlog.Load(garden.Bg, g.Log, "s")
		g.Allow(err)
		var turns []string
		for _, x := range run.Turns {
			turns = append(turns, fmt.Sprintf("%d from %d to %d, %d messages, orphaned %v", x.Index, x.From, x.To, len(x.Input), x.Orphaned))
		}
		garden.Same(t, "turns", []string{"0 from 1 to 2, 1 messages, orphaned false", "1 from 3 to 3, 1 messages, orphaned false", "7 from 1 to 5, 1 messages, orphaned true"}, turns)
	})
}

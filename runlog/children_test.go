package runlog_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
)

// A run that has begun and has no end yet is below the call or the effect that started
// it, with the turns, the calls and the costs so far of its session.
func TestChildrenThatRun(t *testing.T) {
	const call, key = "c1", "k1"
	calls := event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(call, "delegate", nil)}}
	intent := event.EffectIntent{Key: key, Kind: "agent", Name: "delegate", Class: event.EffectPure}
	tool := event.EffectIntent{Key: key, Kind: "tool", Name: "delegate", Class: event.EffectPure}
	started := event.ToolStart{CallID: call, Name: "delegate", IdempotencyKey: key}
	for _, start := range []struct {
		name  string
		by    []event.Payload // the last one starts the child
		call  string          // the call id in the child events
		event bool            // the child events name the starting event
		after []event.Payload
		want  string // the op above the child
	}{
		{"a call", []event.Payload{calls}, call, false, nil, "tool delegate open"},
		{"a call that ended", []event.Payload{calls, event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(call, "in the background")}}}, call, false, nil, "tool delegate ok"},
		{"a tool execution", []event.Payload{calls, started}, "", true, nil, "tool delegate open"},
		{"an effect, by its key", []event.Payload{intent}, key, false, nil, "system delegate open"},
		{"an effect", []event.Payload{intent}, "", true, nil, "system delegate open"},
		{"an effect of a tool", []event.Payload{calls, tool}, "", true, []event.Payload{started}, "tool delegate open"},
		{"nothing that is known", []event.Payload{calls}, "c2", false, nil, "system child open"},
	} {
		for _, state := range []event.ChildState{event.ChildRequested, event.ChildStarted, event.ChildProgressed, event.ChildBlocked} {
			t.Run(fmt.Sprint(start.name, " ", state), func(t *testing.T) {
				garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
					do(g, asks("find it"), event.TurnStart{})
					child := event.Child{State: event.ChildRequested, ChildID: "r", ChildSessionID: "helper", CallID: start.call}
					for _, p := range start.by {
						if id := do(g, p); start.event {
							child.ParentEventID = id
						}
					}
					do(g, child)
					do(g, start.after...)
					child.State, child.InterruptID = state, "review 7"
					do(g, child)
					grow(g, "helper", 5)
					run, err := runlog.Load(garden.Bg, g.Log, "s")
					g.Allow(err)
					op, c := childOf(t, run)
					garden.Same(t, "op", start.want, fmt.Sprint(op.Kind, " ", op.Name, " ", op.Status))
					review := "[]"
					if state == event.ChildBlocked { // it waits for another one too
						child.InterruptID = "review 8"
						do(g, child, child)
						run, err = runlog.Load(garden.Bg, g.Log, "s")
						g.Allow(err)
						_, c = childOf(t, run)
						review = "[review 7 review 8]"
					}
					garden.Same(t, "child", fmt.Sprint(state, " ", review), fmt.Sprint(c.State, " ", c.InterruptIDs))
					garden.Same(t, "run", "open: 1 turns, 2 answers, 1 calls, 5", fmt.Sprintf("%s: %d turns, %d answers, %d calls, %d",
						c.Run.Status, c.Run.Totals.Turns, c.Run.Totals.Responses, c.Run.Totals.Tools, c.Run.Totals.Own.Cost))
					garden.Same(t, "tree", event.Cost(5), run.Totals.Tree.Cost)
					tree := nodeOf(run.OpTree())
					garden.Same(t, "op tree", fmt.Sprint("helper ", state, " ", review), fmt.Sprint(tree.ID, " ", tree.State, " ", tree.InterruptIDs))
					grow(g, "helper", 7) // the child goes on
					run, err = runlog.Load(garden.Bg, g.Log, "s")
					g.Allow(err)
					total, err := stats.LoadTreeCost(garden.Bg, g.Log, "s")
					g.Allow(err)
					garden.Same(t, "trees later", []event.Cost{12, 12}, []event.Cost{run.Totals.Tree.Cost, total.Total.Cost})
					child.State = event.ChildCompleted
					do(g, child)
					run, err = runlog.Load(garden.Bg, g.Log, "s")
					g.Allow(err)
					_, c = childOf(t, run)
					garden.Same(t, "ended", "completed []", fmt.Sprint(c.State, " ", c.InterruptIDs))
				})
			})
		}
	}
}

// grow appends a turn that has an answer with a cost, and an open call.
func grow(g *garden.Garden, session string, cost event.Cost) {
	g.T.Helper()
	answer := event.New(says(event.ToolCall(fmt.Sprint("call ", cost), "look", nil)))
	answer.Cost = cost
	if cost == 5 {
		g.Append(session, event.New(asks("find it")), event.New(event.TurnStart{}), event.New(says(event.Text("I look"))))
	}
	g.Append(session, answer)
}

// childOf returns the only child of a run, and its op.
func childOf(t *testing.T, run *runlog.Run) (op *runlog.Op, child *runlog.ChildOp) {
	t.Helper()
	ops := slices.Clone(run.Ops)
	for _, turn := range run.Turns {
		ops = append(ops, turn.Ops...)
	}
	for _, o := range ops {
		for _, c := range o.Children {
			if child != nil {
				t.Fatal("the run has two children")
			}
			op, child = o, c
		}
	}
	if child == nil || child.Run == nil {
		t.Fatalf("the run has no child: %+v", child)
	}
	return op, child
}

// nodeOf returns the only child session of an op tree.
func nodeOf(s runlog.OpTreeSession) (child runlog.OpTreeSession) {
	for _, turn := range s.Turns {
		for _, op := range turn.Ops {
			for _, c := range op.ChildSessions {
				child = c
			}
		}
	}
	return child
}

// The usage that a parent records for a child with a session of its own does not count: it
// counts in the session. The child events need not all name the session.
func TestUsageOfChildrenCountsOnce(t *testing.T) {
	used := event.Usage{OutputTokens: 9}
	for name, last := range map[string]event.Child{
		"its end":        {State: event.ChildCompleted, ChildID: "r", Usage: used},
		"its merge":      {State: event.ChildMerged, ChildID: "r", ChildSessionID: "helper", Usage: used},
		"a short merge":  {State: event.ChildMerged, ChildID: "r", Usage: used},
		"a note of work": {State: event.ChildProgressed, ChildID: "r", Usage: used},
	} {
		t.Run(name, func(t *testing.T) {
			garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
				m := says(event.Text("done"))
				m.Usage = used
				g.Append("helper", event.New(m))
				do(g, asks("find it"), event.Child{State: event.ChildStarted, ChildID: "r", ChildSessionID: "helper"}, last, last)
				do(g, event.Child{State: event.ChildCompleted, ChildID: "without a session", Usage: used})
				tree, err := stats.LoadTreeCost(garden.Bg, g.Log, "s")
				g.Allow(err)
				run, err := runlog.Load(garden.Bg, g.Log, "s")
				g.Allow(err)
				garden.Same(t, "tokens", []int64{18, 18}, []int64{tree.Total.Usage.OutputTokens, run.Totals.Tree.Usage.OutputTokens})
			})
		})
	}
}

// The cost of a tree is the sum of its parts, each counted once: with forks and copies
// that are children too, children of two parents, and merged outcomes.
func TestTreesAddUp(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for i := range rapid.IntRange(1, 5).Draw(r, "children") {
			parent := rapid.IntRange(0, len(l.Names)-1).Draw(r, "parent")
			child := rapid.IntRange(parent+1, len(l.Names)).Draw(r, "child") // no cycle
			if child == len(l.Names) {
				l.Names = append(l.Names, fmt.Sprint("child", i))
				l.Append(l.Names[child], event.New(event.Session{Agent: "helper"}))
				grow(l.Garden, l.Names[child], event.Cost(i+1))
			}
			run := event.Child{State: event.ChildStarted, ChildID: fmt.Sprint("run", i), ChildSessionID: l.Names[child]}
			l.Append(l.Names[parent], event.New(run))
			if rapid.Bool().Draw(r, "merged") {
				_, err := fork.Merge(garden.Bg, l.Log, l.Names[parent], l.Names[child], event.Child{ChildID: run.ChildID, Usage: event.Usage{OutputTokens: 3}})
				l.Allow(err, fork.Error("unrelated"))
			}
		}
		for _, name := range l.Names {
			tree, err := stats.LoadTreeCost(garden.Bg, l.Log, name)
			l.Allow(err)
			var sum projection.Spend
			counted := map[string]bool{}
			for _, s := range tree.Sessions {
				garden.Same(r, s.Session+" counts once", false, counted[s.Session])
				counted[s.Session] = true
				c, err := stats.LoadCost(garden.Bg, l.Log, s.Session)
				l.Allow(err)
				sum = sum.Add(c.Own)
			}
			garden.Same(r, "tree of "+name, sum, tree.Total)
			run, err := runlog.Load(garden.Bg, l.Log, name)
			l.Allow(err)
			parts := map[string]projection.Spend{}
			addRuns(r, run, parts)
			sum = projection.Spend{}
			for _, s := range parts {
				sum = sum.Add(s)
			}
			garden.Same(r, "run of "+name, sum, run.Totals.Tree)
		}
	})
}

// addRuns adds the costs of each session of a run, once.
func addRuns(r *rapid.T, run *runlog.Run, parts map[string]projection.Spend) {
	if _, twice := parts[run.Session]; twice {
		r.Fatalf("session %s is in the run twice", run.Session)
	}
	parts[run.Session] = run.Totals.Own
	ops := slices.Clone(run.Ops)
	for _, turn := range run.Turns {
		ops = append(ops, turn.Ops...)
	}
	for _, op := range ops {
		for _, c := range op.Children {
			if c.Run != nil {
				addRuns(r, c.Run, parts)
			}
		}
	}
}

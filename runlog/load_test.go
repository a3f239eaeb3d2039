package runlog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
)

// runs says that a session has child runs in other sessions.
func runs(g *garden.Garden, session string, children ...string) {
	g.T.Helper()
	g.Append(session, event.UserMessage("begin"))
	for _, c := range children {
		x := event.Child{ChildID: "run of " + c, ChildSessionID: c}
		x.State = event.ChildStarted
		g.Append(session, event.New(x))
		x.State = event.ChildCompleted
		g.Append(session, event.New(x))
	}
}

// family draws a run and its children.
func family(run *runlog.Run) string {
	text := run.Session + "("
	for _, op := range run.Ops {
		text += familyOf(op)
	}
	for _, t := range run.Turns {
		for _, op := range t.Ops {
			text += familyOf(op)
		}
	}
	return text + ")"
}

func familyOf(op *runlog.Op) (text string) {
	for _, c := range op.Children {
		switch {
		case c.Run != nil:
			text += family(c.Run)
		case c.Missing:
			text += "missing " + c.SessionID + ";"
		case c.Elsewhere:
			text += "elsewhere " + c.SessionID + ";"
		default:
			text += "closed " + c.SessionID + ";"
		}
	}
	return text
}

func TestRunTrees(t *testing.T) {
	for _, tt := range []struct {
		name     string
		children map[string][]string
		want     string
	}{
		{"no children", map[string][]string{"a": nil}, "a()"},
		{"children in order", map[string][]string{"a": {"c", "b"}, "b": nil, "c": {"d"}, "d": nil}, "a(c(d())b())"},
		{"a missing child", map[string][]string{"a": {"x", "b"}, "b": nil}, "a(missing x;b())"},
		{"a missing child of two", map[string][]string{"a": {"b", "c"}, "b": {"x"}, "c": {"x"}}, "a(b(missing x;)c(elsewhere x;))"},
		{"a child of two", map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": nil}, "a(b(d())c(elsewhere d;))"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
				for name, children := range tt.children {
					runs(g, name, children...)
				}
				run, err := runlog.Load(garden.Bg, g.Log, "a")
				g.Allow(err)
				garden.Same(t, "tree", tt.want, family(run))
			})
		})
	}
}

// A session that is a child of itself, at any depth, is refused; with NoChildren it
// loads.
func TestRunsInACycle(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
				runs(g, "above", "r0")
				for i := range n {
					runs(g, fmt.Sprint("r", i), fmt.Sprint("r", (i+1)%n))
				}
				for _, session := range []string{"r0", "above"} {
					if _, err := runlog.Load(garden.Bg, g.Log, session); !errors.Is(err, runlog.ErrRunCycle) {
						t.Errorf("%s: %v", session, err)
					}
				}
				run, err := runlog.Load(garden.Bg, g.Log, "r0", runlog.Options{NoChildren: true})
				g.Allow(err)
				garden.Same(t, "alone", fmt.Sprintf("r0(closed r%d;)", 1%n), family(run))
				tree, err := stats.LoadTreeCost(garden.Bg, g.Log, "r0") // counts each once
				g.Allow(err)
				garden.Same(t, "sessions", n, len(tree.Sessions))
			})
		})
	}
}

// A step_completed without a step_started belongs to the answer before it.
func TestStepsThatOnlyComplete(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		var events []event.Event
		add := func(e event.Event) { events = append(events, e) }
		says := func(role event.Role, group string) {
			add(event.New(event.Message{Role: role, Group: group, Parts: []event.Part{event.Text("so")}}))
		}
		says(event.User, "")
		for _, group := range []string{"g1", "g2"} {
			says(event.Assistant, group)
			says(event.Assistant, group)
			add(event.New(event.StepCompletion{Usage: event.Usage{OutputTokens: 3}}))
		}
		if _, err := log.Append(garden.Bg, "s", eventlog.New(), events...); err != nil {
			t.Fatal(err)
		}
		run, err := runlog.Load(garden.Bg, log, "s")
		if err != nil {
			t.Fatal(err)
		}
		ops := run.Turns[0].Ops
		for i, op := range ops {
			var spent projection.Spend
			for _, a := range op.Accounting {
				spent = spent.Add(a.Spend)
			}
			if spent.Usage.OutputTokens != 3 || spent.Responses != 1 || spent.Unknown != 0 || len(ops) != 2 {
				t.Errorf("op %d of %d: %+v", i, len(ops), spent)
			}
		}
	})
}

// A message of a program in the user's name is context, also before a turn_started in
// an exchange. Messages of other roles are context too.
func TestTurnsHaveContext(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		var events []event.Event
		add := func(e event.Event) { events = append(events, e) }
		add(event.UserMessage("Today is Monday."))
		if err := events[0].SetMetadata("context", true); err != nil {
			t.Fatal(err)
		}
		add(event.UserMessage("What does it weigh?"))
		add(event.New(event.TurnStart{}))
		add(event.New(event.Message{Role: event.Developer, Parts: []event.Part{event.Text("Be brief.")}}))
		if _, err := log.Append(garden.Bg, "s", eventlog.New(), events...); err != nil {
			t.Fatal(err)
		}
		run, err := runlog.Load(garden.Bg, log, "s")
		if err != nil || len(run.Turns) != 1 {
			t.Fatalf("%d turns (%v)", len(run.Turns), err)
		}
		text := func(messages []event.Message) (all string) {
			for _, m := range messages {
				all += m.Text() + " "
			}
			return all
		}
		turn := run.Turns[0]
		if text(turn.Input) != "What does it weigh? " || text(turn.Context) != "Today is Monday. Be brief. " {
			t.Errorf("input %q, context %q", text(turn.Input), text(turn.Context))
		}
	})
}

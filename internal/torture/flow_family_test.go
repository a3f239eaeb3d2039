//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/testsize"
)

// familyLevels is how many levels of children the agents of the tests have.
var familyLevels = testsize.Pick(2, 2, 3)

var childModes = []event.ChildMode{event.ChildFresh, event.ChildHandoff, event.ChildFork}

// agentTool begins the names of the tools that run a child.
const agentTool = "agent_"

// agentTools are a tool for each mode of a child.
func (s *script) agentTools(levels int) (tools []flow.ToolSpec) {
	if levels == 0 {
		return nil
	}
	for _, mode := range childModes {
		tools = append(tools, flow.AgentTool(agentTool+string(mode), "runs a child", s.child(mode, levels-1, false), childOptions(mode)))
	}
	return tools
}

func childOptions(mode event.ChildMode) flow.ChildOptions {
	o := flow.ChildOptions{Mode: mode}
	if mode == event.ChildHandoff {
		o.Context = "The caller is a test."
	}
	return o
}

// child is an agent with levels of children below it. Its turn depends only on its input.
// A fork has the name of the top agent, so that it inherits its state. The servers of the
// agent must leave it alone.
func (s *script) child(mode event.ChildMode, levels int, fails bool) *flow.Agent[tally] {
	a := &flow.Agent[tally]{Name: string(mode), Options: scriptOptions}
	if mode == event.ChildFork {
		a.Name = "script"
	}
	a.Turn = func(ctx context.Context, t *flow.Turn[tally]) error {
		err := s.play(ctx, t, t.Input().Messages[0].Text(), levels, 1, 2)
		if err == nil && fails {
			err = errors.New("the child gives up")
		}
		return err
	}
	return a
}

// The fates of a child.
const (
	fateFails       = iota
	fateFailsAtOnce     // in the first attempt of its effect
	fates           = 5 // the others do not fail
)

// delegate makes an effect that runs a child. The input of the child is the name of the
// effect.
func (p *place) delegate(name string) flow.Call[string] {
	mode, fate := childModes[p.r.IntN(len(childModes))], p.r.IntN(fates)
	e := flow.Effect{Name: "child " + name, Class: classes[p.r.IntN(2)], Arguments: map[string]string{"place": name}}
	if fate == fateFailsAtOnce {
		e.Retry = flow.Retry{Attempts: 10_000, First: time.Duration(1+p.r.IntN(40)) * time.Millisecond, Max: 40 * time.Millisecond}
	}
	if p.r.IntN(4) == 0 {
		e.Review = &flow.Question{Prompt: "may it run?"}
	}
	return flow.Call[string]{Effect: e, Do: func(ctx context.Context) (string, error) {
		p.work(ctx, e.Class)
		time.Sleep(rand.N(5 * p.pause)) // so that some are interrupted before the child begins
		fails := fate == fateFails || fate == fateFailsAtOnce && attempt(ctx) == 1
		out, err := flow.RunChild(ctx, p.child(mode, p.levels-1, fails), flow.Text(name), childOptions(mode))
		if err != nil {
			return "", err
		}
		err = flow.Update(ctx, func(c *tally) error { c.note("inside "+name, out.Message.Text()); return nil })
		return fmt.Sprintf("%s after %d turns: %s", out.Status, out.Custom.Turns, out.Message.Text()), err
	}}
}

// Two servers run an agent with children. One of them is killed, and another one begins,
// again and again. The one that is left runs what the others left, and continues after a
// person has recorded the outcomes of their effects.
func TestServersOfAFamily(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		s.levels = familyLevels
		p, attended := s.employ(max(*turnsFlag/familyTurns, 1))
		serve := func() *child { return s.start(job{Do: "agent", How: byServe}, func(string) {}) }
		var r agentRun
		c := serve()
		for ; r.kills < *killsFlag && len(attended) == 0; r.kills++ {
			next := serve()
			for i := s.random.IntN(20); i > 0 && len(attended) == 0; i-- {
				s.waitEvent(p, c)
				s.must(p.reconcile(s.ctx))
			}
			s.must(c.kill())
			c = next
		}
		if over, _ := s.accompany(p, c, false, attended); !over {
			t.Fatal("the last server ended")
		}
		r.processes = r.kills + 1
		s.checkAgent(p, &r)
		t.Logf("%v", &r)
	})
}

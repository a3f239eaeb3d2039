//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/runlog/stats"
)

// offspring is a child as the log of its parent has it.
type offspring struct {
	key, session string
	place        string // the turn and the ordinal of its effect: it is the same without kills
	mode         event.ChildMode
	states       map[event.ChildState]int
	summary      string
}

// ownEvents are the events of sessions without the ones that forks inherited.
func ownEvents(ctx context.Context, log *eventlog.Log, sessions ...string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, session := range sessions {
			for e, err := range log.Read(ctx, session, eventlog.All()) {
				if (err != nil || e.SessionID == session) && !yield(e, err) {
					return
				}
			}
		}
	}
}

func sessionsOf(ctx context.Context, log *eventlog.Log) (ids []string, err error) {
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, info.ID)
	}
	return ids, nil
}

// offspringOf are the children of a session, ordered by place.
func offspringOf(ctx context.Context, log *eventlog.Log, session string) ([]*offspring, error) {
	turns, places, children := map[ulid.ULID]int{}, map[string]string{}, map[string]*offspring{}
	for e, err := range ownEvents(ctx, log, session) {
		if err != nil {
			return nil, err
		}
		switch state, ok := e.Type.ChildState(); {
		case e.Type.Name() == event.TurnStarted:
			turns[e.ID] = len(turns)
		case e.Type.Name() == event.EffectIntended:
			p, _, err := event.Decode[event.EffectIntent](&e)
			if err != nil {
				return nil, err
			}
			places[p.Key] = fmt.Sprintf("%d:%s", turns[p.TurnID], p.Ordinal)
		case ok:
			p, _, err := event.Decode[event.Child](&e)
			if err != nil {
				return nil, err
			}
			c := children[p.ChildID]
			if c == nil {
				c = &offspring{key: p.ChildID, session: p.ChildSessionID, place: places[p.ChildID], mode: p.Mode, states: map[event.ChildState]int{}}
				children[p.ChildID] = c
			}
			if c.session != p.ChildSessionID || c.place == "" {
				return nil, fmt.Errorf("session %q: event %d is of child session %q; the effect %s has %q", session, e.Seq, p.ChildSessionID, c.place, c.session)
			}
			c.states[state]++
			c.summary += p.Summary + p.Error
		}
	}
	byPlace := func(a, b *offspring) int { return strings.Compare(a.place, b.place) }
	return slices.SortedFunc(maps.Values(children), byPlace), nil
}

// check checks that a child was requested and started once, and ended once.
func (c *offspring) check() error {
	ends := c.states[event.ChildMerged] + c.states[event.ChildFailed]
	if c.states[event.ChildRequested] != 1 || c.states[event.ChildStarted] != 1 || ends != 1 ||
		c.states[event.ChildCompleted] != c.states[event.ChildMerged] || c.states[event.ChildCanceled] > 0 {
		return fmt.Errorf("child %s has the states %v", c.place, c.states)
	}
	return nil
}

// checkTurn checks that a child has one turn: a failed one is continued.
func checkTurn(ctx context.Context, log *eventlog.Log, session string) error {
	turns := 0
	for e, err := range ownEvents(ctx, log, session) {
		if err != nil {
			return err
		}
		if e.Type.Name() == event.TurnStarted {
			turns++
		}
	}
	if turns != 1 {
		return fmt.Errorf("child session %q began %d turns", session, turns)
	}
	return nil
}

// outcomeOf describes what the session of the agent and the sessions below it have left,
// without ids and times.
func outcomeOf(ctx context.Context, log *eventlog.Log) ([]string, error) {
	return treeOutcome(ctx, log, agentSession, "")
}

func treeOutcome(ctx context.Context, log *eventlog.Log, session, path string) ([]string, error) {
	own, err := sessionOutcome(ctx, log, session)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, line := range own {
		lines = append(lines, path+" "+line)
	}
	children, err := offspringOf(ctx, log, session)
	for _, c := range children {
		place := path + "/" + c.place
		lines = append(lines, fmt.Sprintf("%s %s, failed %d: %s", place, c.mode, c.states[event.ChildFailed], c.summary))
		if err == nil {
			var below []string
			below, err = treeOutcome(ctx, log, c.session, place)
			lines = append(lines, below...)
		}
	}
	return lines, err
}

// checkFamily checks the sessions of the store: they are the agent's session and the
// children that the logs of their parents name. All have ended, and verify finds nothing.
// The cost of the tree is the sum of their costs.
func checkFamily(ctx context.Context, log *eventlog.Log) (sessions int, err error) {
	all, err := sessionsOf(ctx, log)
	if err != nil {
		return 0, err
	}
	named := []string{agentSession}
	for _, session := range all {
		children, err := offspringOf(ctx, log, session)
		for _, c := range children {
			named = append(named, c.session)
			err = errors.Join(err, c.check(), checkTurn(ctx, log, c.session))
		}
		if err = errors.Join(err, verifySilent(ctx, log, session)); err != nil {
			return 0, fmt.Errorf("session %q: %w", session, err)
		}
	}
	slices.Sort(named)
	if slices.Sort(all); !slices.Equal(all, named) {
		return 0, fmt.Errorf("the store has the sessions %q, and the logs name %q", all, named)
	}
	return len(all), errors.Join(checkEnded(ctx, log, len(all)), checkCost(ctx, log, len(all)))
}

// checkEnded checks that n sessions have ended, with nothing open.
func checkEnded(ctx context.Context, log *eventlog.Log, n int) error {
	for info, err := range flow.Runs(ctx, log) {
		if err != nil {
			return err
		}
		n--
		ended := info.Status == flow.StatusFinished || info.Status == flow.StatusFailed && info.Parent != ""
		if !ended || len(info.Effects)+len(info.Children)+len(info.Approvals)+len(info.Waits)+len(info.Calls) > 0 {
			return fmt.Errorf("session %q is %s; open: %+v", info.Session, info.Status, info.Pending)
		}
	}
	if n != 0 {
		return fmt.Errorf("%d sessions had no runner", n)
	}
	return nil
}

// checkCost checks that the cost of the tree is the cost of its n sessions.
func checkCost(ctx context.Context, log *eventlog.Log, n int) error {
	tree, err := stats.LoadTreeCost(ctx, log, agentSession)
	if err != nil {
		return err
	}
	var sum event.Cost
	for _, x := range tree.Sessions {
		sum += x.Own.Cost
	}
	if sum != tree.Total.Cost || len(tree.Sessions) != n || len(tree.Missing) > 0 {
		return fmt.Errorf("the tree of %d sessions costs %v; its %d sessions cost %v, missing %q", n, tree.Total.Cost, len(tree.Sessions), sum, tree.Missing)
	}
	return nil
}

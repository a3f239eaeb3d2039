//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

// person does from outside what an agent cannot do by itself: it posts inputs, answers
// reviews, sends signals, and reconciles effects. All that it says depends only on the
// question.
type person struct {
	log   *eventlog.Log
	diary func() (diary, error)
	turns int

	seen     atomic.Int64 // events
	turn     atomic.Int64 // turns begun
	answered atomic.Int64
	fromTop  atomic.Int64 // answers for a child in the agent's session
	audits   atomic.Int64 // own events of tools
	// meanwhile are the hibernations in which the next input was posted.
	meanwhile atomic.Int64
	// reconciled counts effects, notRun the reconciled effects that had not run. They are for
	// the goroutine that calls reconcile.
	reconciled, notRun int64

	group sync.WaitGroup // one for each child session that is watched

	mu      sync.Mutex
	watched map[string]context.CancelFunc     // by session
	asked   map[string]*event.ApprovalRequest // reviews of children to answer in the agent's session
	blocked map[string]bool                   // these reviews, as far as its log names them
}

// begin begins the session with its first input.
func (p *person) begin(ctx context.Context) error { return p.post(ctx, 0) }

// post posts the input of a turn. One that the session has is not stored again.
func (p *person) post(ctx context.Context, n int) error {
	if n >= p.turns {
		return nil
	}
	return post(ctx, p.log, agentSession, inputOf(n))
}

// attend watches the session and its children, and reacts until all turns have ended.
func (p *person) attend(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer p.group.Wait()
	defer stop(nil)
	p.mu.Lock()
	p.watched, p.asked, p.blocked = map[string]context.CancelFunc{agentSession: func() {}}, map[string]*event.ApprovalRequest{}, map[string]bool{}
	p.mu.Unlock()
	err := p.watch(ctx, stop, agentSession)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// watch reacts to the own events of a session until all turns of the agent have ended.
func (p *person) watch(ctx context.Context, stop context.CancelCauseFunc, session string) error {
	ended := 0
	for e, err := range p.log.Watch(ctx, session, 1) {
		if err == nil && e.SessionID != session {
			continue
		}
		if err == nil {
			p.seen.Add(1)
			err = p.react(ctx, stop, session, &e)
		}
		if err != nil {
			return fmt.Errorf("session %q: event %d (%s): %w", session, e.Seq, e.Type, err)
		}
		if session == agentSession && e.Type.Name() == event.TurnCompleted {
			ended++
		}
		if ended == p.turns {
			return nil
		}
	}
	return ctx.Err()
}

func (p *person) react(ctx context.Context, stop context.CancelCauseFunc, session string, e *event.Event) error {
	switch e.Type.Name() {
	case event.TurnStarted:
		if session != agentSession {
			return nil
		}
		n := int(p.turn.Add(1))
		return errors.Join(p.post(ctx, n), p.post(ctx, n-1))
	case "torture:audited":
		p.audits.Add(1)
		return nil
	case event.TurnHibernated:
		if session != agentSession {
			return nil
		}
		p.meanwhile.Add(1)
		n := int(p.turn.Load())
		return errors.Join(p.post(ctx, n+1), p.post(ctx, n-1))
	case event.ApprovalRequested:
		q, _, err := event.Decode[event.ApprovalRequest](e)
		if err != nil {
			return err
		}
		if session != agentSession && hashOf(q.InterruptID)%2 == 0 {
			return p.answerFromTop(ctx, q.InterruptID, &q)
		}
		return p.answer(ctx, session, &q)
	case event.WaitStarted:
		w, _, err := event.Decode[event.Wait](e)
		if err != nil || w.Reason == "sleep" {
			return err
		}
		_, err = flow.Resolve(ctx, p.log, session, w.WaitID, "value of "+w.Reason, "a person")
		return err
	}
	if state, ok := e.Type.ChildState(); ok {
		c, _, err := event.Decode[event.Child](e)
		if err != nil {
			return err
		}
		return p.reactToChild(ctx, stop, session, state, &c)
	}
	return nil
}

// reactToChild watches a child from its start to its end.
func (p *person) reactToChild(ctx context.Context, stop context.CancelCauseFunc, session string, state event.ChildState, c *event.Child) error {
	p.mu.Lock()
	unwatch := p.watched[c.ChildSessionID]
	p.mu.Unlock()
	switch state {
	case event.ChildStarted:
		inner, cancel := context.WithCancel(ctx)
		p.mu.Lock()
		p.watched[c.ChildSessionID] = cancel
		p.mu.Unlock()
		p.group.Go(func() {
			if err := p.watch(inner, stop, c.ChildSessionID); inner.Err() == nil {
				stop(err)
			}
		})
	case event.ChildBlocked:
		if session == agentSession && c.InterruptID != "" {
			return p.answerFromTop(ctx, c.InterruptID, nil)
		}
	case event.ChildMerged, event.ChildFailed:
		p.mu.Lock()
		delete(p.watched, c.ChildSessionID)
		p.mu.Unlock()
		unwatch()
	}
	return nil
}

// answerFromTop answers a review of a child in the agent's session, as soon as its log
// names the review. q is nil if the log names it now.
func (p *person) answerFromTop(ctx context.Context, interrupt string, q *event.ApprovalRequest) error {
	p.mu.Lock()
	if q != nil {
		p.asked[interrupt] = q
	} else {
		p.blocked[interrupt] = true
	}
	q = p.asked[interrupt]
	ready := q != nil && p.blocked[interrupt]
	if ready {
		delete(p.asked, interrupt)
	}
	p.mu.Unlock()
	if !ready {
		return nil
	}
	p.fromTop.Add(1)
	return p.answer(ctx, agentSession, q)
}

func (p *person) answer(ctx context.Context, session string, q *event.ApprovalRequest) error {
	p.answered.Add(1)
	_, err := flow.Decide(ctx, p.log, session, answerTo(q))
	return err
}

// answerTo approves three of five requests.
func answerTo(q *event.ApprovalRequest) flow.Answer {
	a := flow.Answer{Review: projection.OpenApproval{InterruptID: q.InterruptID, EffectID: q.EffectID, ArgumentsDigest: q.ArgumentsDigest},
		By: "a person", Decision: event.Approved}
	switch hashOf(q.Name+string(q.Arguments)) % 5 {
	case 0:
		a.Decision, a.Reason = event.Denied, "no"
	case 1:
		a.Decision, a.Value = event.Answered, "answer to "+q.Name
	}
	return a
}

// reconcile records the outcome of each effect that began and may not run again, in the
// agent's session and the children that have not ended.
func (p *person) reconcile(ctx context.Context) error {
	p.mu.Lock()
	sessions := slices.Collect(maps.Keys(p.watched))
	p.mu.Unlock()
	for _, session := range sessions {
		if err := p.reconcileIn(ctx, session); err != nil {
			return fmt.Errorf("session %q: %w", session, err)
		}
	}
	return nil
}

// reconcileIn is reconcile in one session. An effect that has no line in the diary did
// not run.
func (p *person) reconcileIn(ctx context.Context, session string) error {
	info, err := flow.Info(ctx, p.log, session)
	if err != nil || info.Runner != "" || info.Turn == nil {
		return err
	}
	d, err := p.diary()
	if err != nil {
		return err
	}
	for _, x := range info.Effects {
		if !byPerson(x.Class) || !x.RetryAt.IsZero() || x.TurnID != info.Turn.ID {
			continue
		}
		ran := slices.ContainsFunc(d.executions, func(r execution) bool { return r.key == x.Key && r.attempt == x.Attempt })
		o := flow.Outcome{By: "a person", DidNotRun: !ran, Result: resultOf(x.Name)}
		if x.Kind == "tool" {
			if o.Result, err = p.toolResult(ctx, session, x.Key); err != nil {
				return err
			}
		}
		_, err := flow.Reconcile(ctx, p.log, session, x.Key, o)
		if errors.Is(err, flow.ErrAlreadyRunning) || errors.Is(err, flow.ErrNotOpen) { // a runner ended the effect after Info read it
			return nil
		}
		if err != nil {
			return err
		}
		p.reconciled++
		if !ran {
			p.notRun++
		}
	}
	return nil
}

// toolResult is the result that a tool call would have returned.
func (p *person) toolResult(ctx context.Context, session, key string) (string, error) {
	for e, err := range p.log.Read(ctx, session, eventlog.All().Backward()) {
		if err != nil {
			return "", err
		}
		if e.Type.Name() != event.EffectIntended {
			continue
		}
		x, _, err := event.Decode[event.EffectIntent](&e)
		if err != nil || x.Key == key {
			return resultOf(string(x.Arguments)), err
		}
	}
	return "", fmt.Errorf("effect %q has no intent", key)
}

// accompany runs an agent in this process until it has ended all turns.
func (p *person) accompany(ctx context.Context, a *flow.Agent[tally]) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- a.Serve(serving) }()
	err := p.attend(ctx)
	stop()
	return errors.Join(err, <-served)
}

package flow

import (
	"context"
	"sync"

	"github.com/convlog/convlog/projection"
)

// maxParked is how many sessions keep their states in memory between two runs.
const maxParked = 16

// parking keeps the states of the sessions that ran last, so that the next run of the same
// agent reads only the events since.
type parking struct {
	mu    sync.Mutex
	lives []parkedStates // oldest first
}

type parkedStates struct {
	agent   any // the *Agent
	session string
	live    *projection.Live
}

var parked parking

// put keeps the states of a session. The caller does not use them any more.
func (p *parking) put(x parkedStates) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lives = append(p.lives, x)
	if len(p.lives) > maxParked {
		p.lives = append([]parkedStates(nil), p.lives[len(p.lives)-maxParked:]...)
	}
}

// take returns the states of a session, and keeps them no longer; nil if there are none.
func (p *parking) take(agent any, session string) *projection.Live {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, x := range p.lives {
		if x.agent == agent && x.session == session {
			p.lives = append(p.lives[:i:i], p.lives[i+1:]...)
			return x.live
		}
	}
	return nil
}

// resume loads the states of a session, or brings parked ones up to date.
func (s *settings) resume(ctx context.Context, session string) (*projection.Live, error) {
	if s.agent != nil {
		if live := parked.take(s.agent, session); live != nil && bounded(ctx, func() error { return live.Follow(ctx) }) == nil {
			return live, nil
		}
	}
	return resume(ctx, s.log, session, s.set, s.options.Snapshots)
}

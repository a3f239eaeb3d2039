package flow

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// ServeOptions configure Serve. The zero value is ready for use.
type ServeOptions struct {
	// Concurrency is the number of sessions that run at a time; 16 if 0.
	Concurrency int
	// Poll is how often all sessions are looked at if the store cannot tell which ones
	// changed; 1 s if 0.
	Poll time.Duration
}

// Serve runs the sessions of this agent that have something to do, until ctx ends:
// crashed turns, answered reviews, due timers and posted inputs. It leaves sessions of
// other runners alone. When ctx ends it stops the running turns, which stay open, and
// returns nil. An error of one session does not end the others: it is logged, and the
// session is tried again when it changes.
func (a *Agent[S]) Serve(ctx context.Context, o ServeOptions) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	v := &server{settings: s, slots: make(chan struct{}, o.Concurrency), poll: o.Poll, heads: map[string]seen{}, running: map[string]bool{}}
	return v.run(ctx)
}

// server runs the sessions of one agent.
type server struct {
	*settings
	slots chan struct{}
	poll  time.Duration

	mu      sync.Mutex
	heads   map[string]seen
	running map[string]bool
	group   sync.WaitGroup
}

// seen is what the server knows about a session at a head.
type seen struct {
	version uint64
	due     time.Time         // when a timer ends; zero is never
	claim   *projection.Claim // of a runner that is alive
}

func (v *server) run(ctx context.Context) error {
	defer v.group.Wait()
	for {
		if err := v.pass(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if err := sleep(ctx, v.poll); err != nil {
			return nil
		}
	}
}

// pass looks at all sessions once.
func (v *server) pass(ctx context.Context) error {
	for info, err := range v.log.Sessions(ctx) {
		if err != nil {
			return err
		}
		if info.Err == nil {
			v.look(ctx, info.ID)
		}
	}
	return nil
}

// look starts a session if it has something to do. It does not read a session that has
// not changed and has no timer that ended.
func (v *server) look(ctx context.Context, session string) {
	version, err := v.versionOf(ctx, session)
	v.mu.Lock()
	last, known := v.heads[session]
	busy := v.running[session]
	v.mu.Unlock()
	if busy || err != nil || known && last.version == version && v.unchanged(ctx, session, &last) {
		return
	}
	info, err := Info(ctx, v.log, session)
	if err != nil {
		v.options.Logger.WarnContext(ctx, "session cannot be read", "session", session, "error", err)
	}
	v.mu.Lock()
	v.heads[session] = seen{version: version, due: info.Due}
	if info.Runner != "" {
		v.heads[session] = seen{version: version, due: info.Due, claim: info.Claim}
	}
	v.mu.Unlock()
	if err == nil && v.wants(&info) {
		v.start(ctx, session)
	}
}

// unchanged reports whether a session without new events has nothing new to do: no timer
// ended, and no runner was killed.
func (v *server) unchanged(ctx context.Context, session string, last *seen) bool {
	if last.claim != nil {
		held, err := alive(ctx, v.log, session, last.claim)
		return held || err != nil
	}
	return last.due.IsZero() || v.now().Before(last.due)
}

func (v *server) versionOf(ctx context.Context, session string) (uint64, error) {
	if x, ok := eventlog.As[eventlog.Versioner](v.log.Store()); ok {
		return x.Version(ctx, session)
	}
	head, err := v.log.Head(ctx, session)
	return uint64(head.Seq), err
}

// wants reports whether a session has work for this agent.
func (v *server) wants(info *RunInfo) bool {
	if info.Runner != "" || info.Agent != v.name {
		return false
	}
	if info.Aborted != nil && isFlowTurn(info.Aborted) {
		return true
	}
	if info.Turn == nil || !isFlowTurn(info.Turn) {
		return len(info.Inbox) > 0
	}
	return !hibernates(&info.Pending) || hibernatedOf(info.Session, &info.Pending).due(v.now())
}

// start runs a session when a slot is free.
func (v *server) start(ctx context.Context, session string) {
	v.mu.Lock()
	v.running[session] = true
	v.mu.Unlock()
	v.group.Go(func() {
		select {
		case v.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-v.slots }()
		err := v.serveSession(ctx, session)
		v.finished(ctx, session, err)
	})
}

// finished forgets what is known of a session, so that the next pass looks at it again. A
// session that stopped with an error is left alone until it changes.
func (v *server) finished(ctx context.Context, session string, err error) {
	version, failed := uint64(0), error(nil)
	if err != nil {
		version, failed = v.versionOf(ctx, session)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.running, session)
	delete(v.heads, session)
	if err != nil && failed == nil {
		v.heads[session] = seen{version: version}
	}
}

// serveSession runs a session until it has nothing to do. It returns the error that
// stopped the session before that.
func (v *server) serveSession(ctx context.Context, session string) error {
	r, _, err := v.open(ctx, Session(session), StartOptions{})
	if err == nil {
		r.out.close()
		r.closed = true
		inner, stop := context.WithCancelCause(ctx)
		err = r.serve(inner, stop)
	}
	var pause *Hibernated
	if err == nil || ctx.Err() != nil || errors.As(err, &pause) || errors.Is(err, ErrAlreadyRunning) {
		return nil
	}
	v.options.Logger.WarnContext(ctx, "session stopped", "session", session, "error", err)
	return err
}

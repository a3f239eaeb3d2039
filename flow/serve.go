package flow

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Serve runs the sessions of this agent that have something to do, until ctx ends:
// crashed turns, answered reviews, due timers and posted inputs, also of other processes.
// It leaves sessions of other runners alone, and open turns of other stores (*HomeError). When ctx ends it stops the running turns,
// which stay open, and returns nil. An error of one session does not end the others: it is
// logged, and the session runs again after it changed, or a child of it that stopped it; after
// each failure in a row later. After some of them the turn is marked as failed, unless its
// error asks a person to act (*DivergenceError, ErrNeedsReconcile).
func (a *Agent[S]) Serve(ctx context.Context) error {
	s, err := a.settings(true)
	if err != nil {
		return err
	}
	v := &server{settings: s, slots: make(chan struct{}, s.options.Concurrency), poll: s.options.Poll, known: map[string]known{}, parents: map[string]string{},
		running: map[string]bool{}, changed: map[string]bool{}, failed: map[string]failure{}, wake: make(chan struct{}, 1)}
	return v.run(ctx)
}

// server runs the sessions of one agent.
type server struct {
	*settings
	home  string // the id of the store
	slots chan struct{}
	poll  time.Duration
	wake  chan struct{} // has an element if changed is not empty
	group sync.WaitGroup

	mu      sync.Mutex
	known   map[string]known
	parents map[string]string // of the children that a session waits for
	running map[string]bool
	changed map[string]bool // to look at; "" is all sessions
	failed  map[string]failure
}

// failure describes a session whose runs stopped with errors.
type failure struct {
	times int       // in a row
	until time.Time // the session does not run before
	again bool      // it changed meanwhile
}

// The delay after a run that failed doubles from firstBackoff to maxBackoff. After maxFailures
// in a row, the turn fails.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	maxFailures  = 8
)

// backsOff reports whether a session does not run yet, after a run that failed.
func (v *server) backsOff(session string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.failed[session]
	if !ok || !v.now().Before(f.until) {
		return false
	}
	f.again = true
	v.failed[session] = f
	return true
}

// noteFailure counts a run that failed, and returns the number in a row; nil ends the row.
func (v *server) noteFailure(session string, err error) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		delete(v.failed, session)
		return 0
	}
	f := v.failed[session]
	f.until = v.now().Add(min(firstBackoff<<min(f.times, 16), maxBackoff))
	f.times++
	v.failed[session] = f
	return f.times
}

// giveUp marks the open turn of a session as failed, unless its error asks a person to act.
func (v *server) giveUp(ctx context.Context, session string, failed error) error {
	if errors.As(failed, new(*DivergenceError)) || errors.As(failed, new(*HomeError)) || errors.Is(failed, ErrNeedsReconcile) || !leaveOpen(failed) {
		return nil
	}
	_, err := change(ctx, v.log, session, func(s *outside) ([]event.Event, error) {
		t := s.pending.Turn
		if t == nil || !isFlowTurn(t) || t.Agent != v.name {
			return nil, nil
		}
		if err := checkAlone(ctx, v.log, session, s.pending.Claim); err != nil {
			return nil, err
		}
		rec, err := loadRecords(ctx, v.log, session, t, s.loaded.Head, nil)
		if err != nil {
			return nil, err
		}
		c := event.TurnCompletion{TurnID: t.ID, Status: event.TurnStatusFailed, StopReason: "failed", Code: codeStopped, Error: clean(failed),
			Steps: rec.spent.calls, Usage: rec.spent.usage, DurationMS: rec.spent.busy.Milliseconds()}
		return []event.Event{event.New(c), event.New(event.HeadMove{To: rec.before, Reason: "the turn failed"})}, nil
	})
	return err
}

// known describes a session at a version, as the server saw it last.
type known struct {
	version uint64
	due     time.Time         // when a timer ends; zero is never
	claim   *projection.Claim // of a runner that is alive
}

func (v *server) run(ctx context.Context) (err error) {
	if v.home, err = v.log.StoreID(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer v.group.Wait()
	defer stop(nil)
	notifier, notified := eventlog.As[eventlog.Notifier](v.log.Store())
	if notified {
		v.group.Go(func() { v.listen(ctx, notifier, stop) })
	}
	tick := time.NewTicker(v.poll)
	defer tick.Stop()
	v.change("")
	for {
		select {
		case <-v.wake:
		case <-tick.C:
			v.expire(!notified)
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		}
		if err := v.lookAtChanges(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// listen collects the sessions that the store reports. It ends the server if the store
// fails.
func (v *server) listen(ctx context.Context, n eventlog.Notifier, stop context.CancelCauseFunc) {
	for session, err := range n.Changes(ctx) {
		if err != nil {
			stop(err)
			return
		}
		v.change(session)
	}
}

// change asks to look at a session, or at all.
func (v *server) change(session string) {
	v.mu.Lock()
	v.changed[session] = true
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// expire asks to look at the sessions whose timer ended or that had another runner, or at
// all.
func (v *server) expire(all bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if all {
		v.changed[""] = true
		return
	}
	now := v.now()
	for session, f := range v.failed {
		if f.again && !now.Before(f.until) {
			f.again = false
			v.failed[session], v.changed[session] = f, true
			delete(v.known, session) // look reads it, also if only a child has changed
		}
	}
	for session, k := range v.known {
		if k.claim != nil || !k.due.IsZero() && !now.Before(k.due) {
			v.changed[session] = true
		}
	}
}

func (v *server) lookAtChanges(ctx context.Context) error {
	v.mu.Lock()
	changed := v.changed
	v.changed = map[string]bool{}
	v.mu.Unlock()
	if !changed[""] {
		for session := range changed {
			v.look(ctx, session, false)
		}
		return nil
	}
	for info, err := range v.log.Sessions(ctx) {
		if err != nil {
			return err
		}
		if info.Err == nil {
			v.look(ctx, info.ID, false)
		}
	}
	return nil
}

// look starts a session if it has something to do. It does not read a session that has
// not changed and has no timer that ended, unless a child of it has changed.
func (v *server) look(ctx context.Context, session string, child bool) {
	version, err := v.versionOf(ctx, session)
	v.mu.Lock()
	last, seen := v.known[session]
	busy := v.running[session]
	parent := v.parents[session]
	v.mu.Unlock()
	if busy || err != nil || !child && seen && last.version == version && v.unchanged(ctx, session, &last) {
		return
	}
	if parent != "" {
		v.mu.Lock()
		delete(v.parents, session) // the parent adds it again if it still waits
		v.mu.Unlock()
		v.look(ctx, parent, true)
	}
	info, err := Info(ctx, v.log, session)
	if err != nil {
		v.options.Observe.Logger.WarnContext(ctx, "session cannot be read", "session", session, "error", err)
	}
	v.mu.Lock()
	if v.known[session] != last { // a runner left it meanwhile
		v.mu.Unlock()
		v.change(session)
		return
	}
	now := known{version: version, due: info.Due}
	if info.Runner != "" {
		now.claim = info.Claim
	}
	v.known[session] = now
	if info.hibernated != nil {
		for _, child := range info.hibernated.sessions {
			v.parents[child] = session
		}
	}
	v.mu.Unlock()
	if err != nil || !v.wants(&info) {
		return
	}
	if err := checkHome(session, v.home, &info.Pending, info.Turn != nil && isFlowTurn(info.Turn)); err != nil {
		v.options.Observe.Logger.WarnContext(ctx, "session is left alone", "session", session, "error", err)
		return
	}
	if !v.backsOff(session) {
		v.start(ctx, session)
	}
}

// unchanged reports whether a session without new events has nothing new to do: no timer
// ended, and no runner was killed.
func (v *server) unchanged(ctx context.Context, session string, last *known) bool {
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
	if info.Runner != "" || info.Agent != v.name || info.Parent != "" {
		return false
	}
	if info.Aborted != nil && isFlowTurn(info.Aborted) {
		return true
	}
	if info.Turn == nil || !isFlowTurn(info.Turn) {
		return len(info.Inbox) > 0
	}
	return info.hibernated == nil || info.hibernated.due(v.now())
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
		head, err := v.serveSession(ctx, session)
		v.finished(ctx, session, head, err)
	})
}

// finished drops the description of a session, so that look reads the session again. A
// session that stopped with an error is left alone until it changes, or the child changes
// whose error it was.
func (v *server) finished(ctx context.Context, session string, head event.Head, err error) {
	var left map[string]known
	if err != nil {
		left = v.left(ctx, &childError{session, head, err})
	}
	v.mu.Lock()
	delete(v.known, session)
	for x, now := range left {
		v.known[x] = now
		if x != session {
			v.parents[x] = session
		}
	}
	delete(v.running, session) // look leaves the session alone until here
	v.mu.Unlock()
	v.change(session)
}

// left describes a session that stopped, and the children below it that stopped it; nil
// if one of them has changed since.
func (v *server) left(ctx context.Context, stopped *childError) map[string]known {
	left := map[string]known{}
	for e, more := stopped, true; more; more = errors.As(e.err, &e) {
		now, changed := v.knownSince(ctx, e)
		if changed {
			return nil
		}
		left[e.session] = now
	}
	return left
}

// knownSince describes a session that stopped. changed reports that the session has another
// head than its runner left, or that it had another runner, which has ended.
func (v *server) knownSince(ctx context.Context, e *childError) (now known, changed bool) {
	version, err := v.versionOf(ctx, e.session)
	now.version = version
	switch {
	case err != nil:
	case e.head != event.Head{}:
		head, err := v.log.Head(ctx, e.session)
		return now, err == nil && head != e.head
	case errors.Is(e.err, ErrAlreadyRunning):
		info, err := Info(ctx, v.log, e.session)
		now.claim = info.Claim
		return now, err == nil && info.Runner == ""
	}
	return now, false
}

// serveSession runs a session until it has nothing to do. It returns the error that
// stopped the session before that, and the head that the runner left; it is zero if there
// was no runner.
func (v *server) serveSession(ctx context.Context, session string) (head event.Head, err error) {
	o, err := v.open(ctx, &start{session: session})
	if errors.Is(err, ErrAlreadyRunning) {
		return head, nil
	}
	if err == nil {
		r := o.r
		r.out.close()
		err = r.serve(ctx)
		r.mu.Lock()
		head = r.live.Head
		r.mu.Unlock()
	}
	var pause *Hibernated
	if err == nil || ctx.Err() != nil || errors.As(err, &pause) {
		v.noteFailure(session, nil)
		return head, nil
	}
	v.options.Observe.Logger.WarnContext(ctx, "session stopped", "session", session, "error", err)
	if v.noteFailure(session, err) < maxFailures {
		return head, err
	}
	if failed := v.giveUp(ctx, session, err); failed != nil {
		v.options.Observe.Logger.WarnContext(ctx, "the turn could not be marked as failed", "session", session, "error", failed)
	}
	return head, err
}

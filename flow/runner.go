package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/sink"
)

// runner runs the turns of one claimed session. It appends the events of each line at once:
//
//	an input is sent:  session_started and run_claimed if they are new, external_input
//	its turn begins:   message_added …, turn_started
//	model call:        effect_intended, step_started
//	its answer:        message_added …, step_completed, op_logged …, effect_completed
//	tool call:         effect_intended, tool_started
//	its result:        tool_completed, message_added, events of the tool, effect_completed
//	the turn failed:   turn_completed, head_moved to before the input
//	retry:             head_moved to the event before the turn_completed, an effect_completed
//	                   with retry_at for each failed effect of the last batch
//
// The events of a batch may share an append.
type runner struct {
	*settings
	session string
	home    string // the id of the store, empty if it has none
	epoch   int64
	lease   eventlog.Lease
	out     *stream
	sinks   *sink.Run
	// player gives the effects their recorded outcomes in a test; nil if effects run.
	player playback.Player

	appended atomic.Int64 // the seq of the newest event that the runner has appended

	mu   sync.Mutex // guards what follows
	live *projection.Live
	turn *turn // the running turn, nil if none runs
	// resume is the hibernation that the caller asked to resume, whatever its reason.
	resume    string
	snapshots []string
	foreign   int64 // the newest event of the path that another writer appended
	// unsynced is the head after intents that may not be on disk; zero if a durable append
	// followed.
	unsynced  event.Head
	rendering projection.Rendering
	fresh     *records // of the turn that this runner began last
	last      lastTurn
	ends      map[string]lastTurn // by input
	steered   map[string]bool     // the inputs that went into the running turn
	stored    *event.Event        // the input that the claim stored, nil if it stored none
	// wanted is the input whose chunks the client wants; empty is all. pausedInput is the
	// input of the turn that hibernates.
	wanted, pausedInput string

	changed chan struct{} // closed when the session changes next
}

// lastTurn is how a turn of this runner ended.
type lastTurn struct {
	end   TurnEnd
	err   error
	index int // of the turn
}

// settings are the parts of an Agent that do not depend on its state.
type settings struct {
	name, version string
	agent         any // the *Agent; nil for a child
	stateVersion  int
	log           *eventlog.Log
	options       Options
	depth         int    // the number of sessions above
	root          string // the session at the root of the tree; empty for the root itself
	set           projection.Set
	telemetry     *telemetry
	// run executes the turn function.
	run func(ctx context.Context, t *turn) error
	// migrate returns a custom state in the version of the agent.
	migrate func(projection.CustomState) (doc []byte, err error)
}

// signal tells the loop, and waits in this process, that the session has changed. The
// caller holds r.mu.
func (r *runner) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// append appends the events that build returns, durably. If another writer appended
// meanwhile, it folds the new events and calls build again. The caller holds r.mu.
func (r *runner) append(ctx context.Context, build func() ([]event.Event, error)) error {
	events, err := build()
	if err != nil || len(events) == 0 {
		return err
	}
	for {
		err := r.appendDurable(ctx, events...)
		switch {
		case errors.Is(err, eventlog.ErrConflict):
			if err := r.checkUnsynced(ctx); err != nil {
				return err
			}
			if err := r.follow(ctx); err != nil {
				return err
			}
			if events, err = build(); err != nil || len(events) == 0 {
				return err
			}
		case err != nil:
			return fmt.Errorf("session %q: %w", r.session, err)
		default:
			return nil
		}
	}
}

// appendEvents is append for events that do not depend on the new events of others.
func (r *runner) appendEvents(ctx context.Context, events ...event.Event) error {
	return r.append(ctx, func() ([]event.Event, error) { return events, nil })
}

// newest is the place of the newest event of the session, which has an id. The caller
// holds r.mu, and has appended the event.
func (r *runner) newest(id ulid.ULID) point {
	info, _ := projection.State(r.live, projection.Info())
	return point{seq: r.live.Head.Seq, id: id, time: info.Updated}
}

// follow folds the events that other writers appended. It returns an error if one of
// them stops the runner. The caller holds r.mu.
func (r *runner) follow(ctx context.Context) error {
	return bounded(ctx, func() error { return r.readOn(ctx) })
}

func (r *runner) readOn(ctx context.Context) error {
	for e, err := range r.log.Read(ctx, r.session, eventlog.From(r.live.Head.Seq+1)) {
		if err == nil {
			err = r.absorb(ctx, &e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// absorb folds an event of another writer. The caller holds r.mu.
func (r *runner) absorb(ctx context.Context, e *event.Event) error {
	if e.Seq <= r.live.Head.Seq {
		return nil
	}
	if err := r.mayFollow(e); err != nil {
		return err
	}
	if err := r.live.Fold(ctx, *e); err != nil {
		return err
	}
	if e.Type.Scope() == event.PathScope {
		r.foreign = e.Seq
	}
	if e.Type.Name() == event.AbortRequested {
		return r.abort(e)
	}
	r.signal()
	return nil
}

// mayFollow returns an error if an event of another writer stops the runner: a claim, a moved
// head, an event of a turn, an effect or a child, or a change of the agent's own state. Other
// writers append all other events, also of unknown types.
func (r *runner) mayFollow(e *event.Event) error {
	name := e.Type.Name()
	_, child := e.Type.ChildState()
	stops := child || slices.Contains(runnersOnly, name)
	if name == event.CustomPatched {
		p, _, err := event.Decode[event.CustomPatch](e)
		stops = err != nil || p.Name == r.name
	}
	if stops {
		return fmt.Errorf("session %q: event %d is %s, and only the runner appends it: %w", r.session, e.Seq, name, ErrOvertaken)
	}
	return nil
}

// runnersOnly are the events that a runner appends, besides the events of children.
var runnersOnly = []event.Type{event.RunClaimed, event.RunReleased, event.HeadMoved, event.TurnStarted, event.TurnCompleted, event.TurnHibernated,
	event.TurnResumed, event.EffectIntended, event.EffectCompleted, event.StepStarted, event.StepCompleted, event.ToolStarted, event.ToolCompleted}

// abort cancels the running turn, if the request names it or no turn.
func (r *runner) abort(e *event.Event) error {
	p, _, err := event.Decode[event.Abort](e)
	if err != nil {
		return err
	}
	if r.turn != nil && (p.TurnID.IsZero() || p.TurnID == r.turn.rec.turn) {
		r.turn.abort(p)
	}
	r.signal()
	return nil
}

// watch folds the events of other writers while the runner works, so that an abort
// reaches a running effect. It ends the runner with the error of an event that stops it.
func (r *runner) watch(ctx context.Context, stop context.CancelCauseFunc) {
	r.mu.Lock()
	last := r.live.Head
	r.mu.Unlock()
	for {
		err := r.watchAfter(ctx, &last)
		if ctx.Err() != nil {
			return
		}
		if !watcherLost(ctx, r.log, r.session, last, err) {
			stop(err)
			return
		}
		last = event.Head{Seq: last.Seq - 1} // the runner appends another event in its place
	}
}

// watchAfter folds the events after the last one, and keeps the last one.
func (r *runner) watchAfter(ctx context.Context, last *event.Head) error {
	for e, err := range r.log.Watch(ctx, r.session, last.Seq+1) {
		if err != nil {
			return err
		}
		*last = e.Head()
		if e.Seq <= r.appended.Load() {
			continue
		}
		r.mu.Lock()
		err = r.absorb(ctx, &e)
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// serve runs the loop of a claimed session, and releases the claim. It claims the session again
// if an answer or an abort came after the hibernation and before the release: whoever sent it
// found a runner, and started none.
func (r *runner) serve(ctx context.Context) error {
	for {
		err := r.serveClaim(ctx)
		var pause *Hibernated
		if !errors.As(err, &pause) || ctx.Err() != nil {
			return err
		}
		if claimed, failed := r.reclaim(ctx); !claimed {
			return cmp.Or(failed, err)
		}
	}
}

// serveClaim runs the loop until the claim is released.
func (r *runner) serveClaim(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.watch(ctx, stop)
	}()
	var err, released error
	for more := true; more; {
		if err = r.leasedLoop(ctx); err == nil {
			err = r.invocationEnded(context.WithoutCancel(ctx))
		}
		if err != nil {
			break
		}
		more, released = r.release(context.WithoutCancel(ctx), nil)
	}
	stop(context.Canceled)
	<-watched
	r.finishSinks(ctx)
	if err != nil {
		_, released = r.release(context.WithoutCancel(ctx), err)
	}
	return errors.Join(err, released)
}

// reclaim claims the released session if its turn can continue now, and no other runner has
// claimed it.
func (r *runner) reclaim(ctx context.Context) (claimed bool, err error) {
	for {
		if claimed, err = r.tryReclaim(ctx); !errors.Is(err, eventlog.ErrConflict) {
			break
		}
	}
	if errors.Is(err, ErrAlreadyRunning) || errors.Is(err, ErrOvertaken) {
		return false, nil
	}
	if !claimed || err != nil {
		return false, err
	}
	r.sinks = r.options.Observe.Sinks.Run(r.log, r.session, r.root)
	if err := r.reload(ctx); err != nil {
		_, released := r.release(context.WithoutCancel(ctx), err)
		return false, errors.Join(err, released)
	}
	return true, nil
}

func (r *runner) tryReclaim(ctx context.Context) (claimed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.follow(ctx); err != nil {
		return false, err
	}
	w, err := r.nextWork(ctx)
	if err != nil || w.kind != workTurn {
		return false, err
	}
	return true, r.claim(ctx)
}

// now is the agent's clock.
func (s *settings) now() time.Time { return s.options.Now() }

// isFlowTurn reports whether a runner began the turn: it has the id of an input. Other
// turns come from imports.
func isFlowTurn(t *projection.PathTurn) bool { return t.InputID != "" }

// runs reports whether the open turn is for this runner to continue. In a fork that is a
// child, the turn of the parent is not.
func (r *runner) runs(t *projection.PathTurn) bool {
	info, _ := projection.State(r.live, projection.Info())
	return isFlowTurn(t) && (info.Fork.Child.ChildID == "" || t.Seq > info.Fork.Seq)
}

// sleep waits for a time. The error is the cause of the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

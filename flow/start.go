package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// start says where a session begins or continues.
type start struct {
	session  string
	snapshot string              // continue after it, if it is set
	place    place               // of the snapshot
	parent   event.SessionParent // of a child
	// content is the content of a session that begins. fresh reports that the session must
	// not exist.
	content func(s *settings) ([]event.Event, error)
	fresh   bool
	in      *Input // to store; nil continues
	wanted  string // the input whose chunks a client wants; empty is all
	here    bool   // it is an error if no runner starts here
	home    string // the id of the store
}

// maxClaiming is how often a start waits a millisecond for the claim, or the release, of
// another runner.
const maxClaiming = 5000

// errReleasing: the runner of a failed turn has not released the session. Only a runner moves the
// head, so the turn is opened again after that.
var errReleasing = fmt.Errorf("the runner of its failed turn releases the session now: %w", ErrAlreadyRunning)

// opened is the result of a start.
type opened struct {
	r     *runner     // has claimed the session; nil if no runner starts here
	pause *Hibernated // of the open turn, if no runner starts because of it
	ref   Ref         // of the turn of the input, or of the open turn
}

// open stores an input, and claims the session for a runner if it can run here.
func (s *settings) open(ctx context.Context, from *start) (opened, error) {
	if err := event.CheckSessionID(from.session); err != nil {
		return opened{}, fmt.Errorf("%w: %w", ErrStart, err)
	}
	err := bounded(ctx, func() (err error) {
		from.home, err = s.log.StoreID(ctx)
		return err
	})
	if err != nil {
		return opened{}, err
	}
	for tries := 0; ; tries++ {
		o, err := s.tryOpen(ctx, from)
		if (errors.Is(err, errClaiming) || errors.Is(err, errReleasing)) && tries < maxClaiming && sleep(ctx, time.Millisecond) == nil {
			continue
		}
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if errors.Is(err, eventlog.ErrExists) && ctx.Err() == nil && !from.fresh {
			continue
		}
		if o.r != nil {
			o.r.player = playback.Of(ctx, o.r.session)
		}
		return o, err
	}
}

func (s *settings) tryOpen(ctx context.Context, from *start) (opened, error) {
	live, err := s.resume(ctx, from.session)
	missing := errors.Is(err, eventlog.ErrNotFound)
	switch {
	case missing && (from.in != nil || from.fresh):
		return s.begin(ctx, from)
	case err != nil:
		return opened{}, fmt.Errorf("%w: %w", ErrStart, err)
	case from.fresh:
		return opened{}, fmt.Errorf("%w: session %q exists, and Begin gives a content to a new session only; Resume restores a snapshot: %w", ErrStart, from.session, eventlog.ErrExists)
	}
	if from.snapshot != "" {
		if from.place, err = placeOf(ctx, s.log, Ref{Session: from.session, Snapshot: from.snapshot}); err != nil {
			return opened{}, fmt.Errorf("%w: %w", ErrStart, err)
		}
	}
	r := s.newRunner(from, live)
	events, ref, err := r.storing(ctx, from.in)
	if err != nil {
		return opened{}, err
	}
	control, _ := projection.State(r.live, projection.Control())
	var pause *Hibernated
	busy := checkAlone(ctx, r.log, r.session, control.Claim)
	if busy == nil && !from.only() {
		pause, busy = r.ready(ctx, from)
	}
	switch {
	case errors.Is(busy, ErrAlreadyRunning) && len(events) > 0 && events[0].Type.Name() == event.HeadMoved:
		return opened{}, fmt.Errorf("session %q, input %q: %w", r.session, from.in.ID, errReleasing)
	case busy != nil && !(errors.Is(busy, ErrAlreadyRunning) && from.in != nil && !from.here):
		return opened{}, busy
	case pause != nil && (from.in == nil || from.here):
		return opened{}, pause
	case busy != nil || pause != nil || from.only():
		if len(events) > 0 {
			err = r.appendDurable(ctx, events...)
		}
		return opened{pause: pause, ref: ref}, err
	}
	if err := r.claim(ctx, events...); err != nil {
		return opened{}, err
	}
	if from.snapshot != "" {
		err = r.moveTo(ctx, from.place)
	}
	if err != nil {
		_, released := r.release(context.WithoutCancel(ctx), err)
		return opened{}, errors.Join(err, released)
	}
	return opened{r: r, ref: ref}, nil
}

// only reports that the input is stored, and nothing runs here.
func (from *start) only() bool { return from.in != nil && from.in.PostOnly }

func (s *settings) newRunner(from *start, live *projection.Live) *runner {
	r := &runner{settings: s, session: from.session, home: from.home, live: live, out: newStream(), sinks: s.options.Observe.Sinks.Run(s.log, from.session, s.root),
		changed: make(chan struct{}), ends: map[string]lastTurn{}, steered: map[string]bool{}, wanted: from.wanted}
	if from.in != nil {
		r.wanted = from.in.ID
	}
	return r
}

// ready returns the hibernation if the open turn cannot continue yet.
func (r *runner) ready(ctx context.Context, from *start) (pause *Hibernated, err error) {
	p, err := r.pending(ctx)
	if err == nil && playback.Of(ctx, r.session) == nil { // in a replay no effect runs
		err = checkHome(r.session, r.home, &p, p.Turn != nil && r.runs(p.Turn))
	}
	if err == nil && from.snapshot != "" {
		return r.checkSnapshot(ctx, from)
	}
	if err != nil || p.Turn == nil {
		return nil, err
	}
	if r.runs(p.Turn) && p.Turn.Agent != r.name {
		return nil, fmt.Errorf("%w: the open turn of session %q belongs to agent %q, not %q", ErrStart, r.session, p.Turn.Agent, r.name)
	}
	pause, err = r.stillWaits(ctx, &p)
	if pause != nil {
		pause.Queued = from.in != nil && p.Turn.InputID != from.in.ID
	}
	return pause, err
}

// stillWaits returns the hibernation of pending work that cannot continue yet. A
// checkpoint continues with each Resume.
func (r *runner) stillWaits(ctx context.Context, p *projection.Pending) (*Hibernated, error) {
	if !hibernates(p) || !r.runs(p.Turn) {
		return nil, nil
	}
	h, err := hibernationOf(ctx, r.log, r.session, p)
	if err != nil {
		return nil, err
	}
	if h.checkpoint() || h.due(r.now()) || h.lapsed(r.now()) {
		r.resume = h.Cursor.ID
		return nil, nil
	}
	return h, nil
}

// checkSnapshot checks that nobody continued the hibernation of a snapshot.
func (r *runner) checkSnapshot(ctx context.Context, from *start) (*Hibernated, error) {
	l, err := projection.LoadSet(ctx, r.log, r.session, projection.Of("flow:pending", projection.Calls(), projection.Control()), projection.Options{At: from.place.seq})
	if err != nil {
		return nil, err
	}
	then, err := projection.PendingOf(ctx, r.log, l)
	if err != nil || !hibernates(&then) {
		return nil, err
	}
	cursor := then.Cursor.Cursor.ID
	consumed := func(p *event.TurnResumption) bool { return p.CursorID == cursor }
	_, seq, err := find(ctx, r.log, r.session, eventlog.Between(from.place.seq, r.live.Head.Seq), consumed, event.TurnResumed)
	if err != nil {
		return nil, err
	}
	if seq > 0 {
		return nil, fmt.Errorf("snapshot %q of session %q: event %d: %w", from.snapshot, r.session, seq, ErrConsumed)
	}
	now, err := r.pending(ctx)
	if err == nil {
		err = checkHome(r.session, r.home, &now, true)
	}
	if err != nil {
		return nil, err
	}
	if hibernates(&now) && now.Cursor.Cursor.ID == cursor {
		return r.stillWaits(ctx, &now)
	}
	return nil, nil
}

// moveTo moves the head to the place of a snapshot. A checkpoint there continues.
func (r *runner) moveTo(ctx context.Context, to place) error {
	_, err := fork.Rewind(ctx, r.log, r.session, to.point, fork.Options{Reason: "start from snapshot"})
	if err != nil && !errors.Is(err, fork.Error("no_move")) {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	if err := r.live.Follow(ctx); err != nil {
		return err
	}
	p, err := r.pending(ctx)
	if err == nil && p.Turn != nil {
		_, err = r.stillWaits(ctx, &p) // sets r.resume
	}
	return err
}

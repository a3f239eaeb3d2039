package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Checkpoint says where a turn hibernates by itself, without a review or a wait. The next
// Resume continues it. The zero Checkpoint never hibernates.
type Checkpoint int

// The checkpoints.
const (
	// AfterPrompt hibernates before the first call of a model.
	AfterPrompt Checkpoint = iota + 1
	// AfterEachPhase hibernates there and before each batch of effects.
	AfterEachPhase
	// BeforeEachEffect hibernates before each effect.
	BeforeEachEffect
)

// The kinds of cursors.
const (
	pauseAfterPrompt = "after_prompt"
	pauseEffect      = "before_effect"
	pauseReview      = "review"
	pauseWait        = "wait"
	pauseChild       = "child"
)

// pause is where and why a turn hibernates.
type pause struct {
	kind, ordinal      string
	effect, effectKind string
	name               string   // of the effect
	waits              []string // ids: the first one that ends continues the turn
	until              time.Time
	// check is called before each try of the append; nil checks nothing.
	check func() error
	// events are appended with the hibernation; they name the cursor.
	events func(cursor string) []event.Event
}

// hibernate appends a hibernation and its snapshot, and ends the execution. The caller
// holds r.mu.
func (t *turn) hibernate(ctx context.Context, p pause) error {
	cursor := event.Cursor{ID: t.r.options.NewID(), Kind: p.kind, Ordinal: p.ordinal, EffectID: p.effect, EffectKind: p.effectKind, Operation: p.name, Loop: t.rec.spent.calls}
	if len(p.waits) == 1 {
		cursor.InterruptID = p.waits[0]
	} else {
		cursor.WaitIDs = p.waits
	}
	snapshot := t.r.options.NewID()
	err := t.record(ctx, func() ([]event.Event, error) {
		if p.check != nil {
			if err := p.check(); err != nil {
				return nil, err
			}
		}
		var events []event.Event
		if p.events != nil {
			events = p.events(cursor.ID)
		}
		return append(events, event.New(event.TurnHibernation{TurnID: t.rec.turn, Cursor: cursor, SnapshotID: snapshot})), nil
	})
	if err != nil {
		return err
	}
	trigger := projection.BeforeEffect
	switch p.kind {
	case pauseAfterPrompt:
		trigger = projection.AfterPrompt
	case pauseReview:
		trigger = projection.Review
	}
	made, err := t.r.snapshot(ctx, projection.Request{Trigger: trigger, TurnIndex: t.rec.start.Index, ID: snapshot, Durable: true})
	if err != nil {
		return t.stopLocked(err)
	}
	if made != "" {
		t.r.out.put(Chunk{Snapshot: made})
	}
	pause, err := t.r.hibernation(ctx)
	if err != nil {
		return t.stopLocked(err)
	}
	pause.Until = earliest(pause.Until, p.until)
	return t.stopLocked(pause)
}

// earliest is the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// hibernation describes the hibernation of the open turn; nil if it does not hibernate.
// The caller holds r.mu.
func (r *runner) hibernation(ctx context.Context) (*Hibernated, error) {
	p, err := r.pending(ctx)
	if err != nil || !hibernates(&p) {
		return nil, err
	}
	return hibernationOf(ctx, r.log, r.session, &p)
}

// hibernationOf is the hibernation of pending work that has a cursor, with the reviews of
// the children that it waits for.
func hibernationOf(ctx context.Context, log *eventlog.Log, session string, p *projection.Pending) (*Hibernated, error) {
	h := ownHibernation(session, p)
	if h.Cursor.Kind != pauseChild {
		return h, nil
	}
	for _, c := range childrenOf(p) {
		if err := h.addChild(ctx, log, c.SessionID); err != nil {
			return nil, fmt.Errorf("child session %q: %w", c.SessionID, err)
		}
	}
	return h, nil
}

// addChild adds the hibernation of a child. A child that has something to do, or ended,
// makes the parent ready.
func (h *Hibernated) addChild(ctx context.Context, log *eventlog.Log, session string) error {
	info, err := Info(ctx, log, session)
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
		h.ready = true
		return nil
	case err != nil:
		return err
	case info.Runner != "": // somebody runs the child: its end is a change
		h.sessions = append(h.sessions, session)
		return nil
	case info.Turn == nil || !hibernates(&info.Pending):
		h.ready = true
		return nil
	}
	child, err := hibernationOf(ctx, log, session, &info.Pending)
	if err != nil {
		return err
	}
	for _, r := range child.Reviews {
		r.SessionID = cmp.Or(r.SessionID, session)
		h.Reviews = append(h.Reviews, r)
	}
	h.children = append(h.children, child)
	h.sessions = append(append(h.sessions, session), child.sessions...)
	h.Until = earliest(h.Until, child.Until)
	return nil
}

// ofChildren are the reviews of children.
func (h *Hibernated) ofChildren() (reviews []projection.OpenApproval) {
	for _, r := range h.Reviews {
		if r.SessionID != "" {
			reviews = append(reviews, r)
		}
	}
	return reviews
}

// ownHibernation is the hibernation without children.
func ownHibernation(session string, p *projection.Pending) *Hibernated {
	h := &Hibernated{Ref: Ref{Session: session, Snapshot: p.Cursor.SnapshotID}, Turn: p.Turn.ID, Cursor: p.Cursor.Cursor}
	for _, a := range p.Approvals {
		if a.TurnID == h.Turn {
			h.Reviews = append(h.Reviews, a)
			h.Until = earliest(h.Until, lapsesAt(&a))
		}
	}
	for _, w := range p.Waits {
		if slices.Contains(waitsOf(&h.Cursor), w.WaitID) {
			h.Waits = append(h.Waits, w)
			h.Until = earliest(h.Until, w.Until)
		}
	}
	for _, x := range p.Effects {
		if x.TurnID == h.Turn && !x.RetryAt.IsZero() {
			h.Until = earliest(h.Until, x.RetryAt)
		}
	}
	return h
}

// askAgain is the time after which a review that expired is asked anew. So a review that
// expires soon does not keep a server busy.
const askAgain = time.Minute

// lapsesAt is when the turn continues if nobody answers a review; zero is never. An answer
// at the last instant is in time.
func lapsesAt(a *projection.OpenApproval) time.Time {
	switch {
	case a.ExpiresAt.IsZero():
		return time.Time{}
	case a.Lapse.Known() == event.LapseWait:
		return a.ExpiresAt.Add(askAgain)
	}
	return a.ExpiresAt.Add(time.Nanosecond)
}

// checkpoint reports whether the turn waits for the next Resume only.
func (h *Hibernated) checkpoint() bool {
	return h.Cursor.Kind == pauseAfterPrompt || h.Cursor.Kind == pauseEffect && h.Until.IsZero()
}

// due reports whether the turn can continue at a time: nothing is open, or it is due.
func (h *Hibernated) due(now time.Time) bool {
	if !h.Until.IsZero() && !now.Before(h.Until) {
		return true
	}
	switch h.Cursor.Kind {
	case pauseChild:
		return h.ready || slices.ContainsFunc(h.children, func(c *Hibernated) bool { return c.due(now) })
	case pauseReview:
		return len(h.Reviews) == 0
	case pauseWait:
		return len(h.Waits) < len(waitsOf(&h.Cursor))
	}
	return false
}

// lapsed reports whether an open review expired. The turn then asks anew, denies or fails.
func (h *Hibernated) lapsed(now time.Time) bool {
	return slices.ContainsFunc(h.Reviews, func(a projection.OpenApproval) bool { return !a.ExpiresAt.IsZero() && now.After(a.ExpiresAt) })
}

// atCheckpoint hibernates if the invocation asks for a checkpoint before the effects.
func (t *turn) atCheckpoint(ctx context.Context, many bool, effects []*effect) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	first := effects[0]
	for _, x := range effects {
		if x.rec != nil {
			return nil // the effects began, or the turn continues here
		}
	}
	kind := t.checkpointKind(many, first)
	if kind == "" {
		return nil
	}
	return t.hibernate(ctx, pause{kind: kind, ordinal: first.ordinal, effect: first.key, effectKind: first.kind, name: first.name})
}

// checkpointKind is the kind of the cursor before effects, empty if the turn does not
// stop there.
func (t *turn) checkpointKind(many bool, first *effect) string {
	prompt := first.kind == kindModel && t.rec.spent.calls == 0
	c := t.r.options.Checkpoint
	switch {
	case prompt && c >= AfterPrompt:
		return pauseAfterPrompt
	case many && c >= AfterEachPhase, c >= BeforeEachEffect:
		return pauseEffect
	}
	return ""
}

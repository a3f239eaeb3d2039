package projection

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Live is the states of a set of projections at a session's head. Append, Follow and
// Absorb move it forward; Snapshot appends snapshots of it. It is for one goroutine.
type Live struct {
	Loaded
	log   *eventlog.Log
	opts  LiveOptions
	stale bool // an event was folded in part
}

// LiveOptions configure a Live. The zero value takes every opportunity, with a
// body where Growth(2) says so.
type LiveOptions struct {
	// Policy decides whether an opportunity becomes a snapshot; Always if nil.
	Policy Policy
	// Bodies decides which snapshots have a body; the others are marks.
	// Growth(2) if nil.
	Bodies Policy
	// Now is the clock; time.Now if nil. NewID mints snapshot ids; random UUIDs
	// if nil.
	Now   func() time.Time
	NewID func() string
}

// Request asks for a snapshot.
type Request struct {
	Trigger   Trigger
	Reason    string
	TurnIndex int
	// ID is a snapshot id that was reserved before; minted if empty.
	ID string
	// Body makes sure that the snapshot has a body, and Durable that it is on
	// disk when Snapshot returns, whatever the store's sync policy.
	Body    bool
	Durable bool
	// Force takes it without asking the policy.
	Force bool
	// Extra is an object of the caller's own members, or nil.
	Extra []byte
}

// Resume loads a set at the head of a session, to go on from there, as do Follow
// and Absorb where they load it anew: behind a redaction or another erasure that
// is under way in the store. See Load for the errors.
func Resume(ctx context.Context, log *eventlog.Log, session string, set Set, opts ...LiveOptions) (*Live, error) {
	v := &Live{log: log}
	v.Session, v.set = session, set
	if err := v.reload(ctx, 0); err != nil {
		return nil, err
	}
	if len(opts) > 0 {
		v.opts = opts[0]
	}
	if v.opts.Policy == nil {
		v.opts.Policy = Always()
	}
	if v.opts.Bodies == nil {
		v.opts.Bodies = Growth(2)
	}
	if v.opts.Now == nil {
		v.opts.Now = time.Now
	}
	if v.opts.NewID == nil {
		v.opts.NewID = uuid.NewString
	}
	return v, nil
}

// Append appends events after v.Head and folds them, without reading them back. If
// another writer appended since, it is eventlog.ErrConflict: Follow, and decide
// again. The other errors of Log.Append mean the same here. An error after the
// events were stored, for example of a projection, is not one of them; a later
// Follow, Append or Snapshot loads the states anew.
func (v *Live) Append(ctx context.Context, events ...event.Event) (event.Head, error) {
	if err := v.refresh(ctx); err != nil {
		return event.Head{}, err
	}
	stored, err := engine.Of(v.log).Append(ctx, v.Session, v.Head, events)
	if err != nil {
		return event.Head{}, err
	}
	if err := v.Absorb(ctx, stored...); err != nil {
		return event.Head{}, fmt.Errorf("fold the events appended to session %q: %w", v.Session, err)
	}
	return v.Head, nil
}

// Follow folds the events that any writer appended since.
func (v *Live) Follow(ctx context.Context) error {
	if err := v.refresh(ctx); err != nil {
		return err
	}
	for e, err := range v.log.Read(ctx, v.Session, eventlog.From(v.Head.Seq+1)) {
		if err != nil {
			return err
		}
		if err := v.Absorb(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// Absorb takes in events as they are stored, which follow those before: others
// are ErrNotNext. A head_moved loads the states anew, and so does a redacted,
// for what was erased must not stay in them. After another error, the states are
// those of Head again only once a later call has succeeded.
func (v *Live) Absorb(ctx context.Context, events ...event.Event) error {
	for i := range events {
		e := &events[i]
		if e.Seq != v.Head.Seq+1 || e.SessionID != v.Session {
			return fmt.Errorf("%w: %d of session %q behind %d of %q", ErrNotNext, e.Seq, e.SessionID, v.Head.Seq, v.Session)
		}
		if err := v.absorb(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (v *Live) absorb(ctx context.Context, e *event.Event) error {
	if name := e.Type.Name(); v.stale || name == event.HeadMoved || name == event.Redacted {
		return v.reload(ctx, e.Seq)
	}
	if err := v.take(ctx, e); err != nil {
		v.stale = true
		return err
	}
	v.Head = e.Head()
	v.Explain.Head = v.Head
	return nil
}

// refresh loads the states anew if an event was folded in part.
func (v *Live) refresh(ctx context.Context) error {
	if !v.stale {
		return nil
	}
	return v.reload(ctx, v.Head.Seq)
}

// reload loads the states as of seq; 0 is the head. Nothing is redacted
// meanwhile: a later redaction, also of what a fork shares, appends an event to
// the session, and so no body is appended that holds what is gone.
func (v *Live) reload(ctx context.Context, seq int64) error {
	return v.log.Hold(ctx, func(ctx context.Context) error {
		l, err := LoadSet(ctx, v.log, v.Session, v.set, Options{At: seq, newest: true})
		if err != nil {
			return err
		}
		v.Loaded, v.stale = *l, false
		return nil
	})
}

// take folds an event of the path.
func (v *Live) take(ctx context.Context, e *event.Event) error {
	v.Explain.read(e)
	m := e.Effective()
	for i, f := range v.folds {
		if !inScope(f.scope(), m.Type, true) {
			continue
		}
		if err := f.apply(m); err != nil {
			return err
		}
		v.Explain.Parts[i].Folded++
	}
	if v.last.oldest.Seq == 0 {
		v.last.oldest = *e
	}
	if e.Type.Name() == event.ProjectionSnapshotted {
		return v.takeSnapshot(ctx, e)
	}
	v.last.since += eventBytes(e)
	v.last.events++
	return nil
}

// takeSnapshot takes in a snapshot that this Live or another writer appended.
func (v *Live) takeSnapshot(ctx context.Context, e *event.Event) error {
	snap, err := snapshotOf(e)
	if err != nil {
		return nil // it cannot be read, and nothing depends on it
	}
	l := &v.last
	l.event, l.snapshot, l.found, l.events = *e, snap, true, 0
	if snap.Projection != v.set.name() {
		return nil
	}
	l.digest = snap.StateDigest
	if snap.IsMark() {
		return nil
	}
	var b body
	if err = checkPast(ctx, v.log, v.Session, e, &snap, &v.Explain); err == nil {
		b, _, err = readBody(ctx, v.log, &snap)
	}
	if err == nil && serves(b, v.folds) {
		l.body, l.bodyBytes, l.since = e.Seq, b.size(), 0
	}
	if err != nil && !passes(err) {
		return err
	}
	return nil
}

// Snapshot asks the policy and appends a snapshot of the states, or a mark,
// behind v.Head. taken is false when the policy declines. ErrConflict says that
// others appended since: Follow, and ask again if it still matters. Snapshotting
// changes no state.
func (v *Live) Snapshot(ctx context.Context, r Request) (s event.Snapshot, taken bool, err error) {
	if err := v.refresh(ctx); err != nil {
		return s, false, err
	}
	o, err := v.opportunity(&r)
	if err != nil {
		return s, false, err
	}
	if !r.Force && !v.opts.Policy(o) {
		return s, false, nil
	}
	s = v.mark(&r, o)
	e, err := v.event(ctx, &s, r.Body || v.opts.Bodies(o))
	if err != nil {
		return s, false, fmt.Errorf("snapshot session %q: %w", v.Session, err)
	}
	expect := eventlog.At(v.Head)
	if r.Durable {
		expect = expect.Durable()
	}
	if _, err := v.log.Append(ctx, v.Session, expect, e); err != nil {
		return s, false, fmt.Errorf("snapshot session %q: %w", v.Session, err)
	}
	return s, true, v.Follow(ctx)
}

// opportunity describes the moment to the policies.
func (v *Live) opportunity(r *Request) (*Opportunity, error) {
	digest, err := v.Digest()
	if err != nil {
		return nil, err
	}
	o := &Opportunity{Trigger: r.Trigger, TurnIndex: r.TurnIndex, Digest: digest, Events: v.last.events, Live: v,
		Previous: v.last.digest, Bytes: v.last.since, BodyBytes: v.last.bodyBytes}
	begin := v.last.oldest.Timestamp
	if v.last.found {
		begin = v.last.event.Timestamp
		o.Index = max(v.last.snapshot.Index, v.last.snapshot.Index+1) // it may be the last number there is
	}
	o.Age = max(v.opts.Now().Sub(begin), 0)
	return o, nil
}

// mark is the snapshot without its body.
func (v *Live) mark(r *Request, o *Opportunity) event.Snapshot {
	s := event.Snapshot{
		Projection: v.set.name(), Version: v.set.version(), SnapshotID: r.ID, ParentSnapshotID: v.last.snapshot.SnapshotID,
		StateDigest: o.Digest, Index: o.Index, TurnIndex: r.TurnIndex, Trigger: string(r.Trigger), Reason: r.Reason,
		Seq: v.Head.Seq, Hash: v.Head.Hash, Extra: r.Extra,
	}
	if s.SnapshotID == "" {
		s.SnapshotID = v.opts.NewID()
	}
	return s
}

// event makes the snapshot's event, with a body if it is to have one.
func (v *Live) event(ctx context.Context, s *event.Snapshot, withBody bool) (e event.Event, err error) {
	var digests []event.Digest
	if withBody {
		if digests, err = makeBody(ctx, v.log, s, v.folds); err != nil {
			return e, err
		}
	}
	if e = event.New(*s); err != nil {
		return e, err
	}
	return e, e.AddBlobs(digests...)
}

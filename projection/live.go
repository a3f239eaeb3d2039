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
// Fold move it forward; Snapshot appends snapshots of it. It is for one goroutine.
type Live struct {
	Loaded
	log   *eventlog.Log
	opts  LiveOptions
	stale bool // an event was folded in part: load the states again
	taken bool // TakeTail was called
	any   anyBody
	// asking is the context of the running call of Snapshot, for Opportunity.PreviousStates.
	asking context.Context
}

// anyBody describes the newest body of any branch that the Live has read, and the bytes
// of all events after it.
type anyBody struct{ size, since int64 }

// LiveOptions configure a Live. The zero value appends a snapshot at each
// opportunity, and a body when the log has grown by twice the last body.
type LiveOptions struct {
	// Policy decides whether Snapshot appends a snapshot; it always does if nil. Each call
	// of Snapshot calls it once, unless Request.Force is set.
	Policy func(*Opportunity) bool
	// Bodies decides whether a snapshot gets a body; Opportunity.Grown(2) if nil. A snapshot
	// without a body is a mark.
	Bodies func(*Opportunity) bool
	// Now is the clock; time.Now if nil. NewID makes snapshot ids; random UUIDs if
	// nil.
	Now   func() time.Time
	NewID func() string
	// KeepTail keeps the events that the Live reads, for TakeTail.
	KeepTail bool
	// At loads the set as of an earlier seq, on the path that ends there. Fold moves it
	// forward, also with events that a fork shares; an append fails. 0 is the head.
	At int64
}

// Request asks for a snapshot.
type Request struct {
	Trigger   string
	Reason    string
	TurnIndex int
	// ID is a reserved snapshot id. If it is empty, NewID makes one.
	ID string
	// Body gives the snapshot a body, whatever Bodies decides. Durable syncs it to
	// disk before Snapshot returns, whatever the sync policy of the store.
	Body    bool
	Durable bool
	// Force appends the snapshot without a decision of Policy. IfChanged appends none if the
	// states equal the states of the set's newest snapshot.
	Force     bool
	IfChanged bool
	// Extra is a JSON object of the caller, or nil.
	Extra []byte
}

// Resume loads a set at the head of a session. If an erasure is under way in the
// store, Resume waits until it ends. Load lists the errors.
func Resume(ctx context.Context, log *eventlog.Log, session string, set Set, opts ...LiveOptions) (*Live, error) {
	v := &Live{log: log}
	v.Session, v.set = session, set
	if len(opts) > 0 {
		v.opts = opts[0]
	}
	if err := v.reload(ctx, v.opts.At); err != nil {
		return nil, err
	}
	if v.opts.Policy == nil {
		v.opts.Policy = func(*Opportunity) bool { return true }
	}
	if v.opts.Bodies == nil {
		v.opts.Bodies = func(o *Opportunity) bool { return o.Grown(2) }
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
// another writer appended since, the error is eventlog.ErrConflict: call Follow and
// decide again. The other errors are the errors of Log.Append. If the events are
// stored but a projection fails, the error is the error of the projection; the next
// Follow, Append or Snapshot loads the states again.
func (v *Live) Append(ctx context.Context, events ...event.Event) (event.Head, error) {
	return v.append(ctx, false, events)
}

// AppendDurable is Append. The events are on disk when it returns, whatever the sync
// policy of the store.
func (v *Live) AppendDurable(ctx context.Context, events ...event.Event) (event.Head, error) {
	return v.append(ctx, true, events)
}

func (v *Live) append(ctx context.Context, durable bool, events []event.Event) (event.Head, error) {
	if err := v.refresh(ctx); err != nil {
		return event.Head{}, err
	}
	stored, err := engine.Of(v.log).Append(ctx, v.Session, v.Head, durable, events...)
	if err != nil {
		return event.Head{}, err
	}
	for i := range stored {
		remember(&stored[i])
	}
	if err := v.Fold(ctx, stored...); err != nil {
		return event.Head{}, fmt.Errorf("fold the events appended to session %q: %w", v.Session, err)
	}
	return v.Head, nil
}

// Follow folds the events that any writer appended after v.Head.
func (v *Live) Follow(ctx context.Context) error {
	if err := v.refresh(ctx); err != nil {
		return err
	}
	for e, err := range v.log.Read(ctx, v.Session, eventlog.From(v.Head.Seq+1)) {
		if err != nil {
			return err
		}
		if err := v.Fold(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// TakeTail returns the newest events up to Head that the Live has read, in order and
// without a gap, if LiveOptions.KeepTail is set. There may be none. The Live keeps no events
// after the call.
func (v *Live) TakeTail() []event.Event {
	events := v.tail
	v.tail, v.taken = nil, true
	first := len(events)
	for next := v.Head.Seq; first > 0 && events[first-1].Seq == next; next-- {
		first--
	}
	return events[first:]
}

func (v *Live) keepsTail() bool { return v.opts.KeepTail && !v.taken }

// Fold folds stored events that directly follow v.Head. For other events it returns
// an error. After a head_moved or a redacted event it loads the states again, so no
// erased content stays in them; like Resume, it waits for an erasure to end. After
// another error the states do not match Head until a later call succeeds.
func (v *Live) Fold(ctx context.Context, events ...event.Event) error {
	var newest *event.Event
	defer func() {
		if newest != nil { // once, because the hash is decoded from the line
			v.Head = newest.Head()
			v.Explain.Head = v.Head
		}
	}()
	next := v.Head.Seq + 1
	for i := range events {
		e := &events[i]
		if e.Seq != next || e.SessionID != v.Session && v.opts.At == 0 {
			return fmt.Errorf("%w: event %d of session %q after event %d of session %q", errNotNext, e.Seq, e.SessionID, next-1, v.Session)
		}
		if err := v.foldNext(ctx, e); err != nil {
			return err
		}
		newest, next = e, next+1
	}
	return nil
}

func (v *Live) foldNext(ctx context.Context, e *event.Event) error {
	switch name := e.Type.Name(); {
	case name == event.HeadMoved && !v.stale:
		before := v.any
		err := v.reload(ctx, e.Seq)
		v.any = anyBody{before.size, before.since + eventBytes(e)}
		return err
	case name == event.Redacted || v.stale:
		return v.reload(ctx, e.Seq)
	}
	if err := v.foldOne(ctx, e); err != nil {
		v.stale = true
		return err
	}
	return nil
}

// refresh loads the states again if an event was folded in part.
func (v *Live) refresh(ctx context.Context) error {
	if !v.stale {
		return nil
	}
	return v.reload(ctx, v.Head.Seq)
}

// reload loads the states as of seq; 0 is the head. It holds the shared store lock,
// so no redaction runs meanwhile. A later redaction, also of the prefix that a fork
// shares, appends an event to the session. A snapshot of the states then fails with a
// conflict, and no erased content gets into a body.
func (v *Live) reload(ctx context.Context, seq int64) error {
	return v.log.Hold(ctx, func(ctx context.Context) error {
		l, err := LoadSet(ctx, v.log, v.Session, v.set, Options{At: seq, newest: true, keepTail: v.keepsTail()})
		if err != nil {
			return err
		}
		v.Loaded, v.stale = *l, false
		v.any = anyBody{v.last.bodyBytes, v.last.since}
		return nil
	})
}

// foldOne applies an event of the path to the folds.
func (v *Live) foldOne(ctx context.Context, e *event.Event) error {
	v.Explain.read(e)
	if v.keepsTail() {
		v.tail = append(v.tail, *e)
	}
	if err := v.apply(e.Effective()); err != nil {
		return err
	}
	if v.last.oldest.IsZero() {
		v.last.oldest = e.Timestamp
	}
	if e.Type.Name() == event.ProjectionSnapshotted {
		return v.foldSnapshot(ctx, e)
	}
	v.last.since += eventBytes(e)
	v.any.since += eventBytes(e)
	v.last.events++
	return nil
}

// foldSnapshot updates v.last from a snapshot that this Live or another writer
// appended.
func (v *Live) foldSnapshot(ctx context.Context, e *event.Event) error {
	snap, err := snapshotOf(e)
	if err != nil {
		return nil // unreadable: no state depends on it
	}
	l := &v.last
	l.snapshot, l.time, l.found, l.events = snap, e.Timestamp, true, 0
	if snap.Projection != v.set.name() {
		return nil
	}
	l.digest, l.previous = snap.StateDigest, e.Seq
	if snap.IsMark() {
		return nil
	}
	var b body
	if err = checkCovered(ctx, v.log, v.Session, e, &snap, &v.Explain); err == nil {
		b, _, err = readBody(ctx, v.log, &snap)
	}
	if err == nil && hasPathParts(b, v.folds) {
		l.body, l.bodyBytes, l.since = e.Seq, b.size(), 0
		v.any = anyBody{l.bodyBytes, 0}
	}
	if _, skip := problemOf(SnapshotRef{}, err); err != nil && !skip {
		return err
	}
	return nil
}

// Snapshot appends a snapshot of the states after v.Head, if the policy or r.Force
// says so. appended is false if the policy declines. If another writer appended
// since, the error is eventlog.ErrConflict: call Follow and decide again. A snapshot
// changes no state.
func (v *Live) Snapshot(ctx context.Context, r Request) (s event.Snapshot, appended bool, err error) {
	if err := v.refresh(ctx); err != nil {
		return s, false, err
	}
	o, err := v.opportunity(&r)
	if err != nil {
		return s, false, err
	}
	v.asking = ctx
	if !r.Force && !v.opts.Policy(o) || r.IfChanged && !o.Changed() {
		return s, false, nil
	}
	s = v.mark(&r, o)
	e, err := v.event(ctx, &s, r.Body || v.opts.Bodies(o))
	if err != nil {
		return s, false, fmt.Errorf("snapshot session %q: %w", v.Session, err)
	}
	stored, err := engine.Of(v.log).Append(ctx, v.Session, v.Head, r.Durable, e)
	if err != nil {
		return s, false, fmt.Errorf("snapshot session %q: %w", v.Session, err)
	}
	return s, true, v.Fold(ctx, stored...)
}

// opportunity describes the current moment to the policies.
func (v *Live) opportunity(r *Request) (*Opportunity, error) {
	digest, err := v.Digest()
	if err != nil {
		return nil, err
	}
	o := &Opportunity{Trigger: r.Trigger, TurnIndex: r.TurnIndex, Digest: digest, Events: v.last.events, Live: v,
		Previous: v.last.digest, Bytes: v.last.since, BodyBytes: v.last.bodyBytes, AnyBytes: v.any.since, AnyBodyBytes: v.any.size}
	begin := v.last.oldest
	if v.last.found {
		begin = v.last.time
		o.Index = max(v.last.snapshot.Index, v.last.snapshot.Index+1) // the largest int has no successor
	}
	o.Age = max(v.opts.Now().Sub(begin), 0)
	return o, nil
}

// mark returns the snapshot without its body.
func (v *Live) mark(r *Request, o *Opportunity) event.Snapshot {
	s := event.Snapshot{
		Projection: v.set.name(), Version: v.set.version(), SnapshotID: r.ID, ParentSnapshotID: v.last.snapshot.SnapshotID,
		StateDigest: o.Digest, Index: o.Index, TurnIndex: r.TurnIndex, Trigger: r.Trigger, Reason: r.Reason,
		Seq: v.Head.Seq, Hash: v.Head.Hash, Extra: r.Extra,
	}
	if s.SnapshotID == "" {
		s.SnapshotID = v.opts.NewID()
	}
	return s
}

// event returns the event of the snapshot, with a body if withBody is set.
func (v *Live) event(ctx context.Context, s *event.Snapshot, withBody bool) (e event.Event, err error) {
	var digests []event.Digest
	if withBody {
		if digests, err = makeBody(ctx, v.log, s, v.folds); err != nil {
			return e, err
		}
	}
	e = event.New(*s)
	return e, e.AddBlobs(digests...)
}

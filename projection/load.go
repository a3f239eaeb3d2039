package projection

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Options configure a load. The zero value loads the state at the head.
type Options struct {
	// At is the seq to load the state as of: the state of the path that ends
	// there. 0 is the head.
	At int64
	// Lean leaves the payloads of a history in the log. Len and Window of the history work;
	// Messages, Digest and StateJSON fail.
	Lean bool
	// Replay uses no snapshots: it folds all events from the start.
	Replay bool

	newest   bool // read back until the newest snapshot of the path is known
	keepTail bool // keep the events that were read, for Live.TakeTail
	buffer   int  // bytes of events in memory; 0 is tailBuffer
}

// View is the state of one projection.
type View[S any] struct {
	State   S
	Head    event.Head
	Explain Explain
}

// Load returns the state of p in a session. It reads the newest usable snapshot and
// the events after it, and nothing else. The error matches eventlog.ErrNotFound for a
// missing session, eventlog.ErrEventNotFound if the lineage has no event At, and is a
// *FoldError for an event that p cannot fold. A load with several options uses the
// first.
func Load[S any](ctx context.Context, log *eventlog.Log, session string, p Projection[S], opts ...Options) (View[S], error) {
	l, err := LoadSet(ctx, log, session, Of("", p), opts...)
	if err != nil {
		return View[S]{}, err
	}
	s, _ := State(l, p)
	return View[S]{State: *s, Head: l.Head, Explain: l.Explain}, nil
}

// Loaded is the states of a set of projections at Head.
type Loaded struct {
	Session string
	Head    event.Head
	Explain Explain

	set   Set
	folds []fold
	last  pathEnd
	lean  bool
	tail  []event.Event // for Live.TakeTail; oldest first
}

// State returns the state of one projection of a loaded set. ok is false if the set
// has no projection with this name and type. The state belongs to l: do not modify
// it. The state of a *Live changes when the Live folds events.
func State[S any](l States, p Projection[S]) (state *S, ok bool) {
	for _, f := range foldsOf(l) {
		if f, is := f.(*typedFold[S]); is && f.Name == p.Name {
			return &f.state, true
		}
	}
	return nil, false
}

// StateJSON returns the state of one part of a loaded set as JSON, in the encoding of
// a snapshot. The error is ErrUnknownProjection if the set has no part of this name.
func StateJSON(l States, name string) (jsontext.Value, error) {
	for _, f := range foldsOf(l) {
		if f.name() == name {
			return f.encode()
		}
	}
	return nil, fmt.Errorf("%w: %q is not in the set", ErrUnknownProjection, name)
}

// States are the states of a set: a *Loaded or a *Live.
type States interface{ loaded() *Loaded }

func (l *Loaded) loaded() *Loaded { return l }

func (v *Live) loaded() *Loaded {
	if v == nil {
		return nil
	}
	return &v.Loaded
}

// foldsOf returns the folds of l, and no folds if l is nil.
func foldsOf(l States) []fold {
	if l == nil || l.loaded() == nil {
		return nil
	}
	return l.loaded().folds
}

// LoadSet returns the states of all projections of a set, from one pass over the
// events. Load lists the errors.
func LoadSet(ctx context.Context, log *eventlog.Log, session string, set Set, opts ...Options) (*Loaded, error) {
	if err := set.check(); err != nil {
		return nil, err
	}
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	head, err := headAt(ctx, log, session, o.At)
	if err != nil {
		return nil, fmt.Errorf("project session %q: %w", session, err)
	}
	l := &Loaded{Session: session, Head: head, set: set, Explain: Explain{Session: session, Head: head}}
	l.lean = o.Lean
	if err := l.load(ctx, log, o); err != nil {
		return nil, err
	}
	return l, nil
}

// begin returns the folds of the set, without events.
func (l *Loaded) begin() []fold {
	folds := l.set.begin()
	for _, f := range folds {
		if h, ok := f.(*typedFold[HistoryState]); ok && h.builtin && l.lean {
			h.Projection = leanHistory(0)
			h.reset()
		}
	}
	return folds
}

// Next folds the event after l.Head. ok is false if the states must be loaded anew: the event
// moves the head, or erases events.
func (l *Loaded) Next(e *event.Event) (ok bool, err error) {
	if name := e.Type.Name(); e.Seq != l.Head.Seq+1 || name == event.HeadMoved || name == event.Redacted {
		return false, nil
	}
	if err := l.apply(e.Effective()); err != nil {
		return false, err
	}
	l.Head = e.Head()
	l.Explain.Head = l.Head
	return true, nil
}

// apply applies an event of the path to the folds.
func (l *Loaded) apply(e *event.Event) error {
	scope := e.Type.Scope()
	for i, f := range l.folds {
		if !inScope(f.scope(), scope, true) {
			continue
		}
		if err := f.apply(e); err != nil {
			return err
		}
		l.Explain.Parts[i].Folded++
	}
	return nil
}

// headAt is the position of event at; 0 is the head of the session.
func headAt(ctx context.Context, log *eventlog.Log, session string, at int64) (event.Head, error) {
	if at == 0 {
		return log.Head(ctx, session)
	}
	e, err := log.Event(ctx, session, at)
	return e.Head(), err
}

// load chooses snapshots and folds the events after them.
func (l *Loaded) load(ctx context.Context, log *eventlog.Log, o Options) error {
	if o.Replay {
		return l.replay(ctx, log)
	}
	s := &snapshotChoice{
		log: log, session: l.Session, set: l.set.name(), newest: o.newest,
		tail: tail{limit: cmp.Or(o.buffer, tailBuffer), ahead: o.keepTail}, explain: &l.Explain, reported: map[skipReason]bool{},
	}
	for _, f := range l.begin() {
		s.folds = append(s.folds, &loadFold{fold: f})
	}
	defer s.tail.stop()
	if err := s.run(ctx, l.Head.Seq); err != nil {
		return fmt.Errorf("project session %q: %w", l.Session, err)
	}
	slices.SortStableFunc(l.Explain.Skipped, func(a, b SnapshotProblem) int { return cmp.Compare(b.Snapshot.Seq, a.Snapshot.Seq) })
	l.Explain.Parts = nil
	for _, f := range s.folds {
		l.Explain.Parts = append(l.Explain.Parts, PartExplain{Projection: f.name(), Version: f.version(), Scope: f.scope(), From: f.from})
	}
	if err := l.foldTail(ctx, s); err != nil {
		return err
	}
	if o.keepTail {
		l.tail = s.tail.list()
	}
	l.folds, l.last = nil, s.last
	for _, f := range s.folds {
		l.folds = append(l.folds, f.fold)
	}
	return nil
}

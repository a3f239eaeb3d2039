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
	// At is the seq to load the state as of, on the path that ends there; 0 is
	// the head.
	At int64
	// Replay uses no snapshots: everything is folded from the start.
	Replay bool

	newest bool // find the newest snapshot of the path, whatever the states need
	buffer int  // bytes of events to keep between the scan and the folding
}

// View is the state of a projection.
type View[S any] struct {
	State   S
	Head    event.Head
	Explain Explain
}

// Load gives the state of p in a session: the newest usable snapshot and the
// events behind it, and reads no more than those. A missing session is
// ErrNotFound, a seq that the lineage does not have ErrEventNotFound; an event
// that cannot be folded is a *FoldError. At most one Options is used.
func Load[S any](ctx context.Context, log *eventlog.Log, session string, p Projection[S], opts ...Options) (View[S], error) {
	l, err := LoadSet(ctx, log, session, Of("", p), opts...)
	if err != nil {
		return View[S]{}, err
	}
	s, _ := State(l, p)
	return View[S]{State: *s, Head: l.Head, Explain: l.Explain}, nil
}

// Loaded is the states of a set of projections.
type Loaded struct {
	Session string
	Head    event.Head
	Explain Explain

	set   Set
	folds []fold
	last  lastSnapshot
}

// State is the state of one projection of a loaded set; ok is false when the
// set has none of that name and type. The state belongs to l: it must not be
// modified, and changes when l is a Live that moves on.
func State[S any](l States, p Projection[S]) (state *S, ok bool) {
	for _, f := range foldsOf(l) {
		if f, is := f.(*folded[S]); is && f.Name == p.Name {
			return &f.state, true
		}
	}
	return nil, false
}

// States are the loaded states of a set: a *Loaded or a *Live.
type States interface{ loaded() *Loaded }

func (l *Loaded) loaded() *Loaded { return l }

func (v *Live) loaded() *Loaded {
	if v == nil {
		return nil
	}
	return &v.Loaded
}

// foldsOf are the folds of loaded states; none of nil.
func foldsOf(l States) []fold {
	if l == nil || l.loaded() == nil {
		return nil
	}
	return l.loaded().folds
}

// LoadSet gives the states of all projections of a set in one reading; see Load.
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
	if err := l.load(ctx, log, o); err != nil {
		return nil, err
	}
	return l, nil
}

// headAt is the head of the session, or the position of one of its events.
func headAt(ctx context.Context, log *eventlog.Log, session string, at int64) (event.Head, error) {
	if at == 0 {
		return log.Head(ctx, session)
	}
	e, err := log.Event(ctx, session, at)
	return e.Head(), err
}

func (l *Loaded) load(ctx context.Context, log *eventlog.Log, o Options) error {
	if o.Replay {
		return l.replay(ctx, log)
	}
	s := &scan{
		log: log, session: l.Session, set: l.set.name(), whole: o.newest, buffer: o.buffer,
		explain: &l.Explain, noted: map[passedFor]bool{},
	}
	if s.buffer == 0 {
		s.buffer = tailBuffer
	}
	for _, f := range l.set.begin() {
		s.folds = append(s.folds, &based{fold: f})
	}
	if err := s.run(ctx, l.Head.Seq); err != nil {
		return fmt.Errorf("project session %q: %w", l.Session, err)
	}
	slices.SortStableFunc(l.Explain.Passed, func(a, b PassedOver) int { return cmp.Compare(b.Seq, a.Seq) })
	l.Explain.Parts = nil
	for _, f := range s.folds {
		l.Explain.Parts = append(l.Explain.Parts, PartExplain{Projection: f.name(), Version: f.version(), Scope: f.scope(), From: f.from})
	}
	if err := l.fold(ctx, s); err != nil {
		return err
	}
	l.folds, l.last = nil, s.last
	for _, f := range s.folds {
		l.folds = append(l.folds, f.fold)
	}
	return nil
}

// StateJSON is the state of one part of a loaded set as JSON, as it would stand
// in a snapshot; ErrUnknownProjection if the set has no such part.
func StateJSON(l States, name string) (jsontext.Value, error) {
	for _, f := range foldsOf(l) {
		if f.name() == name {
			return f.encode()
		}
	}
	return nil, fmt.Errorf("%w: %q is not in the set", ErrUnknownProjection, name)
}

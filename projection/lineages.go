package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Lineages loads a set of projections of session scope in many sessions. It folds the
// events that forks share once for all forks, not once for each. It is for one
// goroutine.
type Lineages struct {
	log   *eventlog.Log
	set   Set
	forks eventlog.ForkMap
	// points are the states that forks begin with, by session, ordered by seq.
	points map[string][]forkPoint
}

// forkPoint is the encoded states of a set after an event.
type forkPoint struct {
	head   event.Head
	states []jsontext.Value
}

// NewLineages returns the Lineages of a set. forks are the forks of the store. A fork
// that is missing there costs time only.
func NewLineages(log *eventlog.Log, set Set, forks eventlog.ForkMap) *Lineages {
	return &Lineages{log: log, set: set, forks: forks, points: map[string][]forkPoint{}}
}

// Load returns the states at the head of a session, as LoadSet does. The Explain of a
// fork counts the events after its session_forked event.
func (s *Lineages) Load(ctx context.Context, session string) (*Loaded, error) {
	if err := s.set.check(); err != nil {
		return nil, err
	}
	for _, f := range s.set.begin() {
		if f.scope() != event.SessionScope {
			return nil, fmt.Errorf("%w: %q has the scope %q, and the lineages of forks need session scope", errInvalidSet, f.name(), f.scope())
		}
	}
	l, err := s.load(ctx, session, 0)
	if err != nil { // LoadSet explains it
		return LoadSet(ctx, s.log, session, s.set)
	}
	return l, nil
}

// load returns the states of a session's own events up to seq through; 0 is the head.
func (s *Lineages) load(ctx context.Context, session string, through int64) (*Loaded, error) {
	head, err := headAt(ctx, s.log, session, through)
	if err != nil {
		return nil, err
	}
	l, err := s.begin(ctx, session, head.Seq)
	if err != nil {
		return nil, err
	}
	stops := s.stops(session)
	for e, err := range s.log.Read(ctx, session, eventlog.Between(l.Head.Seq+1, head.Seq)) {
		if err == nil {
			err = l.foldAny(&e)
		}
		if err != nil {
			return nil, err
		}
		if _, stop := slices.BinarySearch(stops, e.Seq); stop {
			if err := s.save(l); err != nil {
				return nil, err
			}
		}
	}
	if l.Head != head {
		return nil, errOtherEvents
	}
	return l, nil
}

// errOtherEvents means that the lineage of a fork is damaged, or changed meanwhile.
var errOtherEvents = errors.New("the lineage of a fork has other events")

// begin returns the states of the newest fork point of the session up to seq. Without
// one, it returns the states that a fork begins with. For a session that is no fork, it
// loads the states at the first fork point.
func (s *Lineages) begin(ctx context.Context, session string, seq int64) (*Loaded, error) {
	for _, p := range slices.Backward(s.points[session]) {
		if p.head.Seq <= seq {
			return p.loaded(session, s.set)
		}
	}
	first, err := s.firstOwn(ctx, session)
	if err != nil {
		return nil, err
	}
	if first.Type.Name() != event.SessionForked {
		if stops := s.stops(session); len(stops) > 0 {
			seq = min(seq, max(stops[0], 1))
		}
		l, err := LoadSet(ctx, s.log, session, s.set, Options{At: seq})
		if err == nil {
			err = s.save(l)
		}
		return l, err
	}
	f, _, err := event.Decode[event.Fork](&first)
	if err != nil {
		return nil, err
	}
	p, err := s.point(ctx, f.Point(), f.Parent)
	if err != nil {
		return nil, err
	}
	return p.loaded(session, s.set)
}

func (s *Lineages) firstOwn(ctx context.Context, session string) (event.Event, error) {
	for e, err := range s.log.Read(ctx, session, eventlog.All().Own().Bare()) {
		return e, err
	}
	return event.Event{}, eventlog.ErrNotFound
}

// point returns the states of a session after the event at.
func (s *Lineages) point(ctx context.Context, at event.Head, session string) (forkPoint, error) {
	for at.Seq > 0 { // find the ancestor that has the event
		first, err := s.firstOwn(ctx, session)
		if err != nil {
			return forkPoint{}, err
		}
		f, forked, err := event.Decode[event.Fork](&first)
		if err != nil {
			return forkPoint{}, err
		}
		if !forked || first.Seq <= at.Seq {
			break
		}
		session = f.Parent
	}
	if at.Seq == 0 {
		return forkPoint{states: make([]jsontext.Value, len(s.set.Parts))}, nil
	}
	i, found := s.find(session, at.Seq)
	if !found {
		l, err := s.load(ctx, session, at.Seq)
		if err == nil {
			err = s.save(l)
		}
		if err != nil {
			return forkPoint{}, err
		}
		i, _ = s.find(session, at.Seq)
	}
	p := s.points[session][i]
	if p.head != at {
		return forkPoint{}, errOtherEvents
	}
	return p, nil
}

// stops are the seqs of a session at which forks begin, in ascending order.
func (s *Lineages) stops(session string) (seqs []int64) {
	for _, f := range s.forks.ByParent[session] {
		seqs = append(seqs, f.Seq)
	}
	slices.Sort(seqs)
	return seqs
}

func (s *Lineages) find(session string, seq int64) (i int, found bool) {
	return slices.BinarySearchFunc(s.points[session], seq, func(p forkPoint, seq int64) int { return cmp.Compare(p.head.Seq, seq) })
}

// save keeps the states for forks.
func (s *Lineages) save(l *Loaded) error {
	i, found := s.find(l.Session, l.Head.Seq)
	if found {
		return nil
	}
	p := forkPoint{head: l.Head}
	for _, f := range l.folds {
		body, err := f.encode()
		if err != nil {
			return err
		}
		p.states = append(p.states, body)
	}
	s.points[l.Session] = slices.Insert(s.points[l.Session], i, p)
	return nil
}

// loaded decodes the states. A nil state is the state before the first event.
func (p *forkPoint) loaded(session string, set Set) (*Loaded, error) {
	l := &Loaded{Session: session, Head: p.head, set: set, folds: set.begin(), Explain: Explain{Session: session}}
	for i, f := range l.folds {
		if p.states[i] != nil {
			if err := f.decode(p.states[i]); err != nil {
				return nil, err
			}
		}
		l.Explain.Parts = append(l.Explain.Parts, PartExplain{Projection: f.name(), Version: f.version(), Scope: f.scope()})
	}
	return l, nil
}

// foldAny applies the next event to folds of session scope.
func (l *Loaded) foldAny(e *event.Event) error {
	l.Explain.read(e)
	for i, f := range l.folds {
		if err := f.apply(e.Effective()); err != nil {
			return err
		}
		l.Explain.Parts[i].Folded++
	}
	l.Head = e.Head()
	l.Explain.Head = l.Head
	return nil
}

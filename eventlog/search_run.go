package eventlog

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// search is one search under way. The first sessions are looked through by the
// caller himself, which is all that most searches by an index need; the others by
// several goroutines, in the order that the hits come in: each has a channel of
// its own, and the caller is given those of one session after the other.
type search struct {
	log     *Log
	query   Query
	matcher *matcher
	yield   func(Hit, error) bool
	left    int // how many hits are wanted, if there is a limit
	looked  int // how many events were looked at before there were searchers
}

// finding is a hit, or an error about a session.
type finding struct {
	hit Hit
	err error
}

const (
	// hitsAhead is how many hits of a session may wait to be consumed.
	hitsAhead = 64
	// lookedAlone is after how many events others help.
	lookedAlone = 256
)

// lookout is a session to look through, and where its hits go.
type lookout struct {
	Candidates
	hits chan finding
}

func (s *search) run(outer context.Context) {
	ctx, cancel := context.WithCancel(outer)
	next, stop := iter.Pull2(s.candidates(ctx))
	defer stop()
	more := s.alone(ctx, next)
	if more && ctx.Err() == nil {
		more = s.together(ctx, cancel, next)
	}
	cancel()
	if more && outer.Err() != nil {
		s.yield(Hit{}, outer.Err())
	}
}

// alone looks through the first sessions; false is that the caller wants no more,
// or that there is none.
func (s *search) alone(ctx context.Context, next func() (Candidates, error, bool)) bool {
	for s.looked < lookedAlone {
		c, err, ok := next()
		if !ok {
			return ctx.Err() != nil
		}
		if err != nil {
			return s.give(ctx, finding{hit: Hit{Session: c.Session}, err: err}) && ctx.Err() != nil
		}
		wanted := true
		s.looked += s.through(ctx, c, func(f finding) bool {
			wanted = s.give(ctx, f)
			return wanted && ctx.Err() == nil
		})
		if !wanted || ctx.Err() != nil {
			return wanted
		}
	}
	return true
}

// together has the other sessions looked through; false is that the caller wants
// no more.
func (s *search) together(ctx context.Context, cancel func(), next func() (Candidates, error, bool)) bool {
	searchers := max(runtime.GOMAXPROCS(0), 1)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	todo, order := make(chan lookout), make(chan chan finding, 4*searchers)
	working.Go(func() { s.dispatch(ctx, next, todo, order) })
	for range searchers {
		working.Go(func() {
			for l := range todo {
				s.through(ctx, l.Candidates, func(f finding) bool { return l.send(ctx, f) })
				close(l.hits)
			}
		})
	}
	for hits := range order {
		for f := range hits {
			if ctx.Err() != nil {
				return true
			}
			if !s.give(ctx, f) {
				return false
			}
		}
	}
	return true
}

// give passes a finding on to the caller; false is that he wants no more. A
// search that is canceled ends with that error, whatever else was come upon.
func (s *search) give(ctx context.Context, f finding) bool {
	if ctx.Err() != nil {
		return true
	}
	if !s.yield(f.hit, f.err) {
		return false
	}
	if f.err == nil && s.left > 0 {
		s.left--
		return s.left > 0
	}
	return true
}

// dispatch hands out the sessions in order. An error of finding them ends the
// search.
func (s *search) dispatch(ctx context.Context, next func() (Candidates, error, bool), todo chan<- lookout, order chan<- chan finding) {
	defer close(order)
	defer close(todo)
	for c, err, ok := next(); ok; c, err, ok = next() {
		l := lookout{c, make(chan finding, hitsAhead)}
		select {
		case order <- l.hits:
		case <-ctx.Done():
			return
		}
		if err != nil {
			l.hits <- finding{hit: Hit{Session: c.Session}, err: err}
			close(l.hits)
			return
		}
		select {
		case todo <- l:
		case <-ctx.Done():
			close(l.hits)
			return
		}
	}
}

// candidates are the sessions to look through.
func (s *search) candidates(ctx context.Context) iter.Seq2[Candidates, error] {
	if s.query.Session == "" {
		return s.within(ctx, "", 0)
	}
	return func(yield func(Candidates, error) bool) {
		first, err := s.log.firstEvent(ctx, s.query.Session)
		if err != nil {
			yield(Candidates{Session: s.query.Session}, err)
			return
		}
		for c, err := range s.within(ctx, s.query.Session, 0) {
			if !yield(c, err) || err != nil {
				return
			}
		}
		for older, err := range s.log.ancestry(ctx, &first, 1) {
			if err != nil {
				yield(Candidates{Session: s.query.Session}, err)
				return
			}
			for c, err := range s.within(ctx, older.session, older.to) {
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

// within are the candidates of one session up to a seq, or of all: by the
// store's index, if it has one.
func (s *search) within(ctx context.Context, session string, to int64) iter.Seq2[Candidates, error] {
	if index, ok := As[Searcher](s.log.store); ok {
		return index.Search(ctx, s.matcher.terms, session, to)
	}
	return s.all(ctx, session, to)
}

// all are all events of one session up to a seq, or of all sessions.
func (s *search) all(ctx context.Context, session string, to int64) iter.Seq2[Candidates, error] {
	return func(yield func(Candidates, error) bool) {
		sessions := []SessionActivity{{Session: session}}
		if session == "" {
			var err error
			if sessions, err = s.sessions(ctx); err != nil {
				yield(Candidates{}, err)
				return
			}
		}
		for _, one := range sessions {
			c := Candidates{one.Session, s.log.store.Read(ctx, one.Session, Span{To: to, Backward: true})}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// sessions lists all sessions by their last activity.
func (s *search) sessions(ctx context.Context) (sessions []SessionActivity, err error) {
	for info, err := range s.log.store.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, SessionActivity{info.ID, info.Last.Timestamp.Truncate(time.Microsecond)})
	}
	slices.SortFunc(sessions, ByActivity)
	return sessions, nil
}

// through looks through a session, and says how many events it looked at. It ends
// when pass is false.
func (s *search) through(ctx context.Context, c Candidates, pass func(finding) bool) (looked int) {
	most := s.most()
	look := looker{search: s, session: c.Session, walker: textWalker{open: s.log.OpenBlob}}
	for e, err := range c.Events {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if s.query.Session != "" || !errors.Is(err, ErrNotFound) { // else it was removed meanwhile
				pass(finding{hit: Hit{Session: c.Session}, err: err})
			}
			return looked
		}
		looked++
		hit, ok, err := look.at(ctx, &e)
		if err == nil && !ok {
			continue
		}
		if err != nil {
			hit = Hit{Session: c.Session, Seq: e.Seq}
		}
		if !pass(finding{hit, err}) {
			return looked
		}
		if most--; most == 0 {
			return looked
		}
	}
	return looked
}

// most is how many hits of a session are wanted.
func (s *search) most() int {
	most := math.MaxInt
	for _, limit := range []int{s.query.Limit, s.query.PerSession} {
		if limit > 0 {
			most = min(most, limit)
		}
	}
	return most
}

// send passes a hit on; false ends the looking.
func (l *lookout) send(ctx context.Context, f finding) bool {
	select {
	case l.hits <- f:
		return true
	case <-ctx.Done():
		return false
	}
}

// looker looks at the events of one session.
type looker struct {
	*search
	session string
	walker  textWalker
	folded  []byte
	path    []Stretch // of the session, once an event has matched
	onPath  bool      // path is known
}

// at reports whether an event is a hit.
func (l *looker) at(ctx context.Context, e *Event) (hit Hit, ok bool, err error) {
	if !l.wants(e.Type) || e.Redacted() {
		return hit, false, nil
	}
	_, _, spilled := e.Spilled()
	if spilled {
		if err := l.log.fetch(ctx, e); err != nil || e.Redacted() {
			return hit, false, err
		}
	}
	if !l.matcher.may(e.Data) && !bodies(e, spilled) && !bytes.Contains(e.Data, inlineBody) {
		return hit, false, nil
	}
	l.walker.ctx = ctx
	text, err := l.walker.event(e)
	if err != nil {
		return hit, false, err
	}
	l.folded = appendFolded(l.folded[:0], text)
	if !l.matcher.matches(l.folded) {
		return hit, false, nil
	}
	if counts, err := l.counts(ctx, e); err != nil || !counts {
		return hit, false, err
	}
	return l.hit(e, string(text), string(l.folded)), true, nil
}

func (s *search) wants(t Type) bool {
	return len(s.query.Types) == 0 || slices.Contains(s.query.Types, t.Name())
}

// inlineBody is how the member of a body begins that stands in the data itself.
var inlineBody = []byte(`"data"`)

// bodies reports whether an event has bodies besides its own data.
func bodies(e *Event, spilled bool) bool {
	n := len(e.Blobs())
	if spilled {
		n--
	}
	return n > 0
}

// counts reports whether an event is wanted although it may have been rewound.
func (l *looker) counts(ctx context.Context, e *Event) (bool, error) {
	if !l.query.Active || e.Type.Scope() != PathScope {
		return true, nil
	}
	if !l.onPath {
		session := l.session
		if l.query.Session != "" {
			session = l.query.Session
		}
		path, err := l.log.Path(ctx, session)
		if err != nil {
			return false, err
		}
		l.path, l.onPath = path, true
	}
	return slices.ContainsFunc(l.path, func(s Stretch) bool { return s.From <= e.Seq && e.Seq <= s.To }), nil
}

func (l *looker) hit(e *Event, text, folded string) Hit {
	return Hit{
		Session: e.SessionID, Seq: e.Seq, Type: e.Type, Timestamp: e.Timestamp, Event: *e,
		Snippet: snippet(text, folded, l.matcher.find(folded), l.query.Context),
	}
}

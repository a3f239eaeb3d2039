package search

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
)

// search is a running search. The caller's goroutine searches the first sessions,
// which is all that most searches with an index need. Then several goroutines
// search the others: each session has a channel of hits, and the caller reads the
// channels in the order of the sessions.
type search struct {
	log      *eventlog.Log
	index    eventlog.Searcher   // nil if the search reads all events
	lines    eventlog.LineReader // nil if all events of a session must be parsed
	query    Query
	matcher  *matcher
	yield    func(Hit, error) bool
	left     int // how many more hits are wanted, if there is a limit
	examined int // events that were examined by the caller's goroutine
	given    given
	path     atomic.Pointer[activePath] // of the newest session that needed it
}

// given describes what the caller got of the current session.
type given struct {
	session string
	hits    int
	failed  bool // an error has ended the search of the session
}

// finding is a hit, or an error about a session.
type finding struct {
	hit Hit
	err error
}

const (
	// hitsAhead is how many hits of a session may wait for the consumer.
	hitsAhead = 64
	// examinedAlone is after how many events other goroutines help.
	examinedAlone = 128
)

// task is a session to search, and the channel for its hits.
type task struct {
	eventlog.Candidates
	hits chan *finding // pointers: most sessions have no hit, and a finding is large
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

// alone searches the first sessions; without an index, only the first part of one. It is
// false if the consumer wants no more hits, or no session is left.
func (s *search) alone(ctx context.Context, next func() (eventlog.Candidates, error, bool)) bool {
	for part := 0; s.examined < examinedAlone && (part == 0 || s.index != nil); part++ {
		c, err, ok := next()
		if !ok {
			return ctx.Err() != nil
		}
		if err != nil {
			return s.give(ctx, finding{hit: Hit{Session: c.Session}, err: err}) && ctx.Err() != nil
		}
		wanted := true
		s.examined += s.examine(ctx, c, func(f finding) bool {
			wanted = s.give(ctx, f)
			return wanted && ctx.Err() == nil
		})
		if !wanted || ctx.Err() != nil {
			return wanted
		}
	}
	return true
}

// together searches the other sessions with several goroutines. It is false if the
// consumer wants no more hits.
func (s *search) together(ctx context.Context, cancel func(), next func() (eventlog.Candidates, error, bool)) bool {
	workers := max(runtime.GOMAXPROCS(0), 1)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	tasks, order := make(chan task), make(chan chan *finding, 4*workers)
	working.Go(func() { s.dispatch(ctx, next, tasks, order) })
	for range workers {
		working.Go(func() {
			for t := range tasks {
				s.examine(ctx, t.Candidates, func(f finding) bool { return t.send(ctx, f) })
				close(t.hits)
			}
		})
	}
	for hits := range order {
		for f := range hits {
			if ctx.Err() != nil {
				return true
			}
			if !s.give(ctx, *f) {
				return false
			}
		}
	}
	return true
}

// give yields a finding. It is false if the consumer wants no more. A canceled
// search yields nothing but the context's error.
func (s *search) give(ctx context.Context, f finding) bool {
	if ctx.Err() != nil || !s.due(&f) {
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

// due reports whether the caller gets a finding. A session may come in several parts,
// so a later part may find hits after an error, or more than PerSession.
func (s *search) due(f *finding) bool {
	if s.given.session != f.hit.Session {
		s.given = given{session: f.hit.Session}
	}
	if s.given.failed {
		return false
	}
	if f.err != nil {
		s.given.failed = f.hit.Seq == 0 && f.hit.Session != ""
		return true
	}
	s.given.hits++
	return s.query.PerSession <= 0 || s.given.hits <= s.query.PerSession
}

// dispatch makes a task of each session, in order. An error of the listing ends the
// search.
func (s *search) dispatch(ctx context.Context, next func() (eventlog.Candidates, error, bool), tasks chan<- task, order chan<- chan *finding) {
	defer close(order)
	defer close(tasks)
	for c, err, ok := next(); ok; c, err, ok = next() {
		t := task{c, make(chan *finding, hitsAhead)}
		select {
		case order <- t.hits:
		case <-ctx.Done():
			return
		}
		if err != nil {
			t.hits <- &finding{hit: Hit{Session: c.Session}, err: err}
			close(t.hits)
			return
		}
		select {
		case tasks <- t:
		case <-ctx.Done():
			close(t.hits)
			return
		}
	}
}

// candidates are the sessions to search.
func (s *search) candidates(ctx context.Context) iter.Seq2[eventlog.Candidates, error] {
	if s.query.Session == "" {
		return s.within(ctx, "", 0)
	}
	return func(yield func(eventlog.Candidates, error) bool) {
		for _, err := range s.log.Store().Read(ctx, s.query.Session, eventlog.Span{Limit: 1}) {
			if err != nil {
				yield(eventlog.Candidates{Session: s.query.Session}, err)
				return
			}
		}
		for c, err := range s.within(ctx, s.query.Session, 0) {
			if !yield(c, err) || err != nil {
				return
			}
		}
		for a, err := range s.log.Ancestors(ctx, s.query.Session) {
			if err != nil {
				yield(eventlog.Candidates{Session: s.query.Session}, err)
				return
			}
			if a.Through.Seq == 0 {
				return
			}
			for c, err := range s.within(ctx, a.Session, a.Through.Seq) {
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

// within are the candidates of one session up to a seq, or of all sessions: from
// the store's index, if it has one.
func (s *search) within(ctx context.Context, session string, to int64) iter.Seq2[eventlog.Candidates, error] {
	if s.index != nil {
		return s.index.Search(ctx, s.matcher.terms, session, to)
	}
	return s.all(ctx, session, to)
}

// examine searches a session, and returns how many events it examined. It ends when
// pass is false.
func (s *search) examine(ctx context.Context, c eventlog.Candidates, pass func(finding) bool) (examined int) {
	most := s.most()
	x := examiner{search: s, session: c.Session, texts: searchtext.Reader{Open: s.log.OpenBlob}}
	var e event.Event // one for all events: it escapes
	for next, err := range c.Events {
		if e = next; err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if s.query.Session != "" || !errors.Is(err, eventlog.ErrNotFound) { // else it was removed meanwhile
				pass(finding{hit: Hit{Session: c.Session}, err: err})
			}
			return examined
		}
		examined++
		hit, ok, err := x.event(ctx, &e)
		if err == nil && !ok {
			continue
		}
		if err != nil {
			hit = Hit{Session: c.Session, Seq: e.Seq}
		}
		if !pass(finding{hit, err}) {
			return examined
		}
		if most--; most == 0 {
			return examined
		}
	}
	return examined
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

// send passes a hit on. It is false if the search was canceled.
func (t *task) send(ctx context.Context, f finding) bool {
	select {
	case t.hits <- &f:
		return true
	case <-ctx.Done():
		return false
	}
}

package search

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/searchtext"
)

// examiner examines the events of one session.
type examiner struct {
	*search
	session string
	texts   searchtext.Reader
	folded  []byte
}

// event reports whether an event is a hit.
func (x *examiner) event(ctx context.Context, e *event.Event) (hit Hit, ok bool, err error) {
	if !x.wants(e.Type) || e.Redacted() {
		return hit, false, nil
	}
	_, _, spilled := e.Spilled()
	if spilled {
		if err := engine.Of(x.log).Fetch(ctx, e); err != nil || e.Redacted() {
			return hit, false, err
		}
	}
	words := len(x.matcher.terms) > 0
	if !words && !x.query.Where(e) {
		return hit, false, nil
	}
	if !x.matcher.may(e.Data) && !hasBodies(e, spilled) && !bytes.Contains(e.Data, dataMember) {
		return hit, false, nil
	}
	text, err := x.texts.Read(ctx, e)
	if err != nil {
		return hit, false, err
	}
	x.folded = searchtext.AppendFold(x.folded[:0], text)
	if len(text) == 0 || !x.matcher.matches(x.folded) || words && x.query.Where != nil && !x.query.Where(e) {
		return hit, false, nil
	}
	if counts, err := x.counts(ctx, e); err != nil || !counts {
		return hit, false, err
	}
	return x.hit(e, text), true, nil
}

func (s *search) wants(t event.Type) bool {
	return len(s.query.Types) == 0 || slices.Contains(s.query.Types, t.Name())
}

// hasBodies reports whether an event has blobs besides its own data.
func hasBodies(e *event.Event, spilled bool) bool {
	n := len(e.Blobs())
	if spilled {
		n--
	}
	return n > 0
}

// counts reports whether a matching event is wanted: it may be orphaned.
func (x *examiner) counts(ctx context.Context, e *event.Event) (bool, error) {
	if !x.query.Active || e.Type.Scope() != event.PathScope {
		return true, nil
	}
	session := x.session
	if x.query.Session != "" {
		session = x.query.Session
	}
	path, err := x.pathOf(ctx, session)
	return err == nil && path.Has(e.Seq), err
}

// activePath is the active path of a session, which is read once an event has matched.
type activePath struct {
	session string
	once    sync.Once
	path    event.Path
	err     error
}

// pathOf returns the active path of a session. It remembers one path: the parts of a
// session follow each other.
func (s *search) pathOf(ctx context.Context, session string) (event.Path, error) {
	p := s.path.Load()
	if p == nil || p.session != session {
		other := &activePath{session: session}
		if s.path.CompareAndSwap(p, other) {
			p = other
		} else if p = s.path.Load(); p.session != session {
			p = other
		}
	}
	p.once.Do(func() { p.path, p.err = s.log.Path(ctx, session, 0) })
	return p.path, p.err
}

func (x *examiner) hit(e *event.Event, text []byte) Hit {
	found := *e
	if x.index == nil { // the read is transient
		found = e.Clone()
	}
	h := Hit{Session: e.SessionID, Seq: e.Seq, Type: e.Type, Timestamp: e.Timestamp, Event: found}
	h.addSnippet(text, x.folded, x.matcher.find(x.folded), len(x.matcher.terms), x.query.Context)
	return h
}

package fork

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Tip is the last event of a branch. Seq 0 is the session's head.
type Tip struct {
	Session string
	Seq     int64
}

// Difference is the last common event of two branches, and the events after it.
type Difference struct {
	// Ancestor is the last event of both branches, in the session that holds it. It
	// is zero if they have no event in common.
	Ancestor Tip
	A, B     Side
}

// Side is the part of one branch after the common ancestor.
type Side struct {
	// Tip is the last event; its Seq is never 0.
	Tip Tip
	// Path is the side's events, as seqs of the tip's lineage.
	Path event.Path

	log *eventlog.Log
}

// Len is how many events the side has.
func (s *Side) Len() int64 { return s.Path.Len() }

// Events reads the side's events, oldest first.
func (s *Side) Events(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, r := range s.Path {
			for e, err := range s.log.Read(ctx, s.Tip.Session, eventlog.Between(r.From, r.To)) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Diff compares the paths to two tips: of two forks, of a fork and its parent, or
// of one session. Sessions that descend from no common session are "unrelated"; a
// copy does not descend from its original. Diff reads both paths, and keeps no
// events in memory.
func Diff(ctx context.Context, log *eventlog.Log, a, b Tip) (Difference, error) {
	left, err := routeTo(ctx, log, a)
	var right route
	if err == nil {
		right, err = routeTo(ctx, log, b)
	}
	if err == nil && left.root != right.root {
		err = errUnrelated
	}
	if err != nil {
		return Difference{}, fmt.Errorf("compare sessions %q and %q: %w", a.Session, b.Session, err)
	}
	d := Difference{Ancestor: lastCommon(left.pieces, right.pieces)}
	d.A = Side{Tip: left.tip, Path: left.after(d.Ancestor), log: log}
	d.B = Side{Tip: right.tip, Path: right.after(d.Ancestor), log: log}
	return d, nil
}

// route is the path to a tip, with the sessions that hold it.
type route struct {
	tip    Tip
	root   string // the oldest session of the lineage
	pieces []piece
}

// piece is a run of events of one path that one session holds.
type piece struct {
	session string
	event.Stretch
}

func routeTo(ctx context.Context, log *eventlog.Log, tip Tip) (route, error) {
	head, err := log.Head(ctx, tip.Session)
	if err != nil {
		return route{}, err
	}
	if tip.Seq == 0 {
		tip.Seq = head.Seq
	}
	if tip.Seq < 0 || tip.Seq > head.Seq {
		return route{}, fmt.Errorf("event %d of session %q: %w: %w", tip.Seq, tip.Session, errPastHead, eventlog.ErrEventNotFound)
	}
	held, err := holders(ctx, log, tip.Session, head.Seq)
	if err != nil {
		return route{}, err
	}
	path, err := log.Path(ctx, tip.Session, tip.Seq)
	if err != nil {
		return route{}, err
	}
	r := route{tip: tip, root: held[0].session}
	r.split(path, held)
	return r, nil
}

// holders are the sessions that hold a lineage with the head at a seq, oldest first.
// A session that holds no event of it has an empty piece.
func holders(ctx context.Context, log *eventlog.Log, session string, head int64) ([]piece, error) {
	held := []piece{{session, event.Stretch{To: head}}}
	for a, err := range log.Ancestors(ctx, session) {
		if err != nil {
			return nil, err
		}
		held = append(held, piece{a.Session, event.Stretch{To: a.Through.Seq}})
	}
	slices.Reverse(held)
	for i := range held {
		held[i].From = 1
		if i > 0 {
			held[i].From = held[i-1].To + 1
		}
	}
	return held, nil
}

// split cuts a path at the bounds of sessions. Pieces of one session that follow
// each other are one piece.
func (r *route) split(path event.Path, held []piece) {
	for _, s := range path {
		for _, h := range held {
			from, to := max(s.From, h.From), min(s.To, h.To)
			if from > to {
				continue
			}
			if n := len(r.pieces); n > 0 && r.pieces[n-1].session == h.session && r.pieces[n-1].To == from-1 {
				r.pieces[n-1].To = to
				continue
			}
			r.pieces = append(r.pieces, piece{h.session, event.Stretch{From: from, To: to}})
		}
	}
}

// lastCommon is the last event that two paths share.
func lastCommon(a, b []piece) (last Tip) {
	for i := range min(len(a), len(b)) {
		if a[i].session != b[i].session || a[i].From != b[i].From {
			break
		}
		last = Tip{a[i].session, min(a[i].To, b[i].To)}
		if a[i].To != b[i].To {
			break
		}
	}
	return last
}

// after is the path after its event ancestor.
func (r *route) after(ancestor Tip) (rest event.Path) {
	passed := ancestor.Seq == 0
	for _, p := range r.pieces {
		from := p.From
		if !passed {
			if p.session != ancestor.Session || ancestor.Seq < p.From || p.To < ancestor.Seq {
				continue
			}
			passed, from = true, ancestor.Seq+1
		}
		if n := len(rest); n > 0 && rest[n-1].To == from-1 {
			rest[n-1].To = p.To
		} else if from <= p.To {
			rest = append(rest, event.Stretch{From: from, To: p.To})
		}
	}
	return rest
}

package fork

import (
	"context"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Tip is the end of a branch: an event of a session, or its head if Seq is 0.
type Tip struct {
	Session string
	Seq     int64
}

// Difference is what two branches have in common, and what each has alone.
type Difference struct {
	// Ancestor is the last event that both have, in the session that holds it.
	// Its Seq is 0, its Session empty, if they have none in common.
	Ancestor Tip
	A, B     Side
}

// Side is what one branch has behind the common ancestor.
type Side struct {
	// Tip is its end; Seq is filled in.
	Tip Tip
	// Stretches are its events in seqs of the lineage, oldest first.
	Stretches []event.Stretch

	log *eventlog.Log
}

// Len is how many events the side has.
func (s *Side) Len() (n int64) {
	for _, r := range s.Stretches {
		n += r.To - r.From + 1
	}
	return n
}

// Events reads the side's events, oldest first.
func (s *Side) Events(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, r := range s.Stretches {
			for e, err := range s.log.Read(ctx, s.Tip.Session, eventlog.Between(r.From, r.To)) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Diff compares the paths that end with two tips: of two forks, of a fork and
// its parent, or of one session. Sessions that descend from no common one are
// ErrUnrelated; a copy does not descend from its original. It reads both paths
// back to their start, and holds no events.
func Diff(ctx context.Context, log *eventlog.Log, a, b Tip) (Difference, error) {
	left, err := routeTo(ctx, log, a)
	var right route
	if err == nil {
		right, err = routeTo(ctx, log, b)
	}
	if err == nil && left.root != right.root {
		err = ErrUnrelated
	}
	if err != nil {
		return Difference{}, fmt.Errorf("compare sessions %q and %q: %w", a.Session, b.Session, err)
	}
	d := Difference{Ancestor: common(left.pieces, right.pieces)}
	d.A = Side{Tip: left.tip, Stretches: left.behind(d.Ancestor), log: log}
	d.B = Side{Tip: right.tip, Stretches: right.behind(d.Ancestor), log: log}
	return d, nil
}

// route is the path to a tip, as pieces of the sessions that hold it.
type route struct {
	tip    Tip
	root   string // the session that the lineage begins with
	pieces []segment
}

func routeTo(ctx context.Context, log *eventlog.Log, tip Tip) (route, error) {
	head, err := log.Head(ctx, tip.Session)
	if err != nil {
		return route{}, err
	}
	line, err := Lineage(ctx, log, tip.Session)
	if err != nil {
		return route{}, err
	}
	r := route{tip: tip, root: tip.Session}
	if n := len(line); n > 0 {
		r.root = line[n-1].Session
	}
	if r.tip.Seq == 0 {
		r.tip.Seq = head.Seq
	}
	path, err := pathTo(ctx, log, tip.Session, r.tip.Seq, head.Seq)
	if err != nil {
		return route{}, err
	}
	r.split(path, segments(line, tip.Session, head.Seq))
	return r, nil
}

// split cuts the stretches of a path where another session holds them. Pieces
// that follow each other in one session are one.
func (r *route) split(path []event.Stretch, held []segment) {
	for _, s := range path {
		for _, h := range held {
			from, to := max(s.From, h.from), min(s.To, h.to)
			if from > to {
				continue
			}
			if n := len(r.pieces); n > 0 && r.pieces[n-1].session == h.session && r.pieces[n-1].to == from-1 {
				r.pieces[n-1].to = to
				continue
			}
			r.pieces = append(r.pieces, segment{h.session, from, to})
		}
	}
}

// common is the last event that two paths share.
func common(a, b []segment) (last Tip) {
	for i := range min(len(a), len(b)) {
		if a[i].session != b[i].session || a[i].from != b[i].from {
			break
		}
		last = Tip{a[i].session, min(a[i].to, b[i].to)}
		if a[i].to != b[i].to {
			break
		}
	}
	return last
}

// behind are the stretches of the path behind an event of it. Those that follow
// each other are one.
func (r *route) behind(ancestor Tip) (rest []event.Stretch) {
	passed := ancestor.Seq == 0
	for _, p := range r.pieces {
		from := p.from
		if !passed {
			if p.session != ancestor.Session || ancestor.Seq < p.from || p.to < ancestor.Seq {
				continue
			}
			passed, from = true, ancestor.Seq+1
		}
		if n := len(rest); n > 0 && rest[n-1].To == from-1 {
			rest[n-1].To = p.to
		} else if from <= p.to {
			rest = append(rest, event.Stretch{From: from, To: p.to})
		}
	}
	return rest
}

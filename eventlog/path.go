package eventlog

import (
	"context"
	"iter"
	"slices"
)

// Stretch is a run of seqs, both ends included, on the active path.
type Stretch struct{ From, To int64 }

// A path of fewer events than this is read once, and yielded from memory.
const pathBuffered = 1024

// maxPassed is how many events that are not on the path are read all the same,
// rather than a reading begun anew behind them.
const maxPassed = 256

// ActivePath yields the events on the chain from the newest event back to the
// start, oldest first: what head_moved events left behind is not on it.
func (l *Log) ActivePath(ctx context.Context, session string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p := pathFinder{log: l, session: session, keep: pathBuffered}
		if err := p.find(ctx); err != nil {
			yield(Event{}, err)
			return
		}
		if p.keep > 0 {
			p.yieldKept(ctx, yield)
			return
		}
		for rest := p.path; len(rest) > 0; {
			n := near(rest)
			if !l.along(ctx, session, rest[:n], yield) {
				return
			}
			rest = rest[n:]
		}
	}
}

// near is how many stretches, from the first one on, have little between them.
func near(path []Stretch) int {
	n := 1
	for n < len(path) && path[n].From-path[n-1].To-1 <= maxPassed {
		n++
	}
	return n
}

// along yields stretches of the path, in a single reading from the first to the
// last.
func (l *Log) along(ctx context.Context, session string, path []Stretch, yield func(Event, error) bool) bool {
	for e, err := range l.lineage(ctx, session, Between(path[0].From, path[len(path)-1].To)) {
		if err == nil && e.Seq > path[0].To {
			path = path[1:]
		}
		if err == nil && e.Seq < path[0].From {
			continue // its body, if it has one elsewhere, is not looked for
		}
		if err == nil && l.unresolved(&e) {
			e, err = l.resolved(ctx, e)
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// Path resolves the active path into stretches of seqs, oldest first. A
// head_moved event is itself on the path.
func (l *Log) Path(ctx context.Context, session string) ([]Stretch, error) {
	p := pathFinder{log: l, session: session}
	if err := p.find(ctx); err != nil {
		return nil, err
	}
	return p.path, nil
}

// pathFinder follows the active path back from the newest event.
type pathFinder struct {
	log     *Log
	session string
	path    []Stretch // newest first until it is complete
	keep    int       // how many more events may be kept; 0 keeps none
	kept    []Event   // the path's events, newest first, unless keep is 0
}

func (p *pathFinder) find(ctx context.Context) error {
	newest, err := p.log.newest(ctx, p.session)
	if err != nil {
		return err
	}
	for at := newest.Seq; at > 0; {
		if at, err = p.follow(ctx, at); err != nil {
			return err
		}
	}
	slices.Reverse(p.path)
	return nil
}

// follow goes back from seq at to the next head_moved that moves far, and says
// where the path goes on; 0 is nowhere.
func (p *pathFinder) follow(ctx context.Context, at int64) (int64, error) {
	end := at
	for e, err := range p.log.lineage(ctx, p.session, Between(0, at).Backward()) {
		if err != nil {
			return 0, err
		}
		if e.Seq > end {
			continue
		}
		p.note(e)
		if e.Type.Name() != HeadMoved {
			continue
		}
		to, err := e.Parent()
		if err != nil {
			return 0, err
		}
		p.path = append(p.path, Stretch{From: e.Seq, To: end})
		if end = to; end == 0 || e.Seq-end > maxPassed {
			return end, nil
		}
	}
	p.path = append(p.path, Stretch{From: 1, To: end})
	return 0, nil
}

// note keeps an event of the path, or none any more if there are too many.
func (p *pathFinder) note(e Event) {
	if p.keep == 0 {
		return
	}
	if p.keep--; p.keep == 0 {
		p.kept = nil
		return
	}
	p.kept = append(p.kept, e)
}

func (p *pathFinder) yieldKept(ctx context.Context, yield func(Event, error) bool) {
	for _, e := range slices.Backward(p.kept) {
		var err error
		if p.log.unresolved(&e) {
			e, err = p.log.resolved(ctx, e)
		}
		if !yield(e, err) || err != nil {
			return
		}
	}
}

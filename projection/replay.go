package projection

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// replayer folds a lineage from its start, without snapshots. It goes on as if
// every event were on the path, and comes back to the path alone when a
// head_moved turns out to have left some of it.
type replayer struct {
	*Loaded
	turns []turn
	// left says that the folds of path scope have taken in what is not on the
	// path, or an event that they could not fold.
	left bool
}

// turn is a head_moved: the path goes on from to.
type turn struct{ at, to int64 }

func (l *Loaded) replay(ctx context.Context, log *eventlog.Log) error {
	l.folds = l.set.begin()
	for _, f := range l.folds {
		l.Explain.Parts = append(l.Explain.Parts, PartExplain{Projection: f.name(), Version: f.version(), Scope: f.scope()})
	}
	r := &replayer{Loaded: l}
	if err := r.read(ctx, log, eventlog.Stretch{From: 1, To: l.Head.Seq}, r.first); err != nil || !r.left {
		return err
	}
	for i, f := range l.folds {
		if f.scope() != eventlog.SessionScope {
			f.reset()
			l.Explain.Parts[i].Folded = 0
		}
	}
	for _, s := range r.path() {
		if err := r.read(ctx, log, s, r.again); err != nil {
			return err
		}
	}
	return nil
}

func (r *replayer) read(ctx context.Context, log *eventlog.Log, s eventlog.Stretch, take func(e *eventlog.Event) error) error {
	for e, err := range log.Read(ctx, r.Session, eventlog.Between(s.From, s.To)) {
		if err != nil {
			return fmt.Errorf("project session %q: %w", r.Session, err)
		}
		r.Explain.read(&e)
		if err := take(&e); err != nil {
			return err
		}
	}
	return nil
}

// first takes in an event on the first way through.
func (r *replayer) first(e *eventlog.Event) error {
	if err := r.step(e); err != nil {
		return fmt.Errorf("project session %q: %w", r.Session, err)
	}
	e = meant(e)
	for i, f := range r.folds {
		session := f.scope() == eventlog.SessionScope
		if r.left && !session || !inScope(f.scope(), e.Type, true) {
			continue
		}
		switch err := f.apply(e); {
		case err == nil:
			r.Explain.Parts[i].Folded++
		case session:
			return err
		default:
			r.left = true // perhaps the event is not on the path
		}
	}
	return nil
}

// step notes where the path turns.
func (r *replayer) step(e *eventlog.Event) error {
	if e.Type.Name() != eventlog.HeadMoved {
		return nil
	}
	to, err := e.Parent()
	if err != nil {
		return err
	}
	r.turns = append(r.turns, turn{at: e.Seq, to: to})
	r.left = r.left || to < e.Seq-1
	return nil
}

// path is the active path, oldest first.
func (r *replayer) path() (path []eventlog.Stretch) {
	turns := r.turns
	for at := r.Head.Seq; at > 0; {
		for len(turns) > 0 && turns[len(turns)-1].at > at {
			turns = turns[:len(turns)-1]
		}
		s, to := eventlog.Stretch{From: 1, To: at}, int64(0)
		if n := len(turns); n > 0 {
			s.From, to = turns[n-1].at, turns[n-1].to
		}
		path, at = append(path, s), to
	}
	slices.Reverse(path)
	return path
}

// again takes in an event of the path for the folds of path scope.
func (r *replayer) again(e *eventlog.Event) error {
	e = meant(e)
	for i, f := range r.folds {
		if f.scope() == eventlog.SessionScope || !inScope(f.scope(), e.Type, true) {
			continue
		}
		if err := f.apply(e); err != nil {
			return err
		}
		r.Explain.Parts[i].Folded++
	}
	return nil
}

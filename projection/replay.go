package projection

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// replayer folds a lineage from its start, without snapshots. It goes on as if
// every event were on the path, and comes back to the path alone when a
// head_moved turns out to have left some of it.
type replayer struct {
	*Loaded
	tree event.Tree
	// left says that the folds of path scope have taken in what is not on the
	// path, or an event that they could not fold.
	left bool
}

func (l *Loaded) replay(ctx context.Context, log *eventlog.Log) error {
	l.folds = l.set.begin()
	for _, f := range l.folds {
		l.Explain.Parts = append(l.Explain.Parts, PartExplain{Projection: f.name(), Version: f.version(), Scope: f.scope()})
	}
	r := &replayer{Loaded: l}
	if err := r.read(ctx, log, event.Stretch{From: 1, To: l.Head.Seq}, r.first); err != nil || !r.left {
		return err
	}
	for i, f := range l.folds {
		if f.scope() != event.SessionScope {
			f.reset()
			l.Explain.Parts[i].Folded = 0
		}
	}
	for _, s := range r.tree.Path(r.Head.Seq) {
		if err := r.read(ctx, log, s, r.again); err != nil {
			return err
		}
	}
	return nil
}

func (r *replayer) read(ctx context.Context, log *eventlog.Log, s event.Stretch, take func(e *event.Event) error) error {
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
func (r *replayer) first(e *event.Event) error {
	if err := r.step(e); err != nil {
		return fmt.Errorf("project session %q: %w", r.Session, err)
	}
	e = e.Effective()
	for i, f := range r.folds {
		session := f.scope() == event.SessionScope
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

// step adds the event to the tree, and notes whether the path left some events.
func (r *replayer) step(e *event.Event) error {
	moves := len(r.tree)
	if err := r.tree.Add(e); err != nil {
		return err
	}
	if len(r.tree) > moves && r.tree[moves].To < e.Seq-1 {
		r.left = true
	}
	return nil
}

// again takes in an event of the path for the folds of path scope.
func (r *replayer) again(e *event.Event) error {
	e = e.Effective()
	for i, f := range r.folds {
		if f.scope() == event.SessionScope || !inScope(f.scope(), e.Type, true) {
			continue
		}
		if err := f.apply(e); err != nil {
			return err
		}
		r.Explain.Parts[i].Folded++
	}
	return nil
}

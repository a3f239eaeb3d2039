package projection

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// replayer folds a lineage from its start, without snapshots. The first pass treats
// each event as an event of the path. If a head_moved shows that this was wrong, the
// folds of path scope start again, with a second pass over the path.
type replayer struct {
	*Loaded
	tree event.Tree
	// offPath reports that the folds of path scope got an event that is not on the
	// path, or an event that they could not fold.
	offPath bool
}

func (l *Loaded) replay(ctx context.Context, log *eventlog.Log) error {
	l.folds = l.begin()
	for _, f := range l.folds {
		l.Explain.Parts = append(l.Explain.Parts, PartExplain{Projection: f.name(), Version: f.version(), Scope: f.scope()})
	}
	r := &replayer{Loaded: l}
	if err := r.readAll(ctx, log); err != nil || !r.offPath {
		return err
	}
	for i, f := range l.folds {
		if f.scope() != event.SessionScope {
			f.reset()
			l.Explain.Parts[i].Folded = 0
		}
	}
	for e, err := range readPath(ctx, log, l.Session, r.tree.Path(r.Head.Seq), eventlog.Between) {
		if err != nil {
			return fmt.Errorf("project session %q: %w", l.Session, err)
		}
		l.Explain.read(&e)
		if err := r.secondPass(&e); err != nil {
			return err
		}
	}
	return nil
}

// readAll makes the first pass.
func (r *replayer) readAll(ctx context.Context, log *eventlog.Log) error {
	var done int64
	err := r.read(ctx, log, eventlog.Between(1, r.Head.Seq), func(e *event.Event) (bool, error) {
		done = e.Seq
		err := r.firstPass(e)
		return !r.onlyTree(), err
	})
	if err != nil || done == r.Head.Seq {
		return err
	}
	return r.read(ctx, log, eventlog.Between(done+1, r.Head.Seq).Bare().Transient(), func(e *event.Event) (bool, error) {
		return true, r.firstPass(e)
	})
}

// onlyTree reports whether the rest of the first pass needs the events for the tree only.
func (r *replayer) onlyTree() bool {
	return r.offPath && !slices.ContainsFunc(r.folds, func(f fold) bool { return f.scope() == event.SessionScope })
}

// read visits the events of a range until visit returns false.
func (r *replayer) read(ctx context.Context, log *eventlog.Log, which eventlog.Range, visit func(e *event.Event) (bool, error)) error {
	for e, err := range log.Read(ctx, r.Session, which) {
		if err != nil {
			return fmt.Errorf("project session %q: %w", r.Session, err)
		}
		r.Explain.read(&e)
		if more, err := visit(&e); err != nil || !more {
			return err
		}
	}
	return nil
}

// firstPass applies an event to all folds.
func (r *replayer) firstPass(e *event.Event) error {
	if err := r.addToTree(e); err != nil {
		return fmt.Errorf("project session %q: %w", r.Session, err)
	}
	e = e.Effective()
	scope := e.Type.Scope()
	for i, f := range r.folds {
		session := f.scope() == event.SessionScope
		if r.offPath && !session || !inScope(f.scope(), scope, true) {
			continue
		}
		switch err := f.apply(e); {
		case err == nil:
			r.Explain.Parts[i].Folded++
		case session:
			return err
		default:
			r.offPath = true // the event may be off the path
		}
	}
	return nil
}

// addToTree adds the event to the tree. It sets offPath if the event leaves others
// off the path.
func (r *replayer) addToTree(e *event.Event) error {
	moves := len(r.tree)
	if err := r.tree.Add(e); err != nil {
		return err
	}
	if len(r.tree) > moves && r.tree[moves].To < e.Seq-1 {
		r.offPath = true
	}
	return nil
}

// secondPass applies an event of the path to the folds of path scope.
func (r *replayer) secondPass(e *event.Event) error {
	e = e.Effective()
	scope := e.Type.Scope()
	for i, f := range r.folds {
		if f.scope() == event.SessionScope || !inScope(f.scope(), scope, true) {
			continue
		}
		if err := f.apply(e); err != nil {
			return err
		}
		r.Explain.Parts[i].Folded++
	}
	return nil
}

// Package sessiontree lists the sessions below a session: child runs, forks and copies.
package sessiontree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Tree is the sessions of one or several trees.
type Tree struct {
	// Sessions has each session once, after the session that it was found below.
	Sessions []Session
	// Missing are child sessions that the store does not have, sorted.
	Missing []string
}

// Session is a session of a tree.
type Session struct {
	Session string
	// Head is the head at which the child runs were read.
	Head event.Head
	// Below are the child runs, the forks and the copies of the session. A session can
	// be in the list twice.
	Below []string
}

// Load lists sessions and the sessions below them: child runs, forks and copies, at
// all depths. Child runs come from child events and from the parent in session_started.
// Load lists all sessions of the store. A cycle is no error: each session is in the
// list once.
func Load(ctx context.Context, log *eventlog.Log, sessions ...string) (Tree, error) {
	var t Tree
	w := Walk{Log: log, Set: projection.Of("", projection.Children()), Copies: true}
	missing, err := w.Run(ctx, sessions, func(l *projection.Loaded, below []string) {
		t.Sessions = append(t.Sessions, Session{Session: l.Session, Head: l.Head, Below: below})
	})
	if err != nil {
		return Tree{}, fmt.Errorf("tree of sessions: %w", err)
	}
	t.Missing = missing
	return t, nil
}

// Walk visits sessions, and the sessions below them.
type Walk struct {
	Log    *eventlog.Log
	Set    projection.Set // has Children
	Copies bool           // a copy is below its original
}

// Run visits each session once, after the session that it was found below. missing are
// the child sessions that the store does not have, sorted.
func (w *Walk) Run(ctx context.Context, sessions []string, visit func(l *projection.Loaded, below []string)) (missing []string, err error) {
	began, forks, err := w.childrenByParent(ctx)
	if err != nil {
		return nil, err
	}
	lineages := projection.NewLineages(w.Log, w.Set, forks)
	named := map[string]bool{}
	seen := map[string]bool{}
	var queue []string
	find := func(ids []string) {
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				queue = append(queue, id)
			}
		}
	}
	find(sessions)
	maps.Copy(named, seen)
	for ; len(queue) > 0; queue = queue[1:] {
		l, err := lineages.Load(ctx, queue[0])
		if !named[queue[0]] && errors.Is(err, eventlog.ErrNotFound) {
			missing = append(missing, queue[0])
			continue
		}
		if err != nil {
			return nil, err
		}
		runs, _ := projection.State(l, projection.Children())
		below := slices.Concat(sessionsOf(runs), began[l.Session])
		visit(l, below)
		find(below)
	}
	slices.Sort(missing)
	return missing, nil
}

// childrenByParent returns the forks, the child runs and the copies of each session,
// ordered by id, and the forks alone.
func (w *Walk) childrenByParent(ctx context.Context) (children map[string][]string, forks eventlog.ForkMap, err error) {
	children = map[string][]string{}
	for info, err := range w.Log.Sessions(ctx) {
		if err == nil {
			err = forks.Add(&info)
		}
		if err != nil {
			return nil, forks, err
		}
		first := info.First
		if first.Type.Name() == event.SessionStarted && first.Data == nil && !first.Redacted() { // spilled
			if first, err = w.Log.Event(ctx, info.ID, first.Seq); err != nil {
				return nil, forks, err
			}
		}
		if _, _, copied := first.CopyOrigin(); copied && !w.Copies {
			continue
		}
		parent, err := ParentOf(&first)
		if err != nil {
			return nil, forks, err
		}
		if parent != "" {
			children[parent] = append(children[parent], info.ID)
		}
	}
	return children, forks, nil
}

// ParentOf returns the session that a session with this first event was forked from,
// copied from or run by; empty if there is none.
func ParentOf(first *event.Event) (string, error) {
	if original, _, copied := first.CopyOrigin(); copied {
		return original, nil
	}
	switch first.Type.Name() {
	case event.SessionForked:
		f, _, err := event.Decode[event.Fork](first)
		return f.Parent, err
	case event.SessionStarted:
		if first.Inherited() { // of a copy that was repaired
			return "", nil
		}
		p, err := event.DecodeKept[event.Session](first)
		return p.Parent.SessionID, err
	}
	return "", nil
}

// sessionsOf returns the sessions of child runs.
func sessionsOf(list *projection.ChildList) (ids []string) {
	for _, r := range list.Runs {
		ids = append(ids, r.SessionID)
	}
	return ids
}

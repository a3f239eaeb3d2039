package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// sessions are the ids that args name, each by id or unique prefix and once,
// or all ids of the log.
func (a *app) sessions(ctx context.Context, log *eventlog.Log, args []string, all bool) ([]string, error) {
	if all {
		var ids []string
		for info, err := range log.Sessions(ctx) {
			if err != nil {
				return nil, err
			}
			ids = append(ids, info.ID)
		}
		return ids, ctx.Err()
	}
	return named(args, func(arg string) (string, error) { return resolve(ctx, log, arg) })
}

// named are the sessions that find gives for args, each once.
func named(args []string, find func(arg string) (id string, err error)) ([]string, error) {
	var ids []string
	for _, arg := range args {
		id, err := find(arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// resolve finds a session by its id or unique prefix. A prefix that fits a
// session and its sub-agents only means the session.
func resolve(ctx context.Context, log *eventlog.Log, name string) (string, error) {
	if strings.TrimSpace(name) == "" {
		return "", usagef("no session named: give an id, or the beginning of one")
	}
	session, err := log.Resolve(ctx, name)
	var several *eventlog.AmbiguousError
	if errors.As(err, &several) {
		if main, ok := mainOf(several.Sessions); ok {
			return main, nil
		}
	}
	if err != nil {
		return "", err
	}
	return session, nil
}

// mainOf finds the session that all others are named after: importers call the
// sub-agents of a session "<its id>.<something>".
func mainOf(sorted []string) (string, bool) {
	main := sorted[0]
	for _, id := range sorted[1:] {
		if !strings.HasPrefix(id, main+".") {
			return "", false
		}
	}
	return main, true
}

// exactly is the session with that id, and no other that begins with it.
func exactly(ctx context.Context, log *eventlog.Log, id string) (string, error) {
	if strings.TrimSpace(id) == "" {
		return "", usagef("no session named: give its full id")
	}
	found, err := log.Resolve(ctx, id)
	var several *eventlog.AmbiguousError
	switch {
	case err == nil && found == id:
		return id, nil
	case err == nil:
		return "", &beginningError{name: id, sessions: []string{found}}
	case errors.As(err, &several):
		return "", &beginningError{name: id, sessions: several.Sessions}
	}
	return "", err
}

// beginningError says that a name, where a full id is asked for, is only the
// beginning of some.
type beginningError struct {
	name     string
	sessions []string
	free     bool // a session of that name may be begun
}

func (e *beginningError) hint() string {
	if e.free {
		return "give the full id, or begin a session of that name with --expect new"
	}
	return "give the full id"
}

func (e *beginningError) Error() string {
	const most = 3
	var names []string
	for _, id := range e.sessions[:min(len(e.sessions), most)] {
		names = append(names, fmt.Sprintf("%q", id))
	}
	if n := len(e.sessions) - len(names); n > 0 {
		names = append(names, thousands(int64(n))+" more")
	}
	return fmt.Sprintf("no session is named %q, which is the beginning of %s", e.name, strings.Join(names, ", "))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
)

// sessions are the ids for the names in args, each once, or all ids of the log.
func (a *app) sessions(ctx context.Context, log *eventlog.Log, args []string, all bool) ([]string, error) {
	if all {
		return allIDs(ctx, log)
	}
	return findEach(args, func(arg string) (string, error) { return resolve(ctx, log, arg) })
}

// allIDs are the ids of all sessions of the log, sorted.
func allIDs(ctx context.Context, log *eventlog.Log) (ids []string, err error) {
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, info.ID)
	}
	return ids, ctx.Err()
}

// conversations are the ids of all sessions, without those that have the state of a program.
func (a *app) conversations(ctx context.Context, log *eventlog.Log) ([]string, error) {
	rows, err := a.sessionRows(ctx, log)
	return listing.IDs(listing.WithoutState(rows)), err
}

// named are the ids for the names in args; nil without a name.
func (a *app) named(ctx context.Context, log *eventlog.Log, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	return a.sessions(ctx, log, args, false)
}

// findEach calls find for each name, and returns the ids without duplicates.
func findEach(args []string, find func(arg string) (id string, err error)) ([]string, error) {
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

// resolve finds a session by its id or a unique prefix. A prefix of a session and its
// sub-agents means the session.
func resolve(ctx context.Context, log *eventlog.Log, name string) (string, error) {
	if strings.TrimSpace(name) == "" {
		return "", usagef("no session named: give an id, or the beginning of one")
	}
	session, err := listing.Resolve(ctx, log, name)
	var several *eventlog.AmbiguousError
	if errors.As(err, &several) {
		err = &severalError{several, titlesOf(ctx, log, several.Sessions)}
	}
	return session, err
}

// severalError is an ambiguous id, with the titles of the sessions.
type severalError struct {
	*eventlog.AmbiguousError
	titles []string // "id  title", one for each session that is listed
}

func (e *severalError) Error() string {
	return fmt.Sprintf("%q fits %s, as listed", e.Prefix, count(len(e.Sessions), "session"))
}

func (e *severalError) Unwrap() error { return e.AmbiguousError }

// mostTitles is how many sessions a severalError lists.
const mostTitles = 10

func titlesOf(ctx context.Context, log *eventlog.Log, ids []string) (titles []string) {
	for _, id := range ids[:min(len(ids), mostTitles)] {
		titles = append(titles, strings.TrimSpace(clean(id)+"  "+brief(listing.Name(ctx, log, id), titleColumns)))
	}
	if n := len(ids) - len(titles); n > 0 {
		titles = append(titles, "… "+thousands(n)+" more")
	}
	return titles
}

// exactly finds a session by its full id. A prefix is a beginningError.
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

// beginningError rejects the beginning of an id where a full id is required.
type beginningError struct {
	name     string
	sessions []string
	free     bool // a session with that name may begin
}

func (e *beginningError) hint() string {
	if e.free {
		return "give the full id, or begin a session of that name with --expect new"
	}
	return "give the full id"
}

func (e *beginningError) Error() string {
	return fmt.Sprintf("no session is named %q, which is the beginning of %s", e.name, someOf(e.sessions, 3))
}

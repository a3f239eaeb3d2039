package listing

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// Resolve finds a session by its id or a unique prefix. A prefix of a session and its
// sub-agents means the session. A name that fits several sessions is an eventlog.AmbiguousError.
func Resolve(ctx context.Context, log *eventlog.Log, name string) (string, error) {
	session, err := log.Resolve(ctx, name)
	if errors.Is(err, eventlog.ErrNotFound) {
		session, err = resolveSubAgent(ctx, log, name, err)
	}
	var several *eventlog.AmbiguousError
	if errors.As(err, &several) {
		if main, ok := mainOf(several.Sessions); ok {
			return main, nil
		}
	}
	return session, err
}

// mainOf is the session with all others as sub-agents. Importers name sub-agents
// "<id of the session>.<name>".
func mainOf(sorted []string) (string, bool) {
	main := sorted[0]
	for _, id := range sorted[1:] {
		if !strings.HasPrefix(id, main+".") {
			return "", false
		}
	}
	return main, true
}

// SubAgents are the rests of the ids of a session's sub-agents, sorted.
func SubAgents(session string, ids []string) (rests []string) {
	from, _ := slices.BinarySearch(ids, session+".")
	for _, id := range ids[from:] {
		rest, ok := strings.CutPrefix(id, session+".")
		if !ok {
			break
		}
		rests = append(rests, rest)
	}
	return rests
}

// resolveSubAgent finds a sub-agent by "<prefix of a session>.<prefix of the rest>". If
// there is none, the error is notFound.
func resolveSubAgent(ctx context.Context, log *eventlog.Log, name string, notFound error) (string, error) {
	if !strings.Contains(name, ".") {
		return "", notFound
	}
	var ids []string
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return "", err
		}
		ids = append(ids, info.ID)
	}
	switch found := withName(name, ids); len(found) {
	case 0:
		return "", notFound
	case 1:
		return found[0], nil
	default:
		return "", &eventlog.AmbiguousError{Prefix: name, Sessions: found}
	}
}

// withName are the ids that a short name may mean, sorted.
func withName(name string, ids []string) (found []string) {
	from, exact := slices.BinarySearch(ids, name)
	if exact {
		return []string{name}
	}
	for _, id := range ids[from:] {
		if !strings.HasPrefix(id, name) {
			break
		}
		found = append(found, id)
	}
	head, tail, ok := strings.Cut(name, ".")
	if len(found) > 0 || !ok {
		return found
	}
	for _, session := range withName(head, ids) {
		for _, rest := range withName(tail, SubAgents(session, ids)) {
			found = append(found, session+"."+rest)
		}
	}
	return found
}

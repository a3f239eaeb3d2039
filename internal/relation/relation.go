// Package relation names the relations of sessions, for the indexes of stores: a session is
// a fork, a copy or a run of another one, or another state of it after a repair.
package relation

import (
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// unknown is the relation of a session whose first event does not tell its relations.
const unknown = ""

// Of returns the names under which eventlog.Relater finds a session, from its first stored
// event.
func Of(first *event.Event) []string {
	names := []string{birth(first.ID)}
	parsed, err := event.Parse(first.Line(), first.SessionID)
	origin, copied := parsed.Origin()
	if copied {
		names = append(names, origin.Session)
	}
	if original, _, whole := parsed.CopyOrigin(); whole {
		names = append(names, original)
	}
	parent, known := parentOf(&parsed)
	if err != nil || !known && !copied {
		names = append(names, unknown)
	} else if parent != "" {
		names = append(names, parent)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// To returns the names to look up for a session: each related session has one of them (see
// Of). first is the id of the session's first event, or zero if that is missing.
func To(session string, first ulid.ULID) []string {
	names := []string{session, unknown}
	if first != (ulid.ULID{}) {
		names = append(names, birth(first))
	}
	return names
}

// birth is the name of a session's first event. A repaired session has the first event of
// the damaged session. No session id equals such a name.
func birth(first ulid.ULID) string { return "\x01" + first.String() }

// parentOf is the parent that the first event of a fork or of a run names; empty if there
// is none. known is false if the event does not tell.
func parentOf(first *event.Event) (parent string, known bool) {
	if _, _, spilled := first.Spilled(); spilled && first.Data == nil {
		return "", false
	}
	switch first.Type.Name() {
	case event.SessionForked:
		f, _, err := event.Decode[event.Fork](first)
		return f.Parent, err == nil
	case event.SessionStarted:
		s, err := event.DecodeKept[event.Session](first)
		return s.Parent.SessionID, err == nil
	case event.Lost:
		return "", false
	}
	return "", true
}

package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/internal/listing"
)

// abbreviate is the shortest name of a session that resolve finds: a prefix of at least
// eight bytes. The name of a sub-agent is the short name of its session, a dot, and a
// prefix of the rest. ids are all ids of the store, sorted.
func abbreviate(id string, ids []string) string {
	if session, rest, ok := subAgent(id, ids); ok {
		return abbreviate(session, ids) + "." + abbreviate(rest, listing.SubAgents(session, ids))
	}
	i, _ := slices.BinarySearch(ids, id)
	need := 8
	if i > 0 {
		need = max(need, common(ids[i-1], id)+1)
	}
	for _, next := range ids[min(i+1, len(ids)):] {
		if strings.HasPrefix(next, id+".") {
			continue // a sub-agent of the session
		}
		need = max(need, common(next, id)+1)
		if !strings.HasPrefix(next, id) {
			break
		}
	}
	for need < len(id) && !utf8.RuneStart(id[need]) {
		need++
	}
	return id[:min(need, len(id))]
}

// common is the length of the common prefix.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// subAgent splits the id of a sub-agent, "<id of the session>.<rest>", if the store has the
// session.
func subAgent(id string, ids []string) (session, rest string, ok bool) {
	for i := range id {
		if id[i] != '.' {
			continue
		}
		if _, stored := slices.BinarySearch(ids, id[:i]); stored {
			return id[:i], id[i+1:], true
		}
	}
	return "", "", false
}

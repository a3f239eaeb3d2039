package memory

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/relation"
)

// lookup finds sessions by the relations of their first events, and events by their blobs.
type lookup struct {
	related map[string]map[string]bool // sessions by relation.Of
	users   map[event.Digest]map[user]bool
}

// user is an event that lists a blob.
type user struct {
	session string
	seq     int64
}

func newLookup() lookup {
	return lookup{related: map[string]map[string]bool{}, users: map[event.Digest]map[user]bool{}}
}

// begin adds the relations of a session.
func (x *lookup) begin(first *event.Event) {
	for _, name := range relation.Of(first) {
		put(x.related, name, first.SessionID)
	}
}

// add adds the blobs of an event.
func (x *lookup) add(e *event.Event) {
	for _, d := range e.Blobs() {
		put(x.users, d, user{e.SessionID, e.Seq})
	}
}

func put[K, V comparable](to map[K]map[V]bool, key K, value V) {
	if to[key] == nil {
		to[key] = map[V]bool{}
	}
	to[key][value] = true
}

// drop removes the blobs of the events that drops picks.
func (x *lookup) drop(drops func(user) bool) {
	for d, users := range x.users {
		maps.DeleteFunc(users, func(u user, _ bool) bool { return drops(u) })
		if len(users) == 0 {
			delete(x.users, d)
		}
	}
}

// remove removes a session.
func (x *lookup) remove(session string) {
	x.drop(func(u user) bool { return u.session == session })
	for name, sessions := range x.related {
		if delete(sessions, session); len(sessions) == 0 {
			delete(x.related, name)
		}
	}
}

// List implements eventlog.Lister.
func (s *Store) List(ctx context.Context, part eventlog.Part) iter.Seq2[eventlog.SessionInfo, error] {
	return s.rows(ctx, func(d *data) iter.Seq[string] {
		return func(yield func(string) bool) {
			for id := range d.sessions {
				if part.Has(id) && !yield(id) {
					return
				}
			}
		}
	})
}

// Related implements eventlog.Relater.
func (s *Store) Related(ctx context.Context, session string) iter.Seq2[eventlog.SessionInfo, error] {
	return s.rows(ctx, func(d *data) iter.Seq[string] {
		var first ulid.ULID
		if l := d.sessions[session]; l != nil {
			first = l.birth
		}
		found := map[string]bool{}
		for _, name := range relation.To(session, first) {
			maps.Copy(found, d.lookup.related[name])
		}
		return maps.Keys(found)
	})
}

// BlobUsers implements eventlog.BlobIndex.
func (s *Store) BlobUsers(ctx context.Context, digests []event.Digest) iter.Seq2[eventlog.BlobUser, error] {
	return func(yield func(eventlog.BlobUser, error) bool) {
		for _, d := range digests {
			if err := s.usable(ctx); err != nil {
				yield(eventlog.BlobUser{}, err)
				return
			}
			s.data.mu.RLock()
			users := slices.Collect(maps.Keys(s.data.lookup.users[d]))
			s.data.mu.RUnlock()
			for _, u := range users {
				if !yield(eventlog.BlobUser{Digest: d, Session: u.session, Seq: u.seq}, nil) {
					return
				}
			}
		}
	}
}

var (
	_ eventlog.Lister    = (*Store)(nil)
	_ eventlog.Relater   = (*Store)(nil)
	_ eventlog.BlobIndex = (*Store)(nil)
)

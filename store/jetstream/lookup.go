package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/relation"
)

// Related implements eventlog.Relater.
func (s *Store) Related(ctx context.Context, session string) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		l, err := s.reading(ctx)
		var names []string
		switch {
		case err == nil && l == nil:
			return
		case err == nil:
			names, err = l.shard(session).relationsOf(ctx, session)
		}
		if err != nil {
			yield(eventlog.SessionInfo{}, fmt.Errorf("sessions related to %q: %w", session, err))
			return
		}
		tips := l.tipsOf(ctx, func(st *stream) ([]string, error) { return st.relatedTo(ctx, names) })
		s.rows(ctx, l, tips, func(info eventlog.SessionInfo, err error) bool {
			return err == nil && info.Err == nil && !related(&info.First, names) || yield(info, err)
		})
	}
}

// relationsOf are the names by which the relatives of a session are found.
func (st *stream) relationsOf(ctx context.Context, session string) ([]string, error) {
	names := relation.To(session, ulid.ULID{})
	if checkSession(session) != nil {
		return names, nil
	}
	v, err := st.view(ctx, session)
	var first event.Event
	if err == nil {
		first, err = v.event(ctx, v.first())
	}
	switch {
	case errors.Is(err, eventlog.ErrNotFound), errors.Is(err, eventlog.ErrCorrupt):
		return names, nil
	case err != nil:
		return nil, err
	}
	return relation.To(session, first.ID), nil
}

// relatedTo lists the sessions of a shard with a mark of one of the names.
func (st *stream) relatedTo(ctx context.Context, names []string) (sessions []string, err error) {
	for _, name := range names {
		subjects, err := st.subjects(ctx, st.related(name, "*"))
		if err != nil {
			return nil, err
		}
		for _, subject := range subjects {
			if session, ok := st.decodeLast(subject); ok {
				sessions = append(sessions, session)
			}
		}
	}
	slices.Sort(sessions)
	return slices.Compact(sessions), nil
}

// related reports whether a session with that first event has one of the relations.
func related(first *event.Event, names []string) bool {
	return slices.ContainsFunc(relation.Of(first), func(name string) bool { return slices.Contains(names, name) })
}

// BlobUsers implements eventlog.BlobIndex.
func (s *Store) BlobUsers(ctx context.Context, digests []event.Digest) iter.Seq2[eventlog.BlobUser, error] {
	return func(yield func(eventlog.BlobUser, error) bool) {
		if err := s.blobUsers(ctx, digests, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.BlobUser{}, fmt.Errorf("find the users of blobs: %w", err))
		}
	}
}

func (s *Store) blobUsers(ctx context.Context, digests []event.Digest, yield func(eventlog.BlobUser, error) bool) error {
	for _, d := range digests {
		if err := d.Check(); err != nil {
			return err
		}
	}
	l, err := s.reading(ctx)
	if l == nil || err != nil {
		return err
	}
	for page := range slices.Chunk(digests, maxMulti) {
		for _, st := range l.shards {
			users, err := st.usersOf(ctx, page)
			if err != nil {
				return err
			}
			for _, u := range users {
				if err := s.usable(ctx); err != nil {
					return err
				}
				if !yield(u, nil) {
					return errStop
				}
			}
		}
	}
	return nil
}

// usersOf finds the users of blobs in a shard, by the marks. The marks of a session with an
// interrupted erasure may be untrue, so its events are read.
func (st *stream) usersOf(ctx context.Context, digests []event.Digest) (users []eventlog.BlobUser, err error) {
	wanted, filters := map[event.Digest]bool{}, map[string]bool{}
	for _, d := range digests {
		wanted[d] = true
		for _, token := range tokens(d) {
			filters[st.subject(markSubject, token, "*")] = true
		}
	}
	pending, err := st.subjects(ctx, st.subject(pendingSubject, "*"))
	if err != nil {
		return nil, err
	}
	marks, err := st.messages(ctx, slices.Collect(maps.Keys(filters)))
	if err != nil {
		return nil, err
	}
	for _, m := range marks {
		uses, err := st.parseMark(m)
		if err != nil {
			return nil, err
		}
		session, _ := st.decodeLast(m.subject)
		unsure := slices.Contains(pending, st.subject(pendingSubject, encodeName(session)))
		for _, u := range uses {
			lists := wanted[u.digest]
			if lists && unsure {
				lists, err = st.lists(ctx, session, u)
			}
			if err != nil {
				return nil, err
			}
			if lists {
				users = append(users, eventlog.BlobUser{Digest: u.digest, Session: session, Seq: u.seq})
			}
		}
	}
	slices.SortFunc(users, func(a, b eventlog.BlobUser) int {
		return cmp.Or(cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq))
	})
	return slices.Compact(users), nil
}

// lists reports whether an event lists a blob now. A damaged event may list it.
func (st *stream) lists(ctx context.Context, session string, u use) (bool, error) {
	v, err := st.currentView(ctx, session)
	if err == nil && (u.seq < v.first() || u.seq > v.tip.head().Seq) {
		return false, nil
	}
	var e event.Event
	if err == nil {
		e, err = v.event(ctx, u.seq)
	}
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
		return false, nil
	case errors.Is(err, eventlog.ErrCorrupt):
		return true, nil
	}
	return slices.Contains(e.Blobs(), u.digest), err
}

// messages returns all messages of the subjects that match one of the filters.
func (st *stream) messages(ctx context.Context, filters []string) (all []*message, err error) {
	var mu sync.Mutex
	var subjects []string
	err = parallel(filters, func(filter string) error {
		found, err := st.subjects(ctx, filter)
		mu.Lock()
		defer mu.Unlock()
		subjects = append(subjects, found...)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = parallel(subjects, func(subject string) error {
		return st.each(ctx, subject, 1, func(m *message) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m)
			return nil
		})
	})
	return all, err
}

package jetstream

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/eventlog"
)

// Version implements eventlog.Versioner. Each change of a session is a message, so the
// sequence of the last message is a version.
func (s *Store) Version(ctx context.Context, session string) (uint64, error) {
	version, err := s.version(ctx, session)
	return version, wrap(fmt.Sprintf("version of session %q", session), err)
}

func (s *Store) version(ctx context.Context, session string) (uint64, error) {
	if err := checkSession(session); err != nil {
		return 0, err
	}
	l, err := s.reading(ctx)
	if err == nil && l == nil {
		err = eventlog.ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	t, err := l.shard(session).tip(ctx, session)
	if err == nil && t.frame == nil && t.err == nil {
		err = eventlog.ErrNotFound
	}
	return t.at, err
}

// Versions implements eventlog.BulkVersioner.
func (s *Store) Versions(ctx context.Context, sessions []string) (map[string]uint64, error) {
	versions := make(map[string]uint64, len(sessions))
	l, err := s.reading(ctx)
	if l == nil || err != nil {
		return versions, err
	}
	subjects := make(map[*stream][]string)
	for _, session := range sessions {
		if checkSession(session) == nil {
			st := l.shard(session)
			subjects[st] = append(subjects[st], st.of(session, framesSubject))
		}
	}
	for st, of := range subjects {
		newest, err := st.newest(ctx)
		if err != nil {
			return nil, err
		}
		found, err := st.lastOf(ctx, of, newest)
		if err != nil {
			return nil, err
		}
		for subject, m := range found {
			session, ok := st.sessionOf(subject)
			if t := st.tipOf(session, m); ok && (t.frame != nil || t.err != nil) {
				versions[session] = t.at
			}
		}
	}
	return versions, nil
}

// Sync implements eventlog.Syncer. The servers sync a message before they acknowledge it,
// or never: Sync has nothing to write. Under the exclusive store lock it finishes an
// erasure of the session that was interrupted.
func (s *Store) Sync(ctx context.Context, session string) error {
	l, err := s.writable(ctx)
	if err == nil {
		err = checkSession(session)
	}
	if err == nil {
		err = l.shard(session).finishPending(ctx, session)
	}
	if err == nil {
		_, err = s.version(ctx, session)
	}
	return wrap(fmt.Sprintf("sync session %q", session), err)
}

// OrdersAppends implements eventlog.Syncer: each session is synced by itself.
func (s *Store) OrdersAppends() bool { return false }

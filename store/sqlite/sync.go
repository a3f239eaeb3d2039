package sqlite

import (
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
)

// Sync implements eventlog.Syncer with an empty durable commit. The commit syncs all
// earlier commits, also the commits of a process that died before it synced the
// write-ahead log. If the session is missing, Sync makes its absence durable and
// returns ErrNotFound.
func (s *Store) Sync(ctx context.Context, session string) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	err := s.read(ctx, func(c *conn) error {
		_, err := sessionVersion(c, session)
		return err
	})
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return err
	}
	return errors.Join(err, s.write(ctx, emptyCommit{}, true))
}

// OrdersAppends implements eventlog.Syncer: a crash leaves the beginning of the write-ahead
// log, unless the store never syncs.
func (s *Store) OrdersAppends() bool { return !s.options.NoSync }

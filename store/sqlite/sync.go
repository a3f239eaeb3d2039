package sqlite

import (
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
)

// Sync implements eventlog.Syncer by a durable commit, which syncs those before
// it. A process that was killed before it synced the write-ahead log has left a
// commit there that is read and may not be on disk. That a session is missing
// is made durable too.
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
	return errors.Join(err, s.write(ctx, touch{}, true))
}

package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/eventlog"
)

const (
	readVersion  = `SELECT hash, revision FROM sessions WHERE id = $1`
	readVersions = `SELECT id, hash, revision FROM sessions WHERE id = ANY ($1)`
	// syncAll locks the row of the session. The lock is a record in the write-ahead log, so
	// its commit syncs that record and all commits before it.
	syncAll = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
		ELSE current_setting('synchronous_commit') END, true) FROM sessions WHERE id = $1 FOR KEY SHARE`
)

// Version implements eventlog.Versioner.
func (s *Store) Version(ctx context.Context, session string) (uint64, error) {
	var hash []byte
	var revision int64
	found, err := s.one(ctx, []any{&hash, &revision}, readVersion, []byte(session))
	if err == nil && !found {
		err = eventlog.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("version of session %q: %w", session, err)
	}
	return versionOf(session, hash, revision)
}

// Versions implements eventlog.BulkVersioner.
func (s *Store) Versions(ctx context.Context, sessions []string) (map[string]uint64, error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, readVersions, idBytes(sessions))
	if err != nil {
		return nil, s.failure(err)
	}
	versions := make(map[string]uint64, len(sessions))
	var id, hash []byte
	var revision int64
	_, err = pgx.ForEachRow(rows, []any{&id, &hash, &revision}, func() (err error) {
		versions[string(id)], err = versionOf(string(id), hash, revision)
		return err
	})
	return versions, s.failure(err)
}

// versionOf adds the number of rewrites to a part of the head's hash.
func versionOf(session string, hash []byte, revision int64) (uint64, error) {
	if len(hash) < 8 {
		return 0, corrupt(session, "sessions", 0, errRow)
	}
	return binary.LittleEndian.Uint64(hash) + uint64(revision), nil
}

// Sync implements eventlog.Syncer.
func (s *Store) Sync(ctx context.Context, session string) error {
	return wrap(fmt.Sprintf("sync session %q", session), s.sync(ctx, session))
}

func (s *Store) sync(ctx context.Context, session string) error {
	conn, err := s.writer(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	warned := warningsOf(conn.Conn())
	var setting string
	found, err := s.scan(conn.QueryRow(ctx, syncAll, []byte(session)), []any{&setting})
	switch {
	case err == nil && !found:
		return eventlog.ErrNotFound
	case err == nil && warned.unreplicated():
		return errUnreplicated
	}
	return err
}

// OrdersAppends implements eventlog.Syncer: a crash, or a promotion of a standby, leaves the
// beginning of the server's write-ahead log.
func (s *Store) OrdersAppends() bool { return true }

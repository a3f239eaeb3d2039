package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// writing are the parameters of a connection that writes. psow is SQLite's
// default: no frame of the log is written behind the one that commits.
const writing = "mode=rw&psow=1"

// dialWriter opens a connection that writes, waiting for others until ctx ends.
func dialWriter(ctx context.Context, path string, options Options) (*conn, error) {
	c, err := dial(path, writing)
	if err != nil {
		return nil, err
	}
	err = within(ctx, options.LockTimeout, func(ctx context.Context) error {
		return patiently(ctx, func() error { return c.setUp(options.Sync) })
	})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// setUp makes a connection ready for writing. The schema is checked first, so
// that a file of another program or of a newer version stays as it is.
func (c *conn) setUp(policy SyncPolicy) error {
	kind, err := inspect(c)
	if err == nil {
		err = kind.check()
	}
	if err != nil {
		return err
	}
	if err := c.useWAL(); err != nil {
		return err
	}
	if err := migrate(c); err != nil {
		return err
	}
	// A log of 8 MiB is folded into the file, which syncs both; of SQLite's own 4 MiB,
	// imports would wait twice as often, while appends to a log that grows are slower. The limit gives back the disk space of an
	// unusually long log.
	return c.run("PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 2048; PRAGMA journal_size_limit = 67108864; " + policy.pragma())
}

func (c *conn) useWAL() error {
	row, err := c.values("PRAGMA journal_mode = WAL", 1)
	if err != nil {
		return fmt.Errorf("switch to a write-ahead log: %w", err)
	}
	if row[0] != driver.Value("wal") {
		return fmt.Errorf("switch to a write-ahead log: the file system allows journal mode %v only", row[0])
	}
	return nil
}

func (s SyncPolicy) pragma() string {
	switch s {
	case Periodic:
		return "PRAGMA synchronous = NORMAL"
	case Never:
		return "PRAGMA synchronous = OFF"
	default:
		return "PRAGMA synchronous = FULL"
	}
}

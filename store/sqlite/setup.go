package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// writerParameters are the parameters of a connection that writes. psow is SQLite's
// default: SQLite does not pad the write-ahead log after a commit.
const writerParameters = "mode=rw&psow=1"

// dialWriter opens a connection that writes. It waits for other processes until ctx
// ends or the lock timeout is over.
func dialWriter(ctx context.Context, path string, options Options) (*conn, error) {
	c, err := dial(path, writerParameters)
	if err != nil {
		return nil, err
	}
	err = withTimeout(ctx, options.LockTimeout, func(ctx context.Context) error {
		return retryBusy(ctx, func() error { return c.setUp(options.level()) })
	})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// setUp prepares a connection for writing. It checks the schema first, so it never
// changes a file of another program or of a newer version.
func (c *conn) setUp(policy syncLevel) error {
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
	if err := create(c); err != nil {
		return err
	}
	// A checkpoint runs when the write-ahead log has 8 MiB. With SQLite's default of 4
	// MiB imports wait for syncs twice as often; with a larger log appends are slower.
	// journal_size_limit truncates a log that grew over 64 MiB.
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

func (s syncLevel) pragma() string {
	switch s {
	case atCheckpoint:
		return "PRAGMA synchronous = NORMAL"
	case never:
		return "PRAGMA synchronous = OFF"
	default:
		return "PRAGMA synchronous = FULL"
	}
}

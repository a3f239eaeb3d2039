package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

const (
	dataVersion = `PRAGMA data_version`
	readVersion = `SELECT hash, revision FROM sessions WHERE id = ?`
)

// Version implements eventlog.Versioner. The version changes with the session's head
// and with every rewrite, and with nothing else. The store caches versions until a
// connection of any process commits, so an unchanged database costs no query of the
// session.
func (s *Store) Version(ctx context.Context, session string) (v uint64, err error) {
	if err := s.open(ctx); err != nil {
		return 0, err
	}
	if s.options.ReadOnly {
		return s.versionReadOnly(ctx, session)
	}
	err = s.untilClose(ctx, func(ctx context.Context) error {
		v, err = s.watch.version(ctx, s.path, session)
		return err
	})
	return v, err
}

func (s *Store) versionReadOnly(ctx context.Context, session string) (v uint64, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		v, err = sessionVersion(c, session)
		return err
	})
	return v, err
}

// watcher caches session versions until a commit. It uses a connection of its own. The
// zero value is ready for use.
type watcher struct {
	mu       sync.Mutex
	conn     *conn
	at       int64 // PRAGMA data_version of the cached versions
	versions map[string]uint64
	closed   bool
}

func (w *watcher) version(ctx context.Context, path, session string) (v uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err = retryBusy(ctx, func() error {
		if err := w.refresh(path); err != nil {
			return err
		}
		var ok bool
		if v, ok = w.versions[session]; ok {
			return nil
		}
		v, err = sessionVersion(w.conn, session)
		if err == nil {
			w.versions[session] = v
		}
		return err
	})
	return v, err
}

// refresh clears the cache after a commit of any connection.
func (w *watcher) refresh(path string) error {
	if w.closed {
		return eventlog.ErrClosed
	}
	if w.conn == nil {
		c, err := dial(path, "mode=ro")
		if err != nil {
			return err
		}
		w.conn = c
	}
	row := make([]driver.Value, 1)
	if _, err := w.conn.first(row, dataVersion); err != nil {
		return fmt.Errorf("read data version: %w", err)
	}
	at, _ := row[0].(int64)
	if at != w.at || w.versions == nil || len(w.versions) > maxKeys {
		w.at, w.versions = at, map[string]uint64{}
	}
	return nil
}

// close closes the connection.
func (w *watcher) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.conn == nil {
		return nil
	}
	return w.conn.close()
}

// sessionVersion adds the number of rewrites to a part of the head's hash.
func sessionVersion(c *conn, session string) (uint64, error) {
	row := make([]driver.Value, 2)
	found, err := c.first(row, readVersion, session)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("version of %q: %w", session, eventlog.ErrNotFound)
	}
	v, ok := versionOf(row)
	if !ok {
		return 0, errors.Join(eventlog.ErrCorrupt, errRow)
	}
	return v, nil
}

// versionOf makes a version of the columns hash and revision.
func versionOf(row []driver.Value) (uint64, bool) {
	hash, ok := row[0].([]byte)
	revision, ok2 := row[1].(int64)
	if !ok || !ok2 || len(hash) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(hash) + uint64(revision), true
}

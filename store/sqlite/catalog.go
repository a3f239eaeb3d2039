package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
)

const (
	listCatalog = `SELECT s.id, s.hash, s.revision, c.row, s.bytes FROM sessions s LEFT JOIN catalog c ON c.session = s.key
		WHERE s.key > ? AND s.key <= ? ORDER BY s.key`
	readCatalogRows  = `SELECT s.id, c.row FROM json_each(?) j JOIN sessions s ON s.id = j.value JOIN catalog c ON c.session = s.key`
	putCatalogRow    = `INSERT OR REPLACE INTO catalog (session, row) SELECT key, ? FROM sessions WHERE id = ?`
	deleteCatalogRow = `DELETE FROM catalog WHERE session IN (?, 0)`
	readCursors      = `SELECT row FROM catalog WHERE session = 0`
	putCursors       = `INSERT OR REPLACE INTO catalog (session, row) VALUES (0, ?)`
)

// The row of session 0, which no session is, has the cursors of imports.
var _ importrun.CursorStore = (*Store)(nil)

// CatalogRows implements eventlog.Cataloger. A damaged catalog has no rows.
func (s *Store) CatalogRows(ctx context.Context, sessions []string) (rows map[string][]byte, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		rows, err = catalogRows(c, sessions)
		return err
	})
	if isDamage(err) {
		return nil, nil
	}
	return rows, wrap("read the catalog", err)
}

func catalogRows(c *conn, sessions []string) (map[string][]byte, error) {
	ids, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	rows := make(map[string][]byte, len(sessions))
	return rows, c.each(func(row []driver.Value) {
		id, _ := row[0].(string)
		rows[id], _ = row[1].([]byte)
	}, 2, readCatalogRows, string(ids))
}

// PutCatalogRows implements eventlog.Cataloger.
func (s *Store) PutCatalogRows(ctx context.Context, rows []eventlog.CatalogRow) error {
	return wrap("write the catalog", s.write(ctx, puttingRows(rows), false))
}

// puttingRows stores rows of the catalog.
type puttingRows []eventlog.CatalogRow

func (p puttingRows) apply(w *writer) error {
	for _, row := range p {
		now, err := sessionVersion(w.conn, row.Session)
		if errors.Is(err, eventlog.ErrNotFound) || err == nil && now != row.At {
			continue
		}
		if err == nil {
			_, err = w.conn.exec(putCatalogRow, row.Data, row.Session)
		}
		if err != nil {
			return fmt.Errorf("catalog session %q: %w", row.Session, err)
		}
	}
	return nil
}

func (puttingRows) unknown(cause error) error { return cause }

// ImportCursors returns what imports know of the files that they have read.
func (s *Store) ImportCursors(ctx context.Context) (cursors []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		row := make([]driver.Value, 1)
		_, err := c.first(row, readCursors)
		cursors, _ = row[0].([]byte)
		return err
	})
	return cursors, wrap("read the cursors of imports", err)
}

// PutImportCursors replaces what imports know of the files that they have read.
func (s *Store) PutImportCursors(ctx context.Context, cursors []byte) error {
	return s.write(ctx, puttingCursors(cursors), false)
}

type puttingCursors []byte

func (p puttingCursors) apply(w *writer) error {
	_, err := w.conn.exec(putCursors, []byte(p))
	return wrap("write the cursors of imports", err)
}

func (puttingCursors) unknown(cause error) error { return cause }

// uncatalog erases the row of a session and the cursors of imports, in the transaction that
// erases the session's lines.
func (w *writer) uncatalog(session int64) error {
	_, err := w.conn.exec(deleteCatalogRow, session)
	return wrap("erase the row of the catalog", err)
}

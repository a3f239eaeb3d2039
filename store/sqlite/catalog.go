package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/convlog/convlog/eventlog"
)

const (
	readCatalogRow   = `SELECT c.row FROM catalog c JOIN sessions s ON s.key = c.session WHERE s.id = ?`
	putCatalogRow    = `INSERT OR REPLACE INTO catalog (session, row) SELECT key, ? FROM sessions WHERE id = ?`
	deleteCatalogRow = `DELETE FROM catalog WHERE session = ?`
)

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
	rows := make(map[string][]byte, len(sessions))
	for _, session := range sessions {
		row := make([]driver.Value, 1)
		if _, err := c.first(row, readCatalogRow, session); err != nil {
			return nil, err
		}
		if data, ok := row[0].([]byte); ok {
			rows[session] = data
		}
	}
	return rows, nil
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

// uncatalog erases the row of a session, in the transaction that erases its lines.
func (w *writer) uncatalog(session int64) error {
	_, err := w.conn.exec(deleteCatalogRow, session)
	return wrap("erase the row of the catalog", err)
}

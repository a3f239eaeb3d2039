package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql/driver"

	"github.com/convlog/convlog/eventlog"
)

// Table identity has one row: the id of the store. The first call of StoreID creates it.
const (
	hasIdentity   = `SELECT 1 FROM sqlite_schema WHERE name = 'identity'`
	findIdentity  = `SELECT id FROM identity`
	makeIdentity  = `CREATE TABLE IF NOT EXISTS identity (id TEXT NOT NULL)`
	storeIdentity = `INSERT INTO identity (id) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM identity)`
)

var _ eventlog.Identifier = (*Store)(nil)

// StoreID implements eventlog.Identifier.
func (s *Store) StoreID(ctx context.Context) (string, error) {
	id, err := s.identity(ctx)
	if err == nil && id == "" && !s.options.ReadOnly {
		if err = s.write(ctx, identifying(rand.Text()), true); err == nil {
			id, err = s.identity(ctx)
		}
	}
	return id, wrap("read the id of the store", err)
}

// identity is the stored id, empty if there is none.
func (s *Store) identity(ctx context.Context) (id string, err error) {
	err = s.read(ctx, func(c *conn) error {
		row := make([]driver.Value, 1)
		found, err := c.first(row, hasIdentity)
		if found && err == nil {
			found, err = c.first(row, findIdentity)
		}
		if found && err == nil {
			id, _ = row[0].(string)
		}
		return err
	})
	return id, err
}

// identifying gives the store an id, unless it has one.
type identifying string

func (id identifying) apply(w *writer) error {
	if err := w.conn.run(makeIdentity); err != nil {
		return err
	}
	_, err := w.conn.exec(storeIdentity, string(id))
	return err
}

func (identifying) unknown(cause error) error { return cause }

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/eventlog"
)

const (
	readCatalog = `SELECT s.id, c.row FROM sessions s JOIN catalog c ON c.session = s.key WHERE s.id = ANY ($1)`
	putRows     = `INSERT INTO catalog (session, row) SELECT s.key, r.row FROM unnest($1::bytea[], $2::bytea[]) r (id, row)
		JOIN sessions s ON s.id = r.id ON CONFLICT (session) DO UPDATE SET row = excluded.row`
	deleteRow = `DELETE FROM catalog WHERE session = $1`
)

// CatalogRows implements eventlog.Cataloger.
func (s *Store) CatalogRows(ctx context.Context, sessions []string) (map[string][]byte, error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, err
	}
	found, err := pool.Query(ctx, readCatalog, idBytes(sessions))
	if err != nil {
		return nil, s.failure(err)
	}
	rows := make(map[string][]byte, len(sessions))
	var id, row []byte
	_, err = pgx.ForEachRow(found, []any{&id, &row}, func() error {
		rows[string(id)] = append([]byte(nil), row...)
		return nil
	})
	return rows, wrap("read the catalog", s.failure(err))
}

// PutCatalogRows implements eventlog.Cataloger. The store lock keeps erasures away from
// the versions until the rows are written.
func (s *Store) PutCatalogRows(ctx context.Context, rows []eventlog.CatalogRow) error {
	if _, err := s.writable(ctx); err != nil {
		return err
	}
	sessions := make([]string, len(rows))
	for i := range rows {
		sessions[i] = rows[i].Session
	}
	versions, err := s.Versions(ctx, sessions)
	if err != nil {
		return err
	}
	var ids, data [][]byte
	for _, row := range rows {
		if now, ok := versions[row.Session]; ok && now == row.At {
			ids, data = append(ids, []byte(row.Session)), append(data, row.Data)
		}
	}
	err = s.transact(ctx, itself, func(t transaction) error {
		_, err := t.exec(putRows, ids, data)
		return err
	})
	return wrap("write the catalog", err)
}

// idBytes are session ids as the tables have them.
func idBytes(sessions []string) [][]byte {
	ids := make([][]byte, len(sessions))
	for i, session := range sessions {
		ids[i] = []byte(session)
	}
	return ids
}

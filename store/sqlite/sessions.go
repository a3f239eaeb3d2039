package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"iter"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const (
	listEnds = `SELECT s.id, s.bytes, s.key, s.first, s.head, s.hash,
		iif(length(a.line) <= 8519680, a.line, NULL), iif(length(b.line) <= 8519680, b.line, NULL) FROM sessions s
		LEFT JOIN events a ON a.session = s.key AND a.seq = s.first
		LEFT JOIN events b ON b.session = s.key AND b.seq = s.head `
	listSessions  = listEnds + `WHERE s.id >= ? AND s.id <> ? ORDER BY s.id` + limitRows
	listIDs       = `SELECT id FROM sessions WHERE id >= ? AND id <> ? ORDER BY id` + limitRows
	listSession   = listEnds + `WHERE s.id = ?`
	listKeyEnds   = listEnds + `WHERE s.key > ? AND s.key <= ? ORDER BY s.key`
	listKeys      = `SELECT id FROM sessions WHERE key > ? AND key <= ?`
	newestSession = `SELECT max(key) FROM sessions`
)

// Sessions implements eventlog.Store.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return s.List(ctx, eventlog.Part{})
}

// listFrom is the place of a page of the listing: at most rows rows, from id on, without
// the id not.
type listFrom struct {
	id, not string
	rows    int64
}

// listPage lists sessions. Where a table is damaged, it lists each session separately.
func (s *Store) listPage(ctx context.Context, from listFrom) (page []eventlog.SessionInfo, more bool, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		page, more, err = s.list(c, page[:0], listSessions, from.rows, from.id, from.not, from.rows)
		return err
	})
	if !isDamage(err) {
		return page, more, err
	}
	return s.listSingly(ctx, from)
}

// list reads rows of the listing. more is false after the last session.
func (s *Store) list(c *conn, page []eventlog.SessionInfo, query string, limit int64, args ...driver.Value) (_ []eventlog.SessionInfo, more bool, err error) {
	rows, err := c.query(query, args...)
	if err != nil {
		return page, false, err
	}
	size := 0
	row := make([]driver.Value, 8)
	for size < pages.MaxBytes {
		if err = rows.Next(row); err != nil {
			break
		}
		first, _ := row[6].([]byte)
		last, _ := row[7].([]byte)
		size += len(first) + len(last)
		page = append(page, s.info(row, first, last))
	}
	more = err == nil || int64(len(page)) == limit
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return page, more, finish(rows, err)
}

// info parses a row of the listing.
func (s *Store) info(row []driver.Value, first, last []byte) (i eventlog.SessionInfo) {
	i.ID, _ = row[0].(string)
	i.Bytes, _ = row[1].(int64)
	x, ok := sessionRowOf(row[2:6])
	if !ok {
		i.Err = s.corrupt(i.ID, "sessions", 0, errRow)
		return i
	}
	i.First, i.Last, i.Err = x.Ends(i.ID, first, last, s.corrupt)
	return i
}

// listSingly is listPage with one query per session.
func (s *Store) listSingly(ctx context.Context, from listFrom) (page []eventlog.SessionInfo, more bool, err error) {
	ids, err := s.ids(ctx, from)
	if err != nil {
		return nil, false, s.locate("", "sessions", 0, err)
	}
	for _, id := range ids {
		found, err := s.listOne(ctx, id)
		if err != nil {
			return page, false, err
		}
		page = append(page, found...)
	}
	return page, int64(len(ids)) == from.rows, nil
}

// listOne lists a session; nothing if it is missing. Damage is the error of its row.
func (s *Store) listOne(ctx context.Context, id string) (found []eventlog.SessionInfo, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		found, _, err = s.list(c, found[:0], listSession, 1, id)
		return err
	})
	if isDamage(err) {
		return []eventlog.SessionInfo{{ID: id, Err: s.locate(id, "events", 0, err)}}, nil
	}
	return found, err
}

func (s *Store) ids(ctx context.Context, from listFrom) (ids []string, err error) {
	err = s.read(ctx, func(c *conn) error {
		ids = ids[:0]
		return c.each(func(row []driver.Value) {
			id, _ := row[0].(string)
			ids = append(ids, id)
		}, 1, listIDs, from.id, from.not, from.rows)
	})
	return ids, err
}

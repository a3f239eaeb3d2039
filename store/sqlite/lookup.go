package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
	"github.com/convlog/convlog/internal/relation"
)

// Tables related and blob_users are derived from the lines. The transactions that write the
// lines write them.
const (
	insertRelation  = `INSERT INTO related (name, session) VALUES (?, ?)`
	deleteRelations = `DELETE FROM related WHERE session = ?`
	listRelated     = `SELECT DISTINCT s.id FROM related r JOIN sessions s ON s.key = r.session WHERE r.name IN (?, '',
		(SELECT char(1) || e.id FROM sessions t JOIN events e ON e.session = t.key AND e.seq = t.first WHERE t.id = ?)) ORDER BY s.id`

	newestSessions = `SELECT id, active FROM sessions INDEXED BY sessions_active ORDER BY active DESC, id` + limitRows
	olderSessions  = `SELECT id, active FROM sessions INDEXED BY sessions_active
		WHERE active <= ? AND (active < ? OR id > ?) ORDER BY active DESC, id` + limitRows

	insertUser  = `INSERT OR IGNORE INTO blob_users (digest, session, seq) VALUES (?, ?, ?)`
	deleteUser  = `DELETE FROM blob_users WHERE session = ? AND seq = ?`
	deleteUsers = `DELETE FROM blob_users WHERE session = ?`
	listUsers   = `SELECT s.id, u.session, u.seq FROM blob_users u JOIN sessions s ON s.key = u.session
		WHERE u.digest = ? AND (u.session, u.seq) > (?, ?) ORDER BY u.session, u.seq` + limitRows
)

// List implements eventlog.Lister.
func (s *Store) List(ctx context.Context, part eventlog.Part) iter.Seq2[eventlog.SessionInfo, error] {
	return listPages(ctx, part, s.listPage)
}

// listPages lists the sessions of a part. list lists a page; more is false for the last one.
func listPages(ctx context.Context, part eventlog.Part, list func(context.Context, listFrom) (page []eventlog.SessionInfo, more bool, err error)) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		from := listFrom{id: max(part.Prefix, part.After), not: part.After, rows: pages.FirstRows}
		for {
			page, more, err := list(ctx, from)
			for _, info := range page {
				if ctx.Err() != nil {
					yield(eventlog.SessionInfo{}, ctx.Err())
					return
				}
				if !part.Has(info.ID) || !yield(info, nil) {
					return
				}
				from.id, from.not = info.ID, info.ID
			}
			if err != nil {
				yield(eventlog.SessionInfo{}, err)
				return
			}
			if !more {
				return
			}
			from.rows = min(4*from.rows, pages.MaxRows)
		}
	}
}

// Recent yields the ids of the sessions, the newest activity first, equal times by id. The time of a
// session is the timestamp of its newest event.
func (s *Store) Recent(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		query, args := newestSessions, []driver.Value{int64(pages.FirstRows)}
		for {
			var ids []string
			var last int64
			err := s.read(ctx, func(c *conn) error {
				ids = ids[:0]
				return c.each(func(row []driver.Value) {
					id, _ := row[0].(string)
					ids = append(ids, id)
					last, _ = row[1].(int64)
				}, 2, query, args...)
			})
			if err != nil {
				yield("", s.locate("", "sessions", 0, err))
				return
			}
			for _, id := range ids {
				if !yield(id, nil) {
					return
				}
			}
			if len(ids) < pages.FirstRows {
				return
			}
			query, args = olderSessions, []driver.Value{last, last, ids[len(ids)-1], int64(pages.FirstRows)}
		}
	}
}

// Related implements eventlog.Relater.
func (s *Store) Related(ctx context.Context, session string) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		var ids []string
		err := s.read(ctx, func(c *conn) error {
			ids = ids[:0]
			return c.each(func(row []driver.Value) {
				id, _ := row[0].(string)
				ids = append(ids, id)
			}, 1, listRelated, session, session)
		})
		if err != nil {
			yield(eventlog.SessionInfo{}, s.locate(session, "related", 0, err))
			return
		}
		for _, id := range ids {
			found, err := s.listOne(ctx, id)
			if err != nil {
				yield(eventlog.SessionInfo{}, err)
				return
			}
			for _, info := range found {
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// BlobUsers implements eventlog.BlobIndex.
func (s *Store) BlobUsers(ctx context.Context, digests []event.Digest) iter.Seq2[eventlog.BlobUser, error] {
	return func(yield func(eventlog.BlobUser, error) bool) {
		for _, d := range digests {
			var last userRow
			for more := true; more; {
				page, err := s.users(ctx, d, last)
				if err != nil {
					yield(eventlog.BlobUser{}, err)
					return
				}
				for _, last = range page {
					if !yield(last.BlobUser, nil) {
						return
					}
				}
				more = len(page) == pages.MaxRows
			}
		}
	}
}

// userRow is a row of table blob_users with the key of its session.
type userRow struct {
	eventlog.BlobUser
	key int64
}

// users reads rows of a blob after the row last.
func (s *Store) users(ctx context.Context, d event.Digest, last userRow) (page []userRow, err error) {
	err = s.read(ctx, func(c *conn) error {
		page = page[:0]
		return c.each(func(row []driver.Value) {
			u := userRow{BlobUser: eventlog.BlobUser{Digest: d}}
			u.Session, _ = row[0].(string)
			u.key, _ = row[1].(int64)
			u.Seq, _ = row[2].(int64)
			page = append(page, u)
		}, 3, listUsers, string(d), last.key, last.Seq, int64(pages.MaxRows))
	})
	return page, s.locate("", "blob_users", 0, err)
}

// relate inserts the relations of a session.
func (w *writer) relate(key int64, first *event.Event) error {
	for _, name := range relation.Of(first) {
		if _, err := w.conn.exec(insertRelation, name, key); err != nil {
			return fmt.Errorf("insert the relations of the session: %w", err)
		}
	}
	return nil
}

// use inserts the blobs of an event.
func (w *writer) use(key int64, e *event.Event) error {
	for _, d := range e.Blobs() {
		if _, err := w.conn.exec(insertUser, string(d), key, e.Seq); err != nil {
			return fmt.Errorf("insert the blobs of event %d: %w", e.Seq, err)
		}
	}
	return nil
}

// reuse replaces the blobs of an event.
func (w *writer) reuse(key int64, e *event.Event) error {
	if _, err := w.conn.exec(deleteUser, key, e.Seq); err != nil {
		return fmt.Errorf("delete the blobs of event %d: %w", e.Seq, err)
	}
	return w.use(key, e)
}

// forgetLookup deletes the relations of a session, and the blobs of its events.
func (w *writer) forgetLookup(key int64) error {
	for _, query := range []string{deleteRelations, deleteUsers} {
		if _, err := w.conn.exec(query, key); err != nil {
			return fmt.Errorf("delete the relations and blobs of the session: %w", err)
		}
	}
	return nil
}

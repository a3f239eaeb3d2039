package postgres

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

// listSessions looks up the two lines of each session by their keys. A join could read all
// events of the store: a new table has no statistics.
const (
	listColumns = `s.id, s.bytes, ` + sessionColumns + `,
	(SELECT CASE WHEN octet_length(a.line) <= 8519680 THEN a.line END FROM events a WHERE a.session = s.key AND a.seq = s.first),
	(SELECT CASE WHEN octet_length(b.line) <= 8519680 THEN b.line END FROM events b WHERE b.session = s.key AND b.seq = s.head)`
	listSessions = `SELECT ` + listColumns + ` FROM (SELECT * FROM sessions WHERE id >= $1 AND id <> $3 ORDER BY id LIMIT $2) s ORDER BY s.id`
)

// Sessions implements eventlog.Store. Ids are compared byte by byte.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return s.List(ctx, eventlog.Part{})
}

// list yields the rows of a listing from the id from on, without the id after. query returns
// the statement for a page, and its arguments.
func (s *Store) list(ctx context.Context, after, from string, query func(from []byte, rows int64, after []byte) (string, []any),
	yield func(eventlog.SessionInfo, error) bool) {
	for rows := int64(pages.FirstRows); ; {
		text, args := query([]byte(from), rows, []byte(after))
		listed, size, err := s.listPage(ctx, text, args)
		for _, info := range listed {
			if err := s.usable(ctx); err != nil {
				yield(eventlog.SessionInfo{}, err)
				return
			}
			if !yield(info, nil) {
				return
			}
			from, after = info.ID, info.ID
		}
		if err != nil {
			yield(eventlog.SessionInfo{}, err)
			return
		}
		if int64(len(listed)) < rows {
			return
		}
		rows = min(4*rows, pages.MaxRows, max(1, pages.MaxBytes/max(int64(size)/rows, 1)))
	}
}

// listPage reads a page of a listing. size is the number of bytes of their lines.
func (s *Store) listPage(ctx context.Context, query string, args []any) (listed []eventlog.SessionInfo, size int, err error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, 0, err
	}
	rows, err := pool.Query(ctx, query, args...)
	if err != nil {
		return nil, 0, s.failure(err)
	}
	defer rows.Close()
	for rows.Next() {
		info, n, err := infoOf(rows)
		if err != nil {
			return nil, 0, s.failure(err)
		}
		listed, size = append(listed, info), size+n
	}
	return listed, size, s.failure(rows.Err())
}

// infoOf scans a row of the listing.
func infoOf(rows pgx.Rows) (i eventlog.SessionInfo, size int, err error) {
	var r sessionRow
	var id, first, last []byte
	to := append([]any{&id, &i.Bytes}, r.columns()...)
	if err := rows.Scan(append(to, &first, &last)...); err != nil {
		return i, 0, err
	}
	i.ID = string(id)
	i.First, i.Last, i.Err = r.ends(i.ID, first, last)
	return i, len(first) + len(last), nil
}

// ends parses the first and the last line of a session.
func (r *sessionRow) ends(session string, first, last []byte) (a, b event.Event, err error) {
	if err := r.check(session); err != nil {
		return a, b, err
	}
	return r.Ends(session, first, last, corrupt)
}

package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"iter"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

// ListKnown is Sessions for a caller that derives the description of a session from its row of the
// catalog: known gets the row and the session's version. If it returns false, the first and the
// last event are read.
func (s *Store) ListKnown(ctx context.Context, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		from := listFrom{rows: pages.FirstRows}
		for {
			page, last, err := s.knownPage(ctx, from, known)
			if err != nil {
				yield(eventlog.SessionInfo{}, err)
				return
			}
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
			}
			if last == "" {
				return
			}
			from = listFrom{id: last, not: last, rows: min(4*from.rows, pages.MaxRows)}
		}
	}
}

// knownPage lists a page of sessions. last is its last id; empty for the last page.
func (s *Store) knownPage(ctx context.Context, from listFrom, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) (page []eventlog.SessionInfo, last string, err error) {
	var rows []eventlog.CatalogRow
	var sizes []int64
	err = s.read(ctx, func(c *conn) error {
		rows, sizes = rows[:0], sizes[:0]
		return c.each(func(row []driver.Value) {
			id, _ := row[0].(string)
			at, _ := versionOf(row[1:])
			data, _ := row[3].([]byte)
			size, _ := row[4].(int64)
			sizes = append(sizes, size)
			rows = append(rows, eventlog.CatalogRow{Session: id, At: at, Data: data})
		}, 5, listCatalog, from.id, from.not, from.rows)
	})
	if err != nil && !isDamage(err) {
		return nil, "", err
	}
	var unknown []string
	for i, row := range rows {
		info, ok := eventlog.SessionInfo{}, false
		if len(row.Data) > 0 {
			info, ok = known(row)
		}
		if ok && info.Bytes == sizes[i] {
			page = append(page, info)
		} else {
			unknown = append(unknown, row.Session)
		}
	}
	if len(page) == 0 { // in a new store, or in a damaged one
		page, more, err := s.listPage(ctx, from)
		if more && len(page) > 0 {
			last = page[len(page)-1].ID
		}
		return page, last, err
	}
	for _, id := range unknown {
		found, err := s.listOne(ctx, id)
		if err != nil {
			return nil, "", err
		}
		page = append(page, found...)
	}
	if int64(len(rows)) == from.rows {
		last = rows[len(rows)-1].Session
	}
	slices.SortFunc(page, func(a, b eventlog.SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
	return page, last, nil
}

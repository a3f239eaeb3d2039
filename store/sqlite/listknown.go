package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

// ListKnown is Sessions for a caller that derives the description of a session from its row of the
// catalog: known gets the row and the session's version. If it returns false, the first and the
// last event are read.
func (s *Store) ListKnown(ctx context.Context, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) iter.Seq2[eventlog.SessionInfo, error] {
	return listPages(ctx, eventlog.Part{}, func(ctx context.Context, from listFrom) ([]eventlog.SessionInfo, bool, error) {
		return s.knownPage(ctx, from, known)
	})
}

// knownPage is listPage, and reads only the events of sessions that are not known.
func (s *Store) knownPage(ctx context.Context, from listFrom, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) (page []eventlog.SessionInfo, more bool, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		page, more, err = listRows(c, page[:0], from, known)
		return err
	})
	if err != nil && !isDamage(err) {
		return nil, false, err
	}
	isKnown := func(info eventlog.SessionInfo) bool { return !info.Known.IsZero() }
	if err != nil || !slices.ContainsFunc(page, isKnown) { // a damaged store, or one without rows
		return s.listPage(ctx, from)
	}
	whole := make([]eventlog.SessionInfo, 0, len(page))
	for _, info := range page {
		if isKnown(info) {
			whole = append(whole, info)
			continue
		}
		found, err := s.listOne(ctx, info.ID)
		if err != nil {
			return nil, false, err
		}
		whole = append(whole, found...)
	}
	return whole, more, nil
}

// listRows reads rows of the catalog. A session that is not known has an id only. more is false
// after the last session.
func listRows(c *conn, page []eventlog.SessionInfo, from listFrom, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) (_ []eventlog.SessionInfo, more bool, err error) {
	rows, err := c.query(listCatalog, from.id, from.not, from.rows)
	if err != nil {
		return page, false, err
	}
	size := 0
	row := make([]driver.Value, 5)
	for size < pages.MaxBytes {
		if err = rows.Next(row); err != nil {
			break
		}
		id, _ := row[0].(string)
		at, _ := versionOf(row[1:])
		data, _ := row[3].([]byte)
		bytes, _ := row[4].(int64)
		info, ok := known(eventlog.CatalogRow{Session: id, At: at, Data: data})
		if !ok || info.Bytes != bytes {
			info = eventlog.SessionInfo{ID: id}
		}
		size += len(data)
		page = append(page, info)
	}
	more = err == nil || int64(len(page)) == from.rows
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return page, more, finish(rows, err)
}

package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"iter"

	"github.com/convlog/convlog/eventlog"
)

// knownKeys is the number of keys of sessions that a page of ListKnown has.
const knownKeys = 256

// ListKnown is Sessions for a caller that derives the description of a session from its row of the
// catalog: known gets the row and the session's version. If it returns false, the first and the
// last event are read. The sessions are in the order of their keys: so are the tables, and each page
// of the file is read once.
func (s *Store) ListKnown(ctx context.Context, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		end, err := s.newestSession(ctx)
		if err != nil && !isDamage(err) {
			yield(eventlog.SessionInfo{}, err)
			return
		}
		if err != nil {
			s.Sessions(ctx)(yield)
			return
		}
		for after := int64(0); after < end; after += knownKeys {
			page, err := s.knownPage(ctx, after, known)
			if isDamage(err) {
				s.listOthers(ctx, after, yield)
				return
			}
			if err = cmp.Or(err, ctx.Err()); err != nil {
				yield(eventlog.SessionInfo{}, err)
				return
			}
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// newestSession is the largest key of a session; 0 without a session.
func (s *Store) newestSession(ctx context.Context) (key int64, err error) {
	err = s.read(ctx, func(c *conn) error {
		row := make([]driver.Value, 1)
		_, err := c.first(row, newestSession)
		key, _ = row[0].(int64)
		return err
	})
	return key, err
}

// listOthers lists the sessions with keys above after, in a store with a damaged page.
func (s *Store) listOthers(ctx context.Context, after int64, yield func(eventlog.SessionInfo, error) bool) {
	listed := map[string]bool{}
	err := s.read(ctx, func(c *conn) error {
		return c.each(func(row []driver.Value) {
			id, _ := row[0].(string)
			listed[id] = true
		}, 1, listKeys, int64(0), after)
	})
	if err != nil {
		yield(eventlog.SessionInfo{}, s.locate("", "sessions", 0, err))
		return
	}
	for info, err := range s.Sessions(ctx) {
		if (err != nil || !listed[info.ID]) && !yield(info, err) {
			return
		}
	}
}

// knownPage lists the sessions of a page. It reads only the events of sessions that are not known.
func (s *Store) knownPage(ctx context.Context, after int64, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) (page []eventlog.SessionInfo, err error) {
	var ids []eventlog.SessionInfo // of sessions that are not known, an id only
	read := map[string]eventlog.SessionInfo{}
	err = s.read(ctx, func(c *conn) (err error) {
		clear(read)
		some := false
		ids, some, err = knownRows(c, ids[:0], after, known)
		if err != nil || some {
			return err
		}
		// A page without rows is read at once, as far as pages.MaxBytes go.
		others, _, err := s.list(c, nil, listKeyEnds, knownKeys, after, after+knownKeys)
		for _, info := range others {
			read[info.ID] = info
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, info := range ids {
		found := []eventlog.SessionInfo{info}
		if x, ok := read[info.ID]; ok {
			found[0] = x
		} else if info.Known.IsZero() {
			if found, err = s.listOne(ctx, info.ID); err != nil {
				return nil, err
			}
		}
		page = append(page, found...)
	}
	return page, nil
}

// knownRows reads rows of the catalog. A session that is not known has an id only; some is true if
// a session is known.
func knownRows(c *conn, page []eventlog.SessionInfo, after int64, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) (_ []eventlog.SessionInfo, some bool, err error) {
	err = c.each(func(row []driver.Value) {
		id, _ := row[0].(string)
		at, _ := versionOf(row[1:])
		data, _ := row[3].([]byte)
		bytes, _ := row[4].(int64)
		info, ok := known(eventlog.CatalogRow{Session: id, At: at, Data: data})
		if !ok || info.Bytes != bytes {
			info = eventlog.SessionInfo{ID: id}
		} else {
			some = true
		}
		page = append(page, info)
	}, 5, listCatalog, after, after+knownKeys)
	return page, some, err
}

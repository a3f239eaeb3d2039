package sqlite

import (
	"context"
	"database/sql/driver"
)

const (
	mergeParts   = `INSERT INTO search (search, rank) VALUES ('merge', ?)`
	countChanges = `SELECT total_changes()`
	// mergePages is how much of the index is merged in one transaction.
	mergePages = 250
)

// merge makes fewer parts of those that the index consists of, which every search
// looks through; one of all if pages is negative. It lets others write meanwhile.
func (x *indexer) merge(ctx context.Context, pages int64) error {
	for more := true; more; {
		m := &merging{pages: pages}
		err := x.patiently(ctx, func(ctx context.Context) error { return x.store.writer.do(ctx, &job{op: m, alone: true}) })
		if err != nil {
			return err
		}
		more, pages = m.more, max(pages, -pages)
	}
	return nil
}

// merging merges some pages.
type merging struct {
	pages int64
	more  bool // there are more to merge
}

func (m *merging) unknown(cause error) error { return cause }

func (m *merging) apply(w *writer) error { return w.unsynced(func() error { return m.merge(w.conn) }) }

// merge goes on merging. SQLite says by the changes whether it has done anything.
func (m *merging) merge(c *conn) error {
	before, after := make([]driver.Value, 1), make([]driver.Value, 1)
	if _, err := c.first(before, countChanges); err != nil {
		return err
	}
	if _, err := c.exec(mergeParts, m.pages); err != nil {
		return err
	}
	_, err := c.first(after, countChanges)
	was, _ := before[0].(int64)
	is, _ := after[0].(int64)
	m.more = is-was >= 2
	return err
}

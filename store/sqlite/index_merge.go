package sqlite

import (
	"context"
	"database/sql/driver"
)

const (
	mergeParts   = `INSERT INTO search (search, rank) VALUES ('merge', ?)`
	countChanges = `SELECT total_changes()`
	// mergePages is the number of index pages that one transaction merges.
	mergePages = 250
)

// merge merges segments of the index, because every search reads all segments. A
// negative pages merges all segments into one. Other writes run between the
// transactions.
func (x *indexer) merge(ctx context.Context, pages int64) error {
	for more := true; more; {
		m := &mergeOp{pages: pages}
		err := x.retryBusy(ctx, func(ctx context.Context) error { return x.store.writer.do(ctx, &job{op: m, standalone: true}) })
		if err != nil {
			return err
		}
		more, pages = m.more, max(pages, -pages)
	}
	return nil
}

// mergeOp merges some pages in one transaction.
type mergeOp struct {
	pages int64
	more  bool // there are pages left to merge
}

func (m *mergeOp) unknown(cause error) error { return cause }

func (m *mergeOp) apply(w *writer) error {
	return w.runUnsynced(func() error { return m.merge(w.conn) })
}

// merge merges some pages. SQLite's count of changes shows whether any were merged.
func (m *mergeOp) merge(c *conn) error {
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

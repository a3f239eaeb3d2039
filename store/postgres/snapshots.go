package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const readSnapshots = `SELECT seq, type, ` + shortLine + ` FROM events
	WHERE session = $1 AND seq BETWEEN $2 AND $3 AND ` + snapshotRows + ` ORDER BY seq DESC LIMIT $4`

var errType = errors.New("the column type is not the type of the line")

// snapshotRow is a row of a snapshot or of a head_moved event.
type snapshotRow struct {
	seq  int64
	kind []byte // the column type
	line []byte
}

// readSnapshots yields the snapshots and the head_moved events of a span, newest first.
func (c *cursor) readSnapshots(ctx context.Context, r eventlog.Span, yield func(event.Event, error) bool) {
	found, err := c.store.one(ctx, c.row.columns(), readSession, []byte(c.session))
	if err == nil && !found {
		err = fmt.Errorf("read session %q: %w", c.session, eventlog.ErrNotFound)
	}
	if err == nil {
		err = c.row.check(c.session)
	}
	if err != nil {
		yield(event.Event{}, err)
		return
	}
	c.store.history.noteRead(c.session, c.row.Head)
	c.From, c.To = max(c.row.First, r.From), c.row.Head.Seq
	if r.To > 0 {
		c.To = min(c.To, r.To)
	}
	for c.Left() > 0 {
		page, err := c.snapshotPage(ctx)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for _, row := range page {
			e, err := c.event(ctx, row.seq, row.line)
			if err == nil && string(row.kind) != string(e.Type) {
				err = corrupt(c.session, "events", row.seq, errType)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
	if err := c.remains(ctx); err != nil {
		yield(event.Event{}, err)
	}
}

// snapshotPage reads the next rows, and moves the position to the event before them.
func (c *cursor) snapshotPage(ctx context.Context) (page []snapshotRow, err error) {
	pool, err := c.store.pool(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, readSnapshots, c.row.Key, c.From, c.To, int64(pages.FirstRows))
	if err != nil {
		return nil, c.store.failure(err)
	}
	defer rows.Close()
	c.To = 0
	for rows.Next() {
		var r snapshotRow
		if err := rows.Scan(&r.seq, &r.kind, &r.line); err != nil {
			return nil, c.store.failure(err)
		}
		page = append(page, r)
		c.To = r.seq - 1
	}
	return page, c.store.failure(rows.Err())
}

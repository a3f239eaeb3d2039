package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const readSnapshots = `SELECT seq, type, ` + shortLine + ` FROM events INDEXED BY events_snapshots
	WHERE session = ? AND seq BETWEEN ? AND ? AND ` + snapshotRows + ` ORDER BY seq DESC` + limitRows

var errType = errors.New("the column type is not the type of the line")

// snapshotRow is a row of a snapshot or of a head_moved event.
type snapshotRow struct {
	seq  int64
	kind string // the column type
	line []byte
}

// readSnapshots yields the snapshots and the head_moved events of a span, newest first.
func (s *Store) readSnapshots(ctx context.Context, session string, r eventlog.Span, yield func(event.Event, error) bool) {
	c, err := s.cursor(ctx, session, r)
	for err == nil && c.Left() > 0 {
		var page []snapshotRow
		if page, err = c.snapshotPage(ctx); err != nil {
			break
		}
		for _, row := range page {
			e, err := c.event(ctx, row.seq, row.line)
			if err == nil && row.kind != string(e.Type) {
				err = s.atRow(ctx, c.row.Key, row.seq, s.corrupt(session, "events", row.seq, errType))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
	if err == nil {
		err = c.remains(ctx)
	}
	if err != nil {
		yield(event.Event{}, err)
	}
}

// snapshotPage reads the next rows, and moves the position to the event before them.
func (c *cursor) snapshotPage(ctx context.Context) (page []snapshotRow, err error) {
	err = c.store.read(ctx, func(conn *conn) error {
		page = page[:0]
		rows, err := conn.query(readSnapshots, c.row.Key, c.From, c.To, int64(pages.FirstRows))
		if err != nil {
			return err
		}
		row := make([]driver.Value, 3)
		for size := 0; size < pages.MaxBytes; {
			if err = rows.Next(row); err != nil {
				break
			}
			var r snapshotRow
			r.seq, _ = row[0].(int64)
			r.kind, _ = row[1].(string)
			r.line, _ = row[2].([]byte)
			page = append(page, r)
			size += len(r.line)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return finish(rows, err)
	})
	if c.To = 0; len(page) > 0 {
		c.To = page[len(page)-1].seq - 1
	}
	return page, c.store.locate(c.session, "events", 0, err)
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Table erasing is the list of an erasure's work: a row for each blob to remove, and
// the row erasedBytes as long as the files may have bytes of replaced lines. The
// transaction that replaces lines inserts that row.
const (
	erasedBytes   = ""
	noteErasing   = `INSERT OR IGNORE INTO erasing (digest) VALUES (?)`
	forgetErasing = `DELETE FROM erasing WHERE digest = ?`
	forgetBlobs   = `DELETE FROM erasing WHERE digest <> ''`
	listErasing   = `SELECT digest FROM erasing ORDER BY digest`
)

// Erasing implements eventlog.Eraser.
func (s *Store) Erasing(ctx context.Context) (e eventlog.Erasing, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		e, err = erasingIn(c)
		return err
	})
	return e, wrap("read the running erasure", err)
}

// erasingIn reads the record.
func erasingIn(c *conn) (e eventlog.Erasing, err error) {
	err = c.each(func(row []driver.Value) {
		if digest, _ := row[0].(string); digest != erasedBytes {
			e.Blobs = append(e.Blobs, event.Digest(digest))
		} else {
			e.Bytes = true
		}
	}, 1, listErasing)
	return e, err
}

// SetErasing implements eventlog.Eraser.
func (s *Store) SetErasing(ctx context.Context, digests []event.Digest) error {
	return wrap("record an erasure", s.write(ctx, erasingBlobs(digests), true))
}

// erasingBlobs replaces the digests in the record.
type erasingBlobs []event.Digest

func (b erasingBlobs) apply(w *writer) error {
	forgotten, err := w.conn.exec(forgetBlobs)
	if err != nil {
		return err
	}
	if n, err := forgotten.RowsAffected(); err == nil && n == 0 && len(b) == 0 {
		return nil
	}
	if err := w.noteBytes(); err != nil { // the write-ahead log keeps the digests
		return err
	}
	for _, d := range b {
		if _, err := w.conn.exec(noteErasing, string(d)); err != nil {
			return err
		}
	}
	return nil
}

func (erasingBlobs) unknown(cause error) error { return cause }

// bytesErased ends the record of the files' bytes.
type bytesErased struct{}

func (bytesErased) apply(w *writer) error {
	_, err := w.conn.exec(forgetErasing, erasedBytes)
	return err
}

func (bytesErased) unknown(cause error) error { return cause }

// noteBytes records, in the running transaction, that it replaces bytes. It fails if the
// database has triggers or tables of another program, which may have copies.
func (w *writer) noteBytes() error {
	if err := w.refuseForeign(); err != nil {
		return err
	}
	_, err := w.conn.exec(noteErasing, erasedBytes)
	return wrap("record the erasure", err)
}

// finishScrub tries once to empty the write-ahead log, if an earlier erasure could not.
// A reader may prevent it again; then the record stays.
func (s *Store) finishScrub(ctx context.Context) error {
	unfinished, err := s.Erasing(ctx)
	if err != nil || !unfinished.Bytes {
		return err
	}
	err = s.writer.do(ctx, &job{op: scrub{}, standalone: true})
	if isBusy(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finish an erasure: %w", err)
	}
	return s.write(ctx, bytesErased{}, true)
}

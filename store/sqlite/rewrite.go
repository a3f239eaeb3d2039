package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	replaceLine  = `UPDATE events SET line = ? WHERE session = ? AND seq = ?`
	lineLength   = `SELECT length(line) FROM events WHERE session = ? AND seq = ?`
	revise       = `UPDATE sessions SET bytes = bytes + ?, revision = revision + 1 WHERE key = ?`
	deleteEvents = `DELETE FROM events WHERE session = ?`
	deleteHead   = `DELETE FROM sessions WHERE key = ?`
)

// Rewrite implements eventlog.Eraser. SQLite overwrites the replaced bytes in the
// database file (secure_delete), and Rewrite empties the write-ahead log before it
// returns. If ctx ends while another process is still reading the log, the error is an
// UnknownOutcomeError: the new lines are committed, but the log may still have the old
// bytes.
func (s *Store) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	op := &rewriteOp{appendOp: appendOp{session: session, expect: expect, events: add}, replace: replace}
	return s.eraseLines(ctx, session, op)
}

// RemoveSession implements eventlog.Eraser. It erases the bytes in the same way as
// Rewrite, with the same error if ctx ends early.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	return s.eraseLines(ctx, session, &removeOp{appendOp{session: session, expect: expect}})
}

// eraseLines writes op, empties the write-ahead log and removes the session's backup
// copies, which may have the erased lines.
func (s *Store) eraseLines(ctx context.Context, session string, op operation) error {
	defer s.changes.Publish(session) // it may have changed even after an error
	if err := s.erase(ctx, op); err != nil {
		return err
	}
	if err := s.removeCopies(session); err != nil {
		return op.unknown(err)
	}
	return nil
}

// erase writes op and empties the write-ahead log.
func (s *Store) erase(ctx context.Context, op operation) error {
	if err := s.write(ctx, op, true); err != nil {
		return err
	}
	if err := s.scrub(ctx); err != nil {
		return op.unknown(err)
	}
	return nil
}

// scrub empties the write-ahead log, and ends the record of erased bytes. It waits for
// readers of the log.
func (s *Store) scrub(ctx context.Context) error {
	err := withTimeout(ctx, s.options.LockTimeout, func(ctx context.Context) error {
		return retryBusy(ctx, func() error { return s.writer.do(ctx, &job{op: scrub{}, standalone: true}) })
	})
	if err != nil {
		return err
	}
	return s.write(ctx, bytesErased{}, true)
}

// rewriteOp replaces lines and appends events.
type rewriteOp struct {
	appendOp
	replace []event.Event
}

func (r *rewriteOp) apply(w *writer) error {
	key, err := w.compare(r.session, r.expect)
	if err != nil {
		return err
	}
	if key == 0 {
		return rejection{fmt.Errorf("rewrite %q: %w", r.session, eventlog.ErrNotFound)}
	}
	grown, err := r.growth(w, key)
	if err != nil {
		return err
	}
	if err := w.noteBytes(); err != nil {
		return err
	}
	if err := w.unindex(key, seqsOf(r.replace)); err != nil {
		return err
	}
	for i := range r.replace {
		e := &r.replace[i]
		if _, err := w.conn.exec(replaceLine, e.Line(), key, e.Seq); err != nil {
			return fmt.Errorf("replace event %d: %w", e.Seq, err)
		}
		if err := w.reuse(key, e); err != nil {
			return err
		}
	}
	if err := w.reindex(key, seqsOf(r.replace)); err != nil {
		return fmt.Errorf("index the replaced events: %w", err)
	}
	if _, err := w.conn.exec(revise, grown, key); err != nil {
		return fmt.Errorf("revise session: %w", err)
	}
	if len(r.events) == 0 {
		return nil
	}
	return r.appendOp.apply(w)
}

// growth returns the change of the session's size in bytes. The error is
// ErrEventNotFound if one of the events is missing.
func (r *rewriteOp) growth(w *writer, key int64) (n int64, err error) {
	row := make([]driver.Value, 1)
	for i := range r.replace {
		e := &r.replace[i]
		found, err := w.conn.first(row, lineLength, key, e.Seq)
		if err != nil {
			return 0, fmt.Errorf("find event %d: %w", e.Seq, err)
		}
		old, ok := row[0].(int64)
		if !found || !ok {
			return 0, rejection{fmt.Errorf("rewrite %q: seq %d: %w", r.session, e.Seq, eventlog.ErrEventNotFound)}
		}
		n += int64(len(e.Line())) - old
	}
	return n, nil
}

// removeOp deletes a session.
type removeOp struct{ appendOp }

func (r *removeOp) apply(w *writer) error {
	key, err := w.compare(r.session, r.expect)
	var rejected rejection
	if r.expect.IsZero() && errors.As(err, &rejected) {
		key, err = w.keyWithoutHead(r.session, err)
	}
	if err != nil {
		return err
	}
	if key == 0 {
		return rejection{fmt.Errorf("remove %q: %w", r.session, eventlog.ErrNotFound)}
	}
	delete(w.keys, r.session)
	if err := w.noteBytes(); err != nil {
		return err
	}
	if err := w.unindexSession(key); err != nil {
		return err
	}
	if err := w.forgetLookup(key); err != nil {
		return err
	}
	if _, err := w.conn.exec(deleteEvents, key); err != nil {
		return fmt.Errorf("delete events: %w", err)
	}
	_, err = w.conn.exec(deleteHead, key)
	return wrap("delete session", err)
}

// keyWithoutHead returns the key of a session whose newest event is unreadable, so
// that no caller can know the head. It returns conflict if the newest event is
// readable.
func (w *writer) keyWithoutHead(session string, conflict error) (key int64, err error) {
	key, head, err := w.head(session)
	if err != nil {
		return 0, err
	}
	row := make([]driver.Value, 1)
	found, err := w.conn.first(row, readBackward, key, int64(0), head.Seq, int64(1))
	if err != nil {
		return 0, fmt.Errorf("read newest event: %w", err)
	}
	line, _ := row[0].([]byte)
	e, err := event.Parse(line, session)
	if found && (err == nil && e.Seq == head.Seq || errors.Is(err, event.ErrVersion)) {
		return 0, conflict
	}
	return key, nil
}

// scrub checkpoints the write-ahead log and truncates it to zero bytes. The error is
// busy while a reader needs the log.
type scrub struct{}

// apply blocks writers for up to 100 ms while the current readers of the log finish
// their pages. Readers that start in the meantime read the database file only, so
// constant reading cannot delay the scrub for ever.
func (scrub) apply(w *writer) error {
	if err := w.conn.run("PRAGMA busy_timeout = 100"); err != nil {
		return err
	}
	row, err := w.conn.values("PRAGMA wal_checkpoint(TRUNCATE)", 3)
	if again := w.conn.run("PRAGMA busy_timeout = 0"); err == nil {
		err = again
	}
	if err == nil && row[0] != driver.Value(int64(0)) {
		err = errInUse
	}
	return err
}

func (scrub) unknown(cause error) error { return cause }

// errInUse is the error of a busy checkpoint. SQLite reports a busy checkpoint in a
// row, not as an error.
var errInUse = errors.New("write-ahead log is in use by a reader")

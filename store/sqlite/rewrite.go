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

// Rewrite implements eventlog.Eraser. The replaced bytes are overwritten in
// the database file (secure_delete) and go with the write-ahead log, which is
// emptied before Rewrite returns. When only that last step could not be done,
// because ctx ended while another process was reading, the answer is an
// UnknownOutcomeError although the new lines stand.
func (s *Store) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	op := &rewriting{appending: appending{session: session, expect: expect, events: add}, replace: replace}
	return s.eraseLines(ctx, session, op)
}

// RemoveSession implements eventlog.Eraser. What Rewrite says of erased bytes
// holds here too.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	return s.eraseLines(ctx, session, &removal{appending{session: session, expect: expect}})
}

// eraseLines is erase for lines of a session: its kept copies, which may hold
// them, go as well.
func (s *Store) eraseLines(ctx context.Context, session string, op operation) error {
	if err := s.erase(ctx, op); err != nil {
		return err
	}
	if err := s.removeKept(session); err != nil {
		return op.unknown(err)
	}
	return nil
}

// erase writes op and then empties the write-ahead log.
func (s *Store) erase(ctx context.Context, op operation) error {
	if err := s.write(ctx, op, true); err != nil {
		return err
	}
	if err := s.scrub(ctx); err != nil {
		return op.unknown(err)
	}
	return nil
}

// scrub empties the write-ahead log, waiting for readers that need it.
func (s *Store) scrub(ctx context.Context) error {
	return within(ctx, s.options.LockTimeout, func(ctx context.Context) error {
		return patiently(ctx, func() error { return s.writer.do(ctx, &job{op: scrub{}, alone: true}) })
	})
}

// rewriting replaces lines and appends others.
type rewriting struct {
	appending
	replace []event.Event
}

func (r *rewriting) apply(w *writer) error {
	key, err := w.compare(r.session, r.expect)
	if err != nil {
		return err
	}
	if key == 0 {
		return refused{fmt.Errorf("rewrite %q: %w", r.session, eventlog.ErrNotFound)}
	}
	grown, err := r.growth(w, key)
	if err != nil {
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
	}
	if err := w.reindex(key, seqsOf(r.replace)); err != nil {
		return fmt.Errorf("index what was replaced: %w", err)
	}
	if _, err := w.conn.exec(revise, grown, key); err != nil {
		return fmt.Errorf("revise session: %w", err)
	}
	if len(r.events) == 0 {
		return nil
	}
	return r.appending.apply(w)
}

// growth is by how much the replaced lines grow; all of them must exist.
func (r *rewriting) growth(w *writer, key int64) (n int64, err error) {
	row := make([]driver.Value, 1)
	for i := range r.replace {
		e := &r.replace[i]
		found, err := w.conn.first(row, lineLength, key, e.Seq)
		if err != nil {
			return 0, fmt.Errorf("find event %d: %w", e.Seq, err)
		}
		old, ok := row[0].(int64)
		if !found || !ok {
			return 0, refused{fmt.Errorf("rewrite %q: seq %d: %w", r.session, e.Seq, eventlog.ErrEventNotFound)}
		}
		n += int64(len(e.Line())) - old
	}
	return n, nil
}

// removal deletes a session.
type removal struct{ appending }

func (r *removal) apply(w *writer) error {
	key, err := w.compare(r.session, r.expect)
	var no refused
	if r.expect.IsZero() && errors.As(err, &no) {
		key, err = w.headless(r.session, err)
	}
	if err != nil {
		return err
	}
	if key == 0 {
		return refused{fmt.Errorf("remove %q: %w", r.session, eventlog.ErrNotFound)}
	}
	delete(w.keys, r.session)
	if err := w.unindexSession(key); err != nil {
		return err
	}
	if _, err := w.conn.exec(deleteEvents, key); err != nil {
		return fmt.Errorf("delete events: %w", err)
	}
	_, err = w.conn.exec(deleteHead, key)
	return wrap("delete session", err)
}

// headless is the key of a session whose newest event cannot be read, so that it
// has no head for anybody; it answers with sound if it can.
func (w *writer) headless(session string, sound error) (key int64, err error) {
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
		return 0, sound
	}
	return key, nil
}

// scrub folds the write-ahead log into the database and truncates it to
// nothing. It is busy while a reader needs the log.
type scrub struct{}

// apply keeps writers out for a moment, in which the readers of the log finish
// their pages. Who begins to read meanwhile does without the log: so readers
// that never rest cannot keep it from being emptied.
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

// errInUse is a busy checkpoint, which SQLite reports in a row and not as an
// error.
var errInUse = errors.New("write-ahead log is in use by a reader")

package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	lockHead    = readHead + ` FOR UPDATE`
	replaceLine = `UPDATE events e SET type = $3, line = $4 FROM (SELECT octet_length(line) n FROM events WHERE session = $1 AND seq = $2) old
		WHERE e.session = $1 AND e.seq = $2 RETURNING old.n`
	revise        = `UPDATE sessions SET bytes = bytes + $2, revision = revision + 1, changed = pg_current_xact_id() WHERE id = $1`
	deleteEvents  = `DELETE FROM events WHERE session = $1`
	deleteSession = `DELETE FROM sessions WHERE id = $1`
	countRemoval  = `UPDATE fence SET removals = removals + 1`
	readLine      = `SELECT ` + shortLine + ` FROM events WHERE session = $1 AND seq = $2`

	noteErasing   = `INSERT INTO erasing SELECT unnest($1::bytea[]) ON CONFLICT DO NOTHING`
	forgetBlobs   = `DELETE FROM erasing WHERE digest <> ''`
	forgetErasing = `DELETE FROM erasing WHERE digest = ''`
	listErasing   = `SELECT coalesce(array_agg(digest ORDER BY digest), '{}') FROM erasing`

	// vacuumTables removes the bytes of replaced and deleted rows from the tables.
	vacuumTables = `VACUUM events, sessions, blobs, blob_pieces, copies, related, blob_users, erasing, catalog`
)

// Rewrite implements eventlog.Eraser.
func (s *Store) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	a := appending{store: s, session: session, expect: expect, events: add}
	err := s.transact(ctx, a.unknown, func(t transaction) error {
		row, found, err := t.session(session)
		if err != nil {
			return err
		}
		if found && row.Head != expect || !found && !expect.IsZero() {
			return &eventlog.ConflictError{Session: session, Expected: expect, Actual: row.Head}
		}
		if !found {
			return fmt.Errorf("rewrite %q: %w", session, eventlog.ErrNotFound)
		}
		if err := t.replace(row, session, replace); err != nil {
			return err
		}
		if _, err := t.exec(deleteRow, row.Key); err != nil {
			return err
		}
		if len(add) == 0 {
			return nil
		}
		query, args := a.statement()
		if _, err = t.exec(query, args...); err == nil {
			err = t.use(session, add)
		}
		return a.failure(err)
	})
	if err == nil {
		if len(add) > 0 {
			s.history.noteAppended(session, add[len(add)-1].Head())
		}
		s.publish(session)
		s.tryVacuum(ctx)
	}
	return err
}

// session locks and reads the row of a session.
func (t transaction) session(session string) (row sessionRow, found bool, err error) {
	found, err = t.one(row.headColumns(), lockHead, []byte(session))
	if found {
		err = row.check(session)
	}
	return row, found, err
}

// replace replaces lines of a session.
func (t transaction) replace(row sessionRow, session string, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	if err := t.noteBytes(); err != nil {
		return err
	}
	grown := int64(0)
	for i := range events {
		e := &events[i]
		var before int64
		found, err := t.one([]any{&before}, replaceLine, row.Key, e.Seq, []byte(e.Type), e.Line())
		if err == nil && !found {
			err = fmt.Errorf("rewrite %q: seq %d: %w", session, e.Seq, eventlog.ErrEventNotFound)
		}
		if err != nil {
			return err
		}
		grown += int64(len(e.Line())) - before
	}
	if err := t.reuse(session, events); err != nil {
		return err
	}
	_, err := t.exec(revise, []byte(session), grown)
	return err
}

// RemoveSession implements eventlog.Eraser. It removes the copies that repairs made of
// the session too.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	err := s.transact(ctx, itself, func(t transaction) error {
		row, err := t.removable(session, expect)
		if err != nil {
			return err
		}
		if err := t.noteBytes(); err != nil {
			return err
		}
		for _, step := range []struct {
			query string
			args  []any
		}{
			{deleteEvents, []any{row.Key}},
			{deleteRow, []any{row.Key}},
			{deleteSession, []any{[]byte(session)}},
			{deleteCopies, []any{[]byte(session)}},
			{deleteRelations, []any{[]byte(session)}},
			{deleteUsers, []any{[]byte(session)}},
			{countRemoval, nil},
		} {
			if _, err := t.exec(step.query, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove session %q: %w", session, err)
	}
	s.history.forget(session)
	s.publish(session)
	s.tryVacuum(ctx)
	return nil
}

// removable returns the row of a session that may be removed: its head is expect, or
// expect is zero and its newest event is unreadable.
func (t transaction) removable(session string, expect event.Head) (sessionRow, error) {
	row, found, err := t.session(session)
	if !found {
		if err == nil && expect.IsZero() {
			err = eventlog.ErrNotFound
		} else if err == nil {
			err = &eventlog.ConflictError{Session: session, Expected: expect}
		}
		return row, err
	}
	if err == nil && row.Head == expect {
		return row, nil
	}
	if !expect.IsZero() {
		if err == nil {
			err = &eventlog.ConflictError{Session: session, Expected: expect, Actual: row.Head}
		}
		return row, err
	}
	if err != nil {
		return row, nil // the row is damaged: nobody knows the head
	}
	var line []byte
	readable, err := t.one([]any{&line}, readLine, row.Key, row.Head.Seq)
	if err != nil {
		return row, err
	}
	e, parsing := event.Parse(line, session)
	if readable && (parsing == nil && e.Seq == row.Head.Seq || errors.Is(parsing, event.ErrVersion)) {
		err = &eventlog.ConflictError{Session: session, Expected: expect, Actual: row.Head}
	}
	return row, err
}

// noteBytes records, in the running transaction, that it replaces bytes.
func (t transaction) noteBytes() error {
	_, err := t.exec(noteErasing, [][]byte{{}})
	return err
}

// SetErasing implements eventlog.Eraser.
func (s *Store) SetErasing(ctx context.Context, digests []event.Digest) error {
	sums := [][]byte{{}} // the tables keep the digests of the record for a while
	for _, d := range digests {
		sum, err := digestBytes(d)
		if err != nil {
			return fmt.Errorf("record an erasure: %w", err)
		}
		sums = append(sums, sum)
	}
	err := s.transact(ctx, itself, func(t transaction) error {
		if _, err := t.exec(forgetBlobs); err != nil {
			return err
		}
		_, err := t.exec(noteErasing, sums)
		return err
	})
	return wrap("record an erasure", err)
}

// Erasing implements eventlog.Eraser.
func (s *Store) Erasing(ctx context.Context) (e eventlog.Erasing, err error) {
	var sums [][]byte
	_, err = s.one(ctx, []any{&sums}, listErasing)
	for _, sum := range sums {
		if len(sum) == 0 {
			e.Bytes = true
		} else {
			e.Blobs = append(e.Blobs, digestOf(sum))
		}
	}
	return e, wrap("read the running erasure", err)
}

// tryVacuum runs vacuum after a committed erasure. If vacuum fails, Erasing still returns
// the record, and Sweep runs vacuum again and returns the error.
func (s *Store) tryVacuum(ctx context.Context) { _ = s.vacuum(ctx) }

// vacuum removes the bytes of replaced and deleted rows from the tables, and ends their
// record. The server skips the tables of another owner with a warning: then the record
// stays.
func (s *Store) vacuum(ctx context.Context) error {
	conn, err := s.writer(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	warned := warningsOf(conn.Conn())
	if _, err := conn.Exec(ctx, vacuumTables); err != nil {
		return fmt.Errorf("vacuum: %w", s.failure(err))
	}
	if text := warned.text(); text != "" {
		return fmt.Errorf("vacuum: %w: %s", ErrDenied, text)
	}
	_, err = conn.Exec(ctx, forgetErasing)
	return s.failure(err)
}

// Sweep implements eventlog.Sweeper. Interrupted writes leave no rows.
func (s *Store) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.FilePlace, error] {
	return func(yield func(eventlog.FilePlace, error) bool) {
		err := s.usable(ctx)
		if err == nil && remove {
			var unfinished eventlog.Erasing
			if unfinished, err = s.Erasing(ctx); err == nil && unfinished.Bytes {
				err = s.vacuum(ctx)
			}
		}
		if err != nil {
			yield(eventlog.FilePlace{}, err)
		}
	}
}

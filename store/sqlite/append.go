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
	insertSession = `INSERT INTO sessions (id, first, head, hash, bytes, active) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	moveHead      = `UPDATE sessions SET head = ?, hash = ?, active = ?, bytes = bytes + ? WHERE key = ? AND head = ? AND hash = ?`
	findSession   = `SELECT key, head, hash FROM sessions WHERE id = ?`
	insertEvent   = `INSERT INTO events (session, seq, id, type, timestamp, line) VALUES (?, ?, ?, ?, ?, ?)`
)

// Append implements eventlog.Store.
func (s *Store) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	err := s.write(ctx, &appendOp{session: session, expect: expect, events: events}, durable)
	if err == nil {
		s.changes.Publish(session)
	}
	if err == nil || errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrUnknownOutcome) {
		return err // these errors name the session already
	}
	return fmt.Errorf("append to session %q: %w", session, err)
}

// appendOp appends events to a session.
type appendOp struct {
	session string
	expect  event.Head
	events  []event.Event
}

func (a *appendOp) unknown(cause error) error {
	return &eventlog.UnknownOutcomeError{Session: a.session, Head: a.expect, Cause: cause}
}

func (a *appendOp) apply(w *writer) error {
	if len(a.events) == 0 {
		_, err := w.compare(a.session, a.expect)
		return err
	}
	key, err := w.move(a.session, a.expect, a.events)
	if err == nil && a.expect.IsZero() {
		err = w.relate(key, &a.events[0])
	}
	if err != nil {
		return err
	}
	return w.insert(key, a.events)
}

// move sets the session's head from expect to the last of events. One statement
// compares and writes, so a conflict changes nothing. It returns the session's key.
func (w *writer) move(session string, expect event.Head, events []event.Event) (key int64, err error) {
	last := &events[len(events)-1]
	head, active, size := last.Head(), last.Timestamp.UnixMicro(), lineBytes(events)
	if expect.IsZero() {
		return w.create(session, events[0].Seq, last, size)
	}
	key, cached := w.keys[session]
	if !cached {
		if key, err = w.compare(session, expect); err != nil {
			return 0, err
		}
		w.remember(session, key)
	}
	result, err := w.conn.exec(moveHead, head.Seq, head.Hash[:], active, size, key, expect.Seq, expect.Hash[:])
	if err != nil {
		return 0, fmt.Errorf("move head: %w", err)
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 1 {
		return key, err
	}
	delete(w.keys, session)
	if !cached {
		return 0, fmt.Errorf("move head of session %q: %w", session, errors.New("its row is missing"))
	}
	return w.move(session, expect, events) // the cached key was stale, or compare finds the conflict
}

func (w *writer) create(session string, first int64, last *event.Event, size int64) (int64, error) {
	head := last.Head()
	result, err := w.conn.exec(insertSession, session, first, head.Seq, head.Hash[:], size, last.Timestamp.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("create session: %w", err)
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return 0, err
	}
	if changed == 0 {
		_, err := w.compare(session, event.Head{})
		return 0, err
	}
	key, err := result.LastInsertId()
	if err == nil {
		w.remember(session, key)
	}
	return key, err
}

// compare returns the key of the session. The error is a ConflictError unless the
// session's head is expect. The key is 0 if the session is missing and expect is zero.
func (w *writer) compare(session string, expect event.Head) (int64, error) {
	key, actual, err := w.head(session)
	if err != nil {
		return 0, err
	}
	if actual != expect {
		return 0, rejection{&eventlog.ConflictError{Session: session, Expected: expect, Actual: actual}}
	}
	return key, nil
}

func (w *writer) head(session string) (key int64, head event.Head, err error) {
	row := make([]driver.Value, 3)
	found, err := w.conn.first(row, findSession, session)
	if err != nil || !found {
		return 0, head, wrap("read head", err)
	}
	key, ok := row[0].(int64)
	seq, ok2 := row[1].(int64)
	hash, ok3 := row[2].([]byte)
	if !ok || !ok2 || !ok3 || len(hash) != len(head.Hash) {
		return 0, head, corruptAt(w.path, session, "sessions", 0, errRow)
	}
	head.Seq = seq
	copy(head.Hash[:], hash)
	return key, head, nil
}

var (
	errRow   = errors.New("a row has a column of the wrong type or length")
	errTaken = errors.New("a row with this seq exists already")
)

// wrap adds a phrase to an error. A nil error stays nil.
func wrap(phrase string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", phrase, err)
}

// maxKeys bounds the cache of session keys.
const maxKeys = 10_000

func (w *writer) remember(session string, key int64) {
	if len(w.keys) >= maxKeys {
		clear(w.keys)
	}
	w.keys[session] = key
}

func (w *writer) insert(key int64, events []event.Event) error {
	for i := range events {
		e := &events[i]
		_, err := w.conn.exec(insertEvent, key, e.Seq, e.ID.String(), string(e.Type), e.Timestamp.UnixMicro(), e.Line())
		if isCode(err, codeUnique) {
			return corruptAt(w.path, e.SessionID, "events", e.Seq, fmt.Errorf("%w: %w", errTaken, err))
		}
		if err != nil {
			return fmt.Errorf("insert event %d: %w", e.Seq, err)
		}
		if err := w.use(key, e); err != nil {
			return err
		}
	}
	return nil
}

// lineBytes returns the size of the events' lines, including one newline each.
func lineBytes(events []event.Event) int64 {
	var n int64
	for i := range events {
		n += int64(len(events[i].Line())) + 1
	}
	return n
}

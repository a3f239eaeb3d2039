package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const (
	readRows     = `SELECT seq, ` + shortLine + `, octet_length(line) FROM events WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT $3`
	newCopy      = `SELECT nextval('copy_numbers')`
	copyLines    = `INSERT INTO copies (number, session, seq, line) SELECT $1, $2, seq, line FROM events WHERE session = $3`
	deleteCopies = `DELETE FROM copies WHERE session = $1`
	listCopies   = `SELECT number, seq, ` + shortLine + ` FROM copies WHERE (number, seq) > ($1, $2) ORDER BY number, seq LIMIT $3`
	resetSession = `UPDATE sessions SET first = $2, head = $3, hash = $4, bytes = $5, revision = revision + 1,
		changed = pg_current_xact_id() WHERE id = $1`
)

// eventsPath is the path of fragments.
const eventsPath = "table events"

// Fragments implements eventlog.Salvager. Every row is a fragment, and so is every
// missing row.
func (s *Store) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	return func(yield func(eventlog.Fragment, error) bool) {
		if err := s.fragments(ctx, session, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.Fragment{}, fmt.Errorf("salvage session %q: %w", session, err))
		}
	}
}

// errStop ends an iteration early. It is not reported.
var errStop = errors.New("stop")

func (s *Store) fragments(ctx context.Context, session string, yield func(eventlog.Fragment, error) bool) error {
	var row sessionRow
	found, err := s.one(ctx, row.columns(), readSession, []byte(session))
	if err == nil && !found {
		err = eventlog.ErrNotFound
	}
	if err != nil {
		return err
	}
	emit := func(f eventlog.Fragment) error {
		f.Path, f.Offset = eventsPath, -1
		if err := s.usable(ctx); err != nil {
			return err
		}
		if !yield(f, nil) {
			return errStop
		}
		return nil
	}
	due := max(row.First, 1)
	for {
		page, err := s.rowPage(ctx, row.Key, due)
		if err != nil {
			return err
		}
		for _, r := range page {
			for ; due < r.seq && due <= row.Head.Seq; due++ {
				if err := emit(eventlog.Fragment{Seq: due, Err: pages.ErrMissing}); err != nil {
					return err
				}
			}
			f := r.fragment()
			if r.seq > row.Head.Seq {
				f.Seq = 0 // only the line can name an event after the head
			}
			if err := emit(f); err != nil {
				return err
			}
			due = r.seq + 1
		}
		if len(page) < pages.MaxRows {
			break
		}
	}
	for ; due <= row.Head.Seq; due++ {
		if err := emit(eventlog.Fragment{Seq: due, Err: pages.ErrMissing}); err != nil {
			return err
		}
	}
	return nil
}

// storedRow is a row of table events.
type storedRow struct {
	seq, size int64
	line      []byte
}

// rowPage reads rows of a session from a seq on.
func (s *Store) rowPage(ctx context.Context, key, from int64) ([]storedRow, error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, readRows, key, from, pages.MaxRows)
	if err != nil {
		return nil, s.failure(err)
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r storedRow, err error) {
		err = row.Scan(&r.seq, &r.line, &r.size)
		return r, err
	})
	return page, s.failure(err)
}

func (r *storedRow) fragment() eventlog.Fragment {
	f := eventlog.Fragment{Seq: r.seq, Bytes: r.size + 1, Err: pages.ErrLongLine}
	if r.line != nil {
		f.Event, f.Err = event.Parse(r.line, "")
	}
	return f
}

// Replace implements eventlog.Salvager. The old lines move to table copies.
func (s *Store) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (copied string, err error) {
	unknown := func(cause error) error { return &eventlog.UnknownOutcomeError{Session: session, Cause: cause} }
	err = s.transact(ctx, unknown, func(t transaction) (err error) {
		copied, err = t.replaceAll(session, at, events)
		return err
	})
	var outcome *eventlog.UnknownOutcomeError
	if err != nil && !errors.As(err, &outcome) {
		return "", fmt.Errorf("replace session %q: %w", session, err)
	}
	s.history.forget(session)
	s.publish(session)
	return copied, err
}

func (t transaction) replaceAll(session string, at uint64, events iter.Seq2[event.Event, error]) (copied string, err error) {
	var key, revision, number int64
	var hash []byte
	found, err := t.one([]any{&key, &hash, &revision}, `SELECT key, hash, revision FROM sessions WHERE id = $1 FOR UPDATE`, []byte(session))
	if err == nil && !found {
		err = eventlog.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	if now, err := versionOf(session, hash, revision); err != nil || now != at {
		return "", &eventlog.ConflictError{Session: session}
	}
	if _, err := t.one([]any{&number}, newCopy); err != nil {
		return "", err
	}
	if _, err := t.exec(copyLines, number, []byte(session), key); err != nil {
		return "", err
	}
	for _, query := range []string{deleteEvents, deleteRow} {
		if _, err := t.exec(query, key); err != nil {
			return "", err
		}
	}
	for _, query := range []string{deleteRelations, deleteUsers} {
		if _, err := t.exec(query, []byte(session)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("table copies, number %d", number), t.insertAll(session, key, events)
}

// insertAll inserts the events of a replaced session.
func (t transaction) insertAll(session string, key int64, events iter.Seq2[event.Event, error]) error {
	const insert = `INSERT INTO events (session, seq, id, type, at, line)
		SELECT $1::bigint, e.* FROM unnest($2::bigint[], $3::uuid[], $4::bytea[], $5::bigint[], $6::bytea[]) e`
	var page []event.Event
	var first, size int64
	var head event.Head
	flush := func() error {
		_, err := t.exec(insert, append([]any{key}, columns(page)...)...)
		if err == nil {
			err = t.use(session, page)
		}
		size += lineBytes(page)
		page = page[:0]
		return err
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		if first == 0 {
			first = e.Seq
			if _, err := t.exec(insertRelations, []byte(session), relationsOf(&e)); err != nil {
				return err
			}
		}
		head = e.Head()
		if page = append(page, e); len(page) == pages.MaxRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if first == 0 {
		return errors.New("the replacement has no events")
	}
	if err := flush(); err != nil {
		return err
	}
	_, err := t.exec(resetSession, []byte(session), first, head.Seq, head.Hash[:], size)
	return err
}

// Mentioned implements eventlog.Sweeper: the blobs of the lines that repairs replaced.
func (s *Store) Mentioned(ctx context.Context) iter.Seq2[event.Digest, error] {
	return func(yield func(event.Digest, error) bool) {
		number, seq := int64(0), int64(0)
		for {
			page, err := s.copyPage(ctx, &number, &seq)
			for _, line := range page {
				e, parsing := event.Parse(line, "")
				if parsing != nil {
					continue
				}
				for _, d := range e.Blobs() {
					if !yield(d, nil) {
						return
					}
				}
			}
			if err != nil {
				yield("", err)
				return
			}
			if len(page) < pages.MaxRows {
				return
			}
		}
	}
}

// copyPage reads lines of table copies after a place, and moves the place.
func (s *Store) copyPage(ctx context.Context, number, seq *int64) ([][]byte, error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, listCopies, *number, *seq, pages.MaxRows)
	if err != nil {
		return nil, s.failure(err)
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (line []byte, err error) {
		err = row.Scan(number, seq, &line)
		return line, err
	})
	return page, s.failure(err)
}

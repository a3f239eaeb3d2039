package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// One statement compares the head and inserts the events. Of two writers, the second one
// waits for the row of the session, compares again, and changes no row.
const (
	insertEvents = ` INSERT INTO events (session, seq, id, type, at, line)
		SELECT s.key, e.* FROM s, unnest($4::bigint[], $5::uuid[], $6::bytea[], $7::bigint[], $8::bytea[]) e`
	appendFirst = `WITH s AS (INSERT INTO sessions (id, first, head, hash, bytes)
		VALUES ($1, ($4::bigint[])[1], ($4::bigint[])[cardinality($4::bigint[])], $2, $3) ON CONFLICT DO NOTHING RETURNING key)` + relate + insertEvents
	appendNext = `WITH s AS (UPDATE sessions SET head = ($4::bigint[])[cardinality($4::bigint[])], hash = $2, bytes = bytes + $3,
		changed = pg_current_xact_id() WHERE id = $1 AND head = $9 AND hash = $10 RETURNING key)` + insertEvents

	// The same for one event, without arrays.
	insertEvent = ` INSERT INTO events (session, seq, id, type, at, line)
		SELECT s.key, $4::bigint, $5::uuid, $6::bytea, $7::bigint, $8::bytea FROM s`
	appendFirstOne = `WITH s AS (INSERT INTO sessions (id, first, head, hash, bytes) VALUES ($1, $4::bigint, $4::bigint, $2, $3)
		ON CONFLICT DO NOTHING RETURNING key)` + relate + insertEvent
	appendNextOne = `WITH s AS (UPDATE sessions SET head = $4::bigint, hash = $2, bytes = bytes + $3,
		changed = pg_current_xact_id() WHERE id = $1 AND head = $9 AND hash = $10 RETURNING key)` + insertEvent

	readHead = `SELECT key, head, hash FROM sessions WHERE id = $1`
	// makeDurable overrides synchronous_commit=off for a transaction. Other values of the
	// setting sync at least the disk of the server.
	makeDurable = `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`
	// makeUnsynced commits a transaction without a sync, unless commits wait for a standby: a
	// promoted standby has all that a reader has read.
	makeUnsynced = `SELECT set_config('synchronous_commit', 'off', true) WHERE current_setting('synchronous_standby_names') = ''`
	// blobsMissing finds a blob of a list that is not stored.
	blobsMissing = `SELECT d FROM unnest($1::bytea[]) d WHERE NOT EXISTS (SELECT FROM blobs WHERE digest = d) LIMIT 1`
)

// Append implements eventlog.Store. An append that names blobs checks in its transaction
// that they are stored, and that no erasure is running. An append under a store lock
// checks that the lock is still held.
func (s *Store) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	a := appending{store: s, session: session, expect: expect, events: events}
	err := a.run(ctx, durable)
	if err == nil && len(events) > 0 {
		if !engine.Unsynced(ctx) {
			s.history.noteAppended(session, events[len(events)-1].Head())
		}
		s.publish(session)
	}
	if err == nil || errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrUnknownOutcome) {
		return err // these errors name the session already
	}
	return fmt.Errorf("append to session %q: %w", session, err)
}

// appending is one append.
type appending struct {
	store   *Store
	session string
	expect  event.Head
	events  []event.Event
}

// maxTries bounds the number of times that an append is tried again because its session
// was removed and created in between.
const maxTries = 8

func (a *appending) run(ctx context.Context, durable bool) error {
	pool, err := a.store.writable(ctx)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		changed := int64(0)
		switch blobs, _ := blobsOf(a.events); {
		case len(a.events) == 0:
		case len(blobs) > 0 || a.store.lockIn(ctx) != nil:
			changed, err = a.checked(ctx, blobs)
		default:
			changed, err = a.alone(ctx, durable)
		}
		if err != nil || changed > 0 {
			return err
		}
		var s sessionRow
		found, err := a.store.scan(pool.QueryRow(ctx, readHead, []byte(a.session)), s.headColumns())
		if err == nil && found {
			err = s.check(a.session)
		}
		switch {
		case err != nil:
			return err
		case s.Head != a.expect:
			return &eventlog.ConflictError{Session: a.session, Expected: a.expect, Actual: s.Head}
		case len(a.events) == 0:
			return nil
		case try == maxTries:
			return fmt.Errorf("%w: the session is removed and created all the time", eventlog.ErrUnavailable)
		}
	}
}

// alone runs the statement in a transaction of its own. It returns the number of rows
// that it inserted.
func (a *appending) alone(ctx context.Context, durable bool) (int64, error) {
	conn, err := a.store.writer(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	warned := warningsOf(conn.Conn())
	query, args := a.statement()
	var tag pgconn.CommandTag
	switch {
	case engine.Unsynced(ctx):
		tag, err = execAfter(ctx, conn.Conn(), makeUnsynced, query, args)
	case durable:
		tag, err = execAfter(ctx, conn.Conn(), makeDurable, query, args)
	default:
		tag, err = conn.Exec(ctx, query, args...)
	}
	switch {
	case err == nil && warned.unreplicated():
		return 0, a.unknown(errUnreplicated)
	case err == nil:
		return tag.RowsAffected(), nil
	case isRefused(err):
		return 0, a.failure(err)
	}
	return 0, a.unknown(a.store.failure(err))
}

// execAfter runs a statement after a statement that sets how it is committed, in one round
// trip and one transaction.
func execAfter(ctx context.Context, conn *pgx.Conn, setting, query string, args []any) (tag pgconn.CommandTag, err error) {
	batch := &pgx.Batch{}
	batch.Queue(setting)
	batch.Queue(query, args...)
	results := conn.SendBatch(ctx, batch)
	if _, err = results.Exec(); err == nil {
		tag, err = results.Exec()
	}
	closing := results.Close() // the end of the transaction
	if err == nil {
		err = closing
	}
	return tag, err
}

// checked runs the statement in a transaction that checks the store lock and the blobs
// first.
func (a *appending) checked(ctx context.Context, blobs [][]byte) (changed int64, err error) {
	err = a.store.transact(ctx, a.unknown, func(t transaction) (err error) {
		if err := t.checkBlobs(blobs); err != nil {
			return err
		}
		query, args := a.statement()
		changed, err = t.exec(query, args...)
		if err == nil && changed > 0 {
			err = t.use(a.session, a.events)
		}
		return a.failure(err)
	})
	return changed, err
}

func (a *appending) unknown(cause error) error {
	return &eventlog.UnknownOutcomeError{Session: a.session, Head: a.expect, Cause: cause}
}

// failure is the error of a statement that wrote nothing.
func (a *appending) failure(err error) error {
	if isCode(err, codeUnique) {
		return corrupt(a.session, "events", a.events[0].Seq, fmt.Errorf("%w: %w", errTaken, err))
	}
	return a.store.failure(err)
}

var errTaken = errors.New("a row with this seq exists already")

// statement is the statement that appends the events, and its arguments.
func (a *appending) statement() (query string, args []any) {
	last := a.events[len(a.events)-1].Head()
	args = append(args, []byte(a.session), last.Hash[:], lineBytes(a.events))
	first, next := appendFirst, appendNext
	if len(a.events) == 1 {
		e := &a.events[0]
		first, next = appendFirstOne, appendNextOne
		args = append(args, e.Seq, [16]byte(e.ID), []byte(e.Type), e.Timestamp.UnixMicro(), e.Line())
	} else {
		args = append(args, columns(a.events)...)
	}
	if a.expect.IsZero() {
		return first, append(args, relationsOf(&a.events[0]))
	}
	return next, append(args, a.expect.Seq, a.expect.Hash[:])
}

// columns are the columns of the events, as arrays.
func columns(events []event.Event) []any {
	n := len(events)
	seqs, ids, types, times, lines := make([]int64, n), make([][16]byte, n), make([][]byte, n), make([]int64, n), make([][]byte, n)
	for i := range events {
		e := &events[i]
		seqs[i], ids[i], types[i], times[i], lines[i] = e.Seq, e.ID, []byte(e.Type), e.Timestamp.UnixMicro(), e.Line()
	}
	return []any{seqs, ids, types, times, lines}
}

// digestBytes is the hash of a digest, 32 bytes.
func digestBytes(d event.Digest) ([]byte, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	return hex.DecodeString(d.Hex())
}

// digestOf is the digest of a hash.
func digestOf(sum []byte) event.Digest { return event.Digest("sha256:" + hex.EncodeToString(sum)) }

// lineBytes is the size of the events' lines, including one newline each.
func lineBytes(events []event.Event) (n int64) {
	for i := range events {
		n += int64(len(events[i].Line())) + 1
	}
	return n
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// The first statement of a read returns the row of the session and the first page. The
// later ones read from the head of the first. Seqs are contiguous, so a page is a range of
// seqs: a LIMIT would let the server sort the whole session while it has no statistics.
const (
	sessionColumns = `s.key, s.first, s.head, s.hash`
	firstForward   = `SELECT ` + sessionColumns + `, e.seq, ` + shortLine + ` FROM sessions s LEFT JOIN events e ON e.session = s.key
		AND e.seq BETWEEN greatest($2::bigint, s.first) AND least($3::bigint, s.head, greatest($2::bigint, s.first) + $4::bigint - 1)
		WHERE s.id = $1 ORDER BY e.seq`
	firstBackward = `SELECT ` + sessionColumns + `, e.seq, ` + shortLine + ` FROM sessions s LEFT JOIN events e ON e.session = s.key
		AND e.seq BETWEEN greatest($2::bigint, s.first, least($3::bigint, s.head) - $4::bigint + 1) AND least($3::bigint, s.head)
		WHERE s.id = $1 ORDER BY e.seq DESC`
	nextForward  = `SELECT seq, ` + shortLine + ` FROM events WHERE session = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`
	nextBackward = `SELECT seq, ` + shortLine + ` FROM events WHERE session = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq DESC`
	readSession  = `SELECT ` + sessionColumns + ` FROM sessions s WHERE id = $1`
)

// longestLine is the longest line that a reader fetches, in bytes. No append writes a
// line of half of it, so a longer line is damage.
const longestLine = 2 * (4<<20 + 64<<10)

// shortLine is the column line, and NULL for a longer line.
const shortLine = `CASE WHEN octet_length(line) <= 8519680 THEN line END`

var (
	errLongLine = fmt.Errorf("the line is longer than %d bytes", longestLine)
	errMissing  = errors.New("row is missing")
	errRow      = errors.New("a row has a column of the wrong length or value")
	errEnds     = errors.New("the session's row does not match its first or last event")
)

// The number of rows of a page grows from firstPage to maxPage, as long as a page stays
// at about pageBytes.
const (
	firstPage = 64
	maxPage   = 1000
	pageBytes = 1 << 20
)

// Read implements eventlog.Store. Once pages have their full size, the next page is read
// while the caller consumes the current one.
func (s *Store) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		c := cursor{store: s, session: session, backward: r.Backward, rows: firstPage}
		p, err := c.start(ctx, r)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for {
			ahead := c.fetchAhead(ctx, p)
			if !c.deliver(ctx, p, yield) {
				return
			}
			switch {
			case ahead != nil:
				p = <-ahead
			case c.left() > 0:
				p = c.fetch(ctx)
			default:
				return
			}
		}
	}
}

// sessionRow is a row of table sessions.
type sessionRow struct {
	key, first int64
	head       event.Head
	hash       []byte
}

func (r *sessionRow) columns() []any { return []any{&r.key, &r.first, &r.head.Seq, &r.hash} }

// headColumns are the columns of readHead.
func (r *sessionRow) headColumns() []any { return []any{&r.key, &r.head.Seq, &r.hash} }

// check completes the row after it was scanned.
func (r *sessionRow) check(session string) error {
	if len(r.hash) != len(r.head.Hash) || r.first > r.head.Seq {
		return corrupt(session, "sessions", 0, errRow)
	}
	copy(r.head.Hash[:], r.hash)
	return nil
}

// describes reports whether e is consistent with the row: the head has the row's hash,
// and the first event is seq 1 or a fork.
func (r *sessionRow) describes(e *event.Event) bool {
	return (e.Seq != r.first || e.Seq == 1 || e.Type.Name() == event.SessionForked) && (e.Seq != r.head.Seq || e.Hash() == r.head.Hash)
}

// cursor is the position of a reader in a session.
type cursor struct {
	store    *Store
	session  string
	row      sessionRow
	from, to int64 // seqs still to read, inclusive
	backward bool
	rows     int64 // of the next page
}

// page is a series of lines and the error that ended it early.
type page struct {
	due   int64 // seq of the first line
	lines [][]byte
	err   error
}

const maxSeq = 1<<63 - 1

// start reads the row of the session and the first page.
func (c *cursor) start(ctx context.Context, r eventlog.Span) (page, error) {
	pool, err := c.store.pool(ctx)
	if err != nil {
		return page{}, err
	}
	c.from, c.to = max(r.From, 0), maxSeq
	if r.To > 0 {
		c.to = r.To
	}
	limit := c.rows
	if r.Limit > 0 {
		limit = min(limit, int64(r.Limit))
	}
	query := firstForward
	if c.backward {
		query = firstBackward
	}
	rows, err := pool.Query(ctx, query, []byte(c.session), c.from, c.to, limit)
	if err != nil {
		return page{}, c.store.failure(err)
	}
	found, p, err := c.scanFirst(rows)
	if err != nil || !found {
		if err == nil {
			err = fmt.Errorf("read session %q: %w", c.session, eventlog.ErrNotFound)
		}
		return page{}, err
	}
	if err := c.row.check(c.session); err != nil {
		return page{}, err
	}
	c.store.history.noteRead(c.session, c.row.head)
	c.from, c.to = max(c.row.first, c.from), min(c.row.head.Seq, c.to)
	c.restrict(r.Limit)
	p.due = c.next()
	c.took(ctx, &p, min(limit, c.left()))
	return p, nil
}

// scanFirst scans the rows of the first statement. found is false if the session is
// missing.
func (c *cursor) scanFirst(rows pgx.Rows) (found bool, p page, err error) {
	defer rows.Close()
	for rows.Next() {
		found = true
		var seq *int64
		var line []byte
		if err := rows.Scan(append(c.row.columns(), &seq, &line)...); err != nil {
			return true, p, c.store.failure(err)
		}
		if seq != nil {
			p.lines = append(p.lines, line)
		}
	}
	return found, p, c.store.failure(rows.Err())
}

// restrict applies the limit of a span. Seqs are contiguous.
func (c *cursor) restrict(limit int) {
	switch n := int64(limit); {
	case n <= 0 || c.to-c.from < n:
	case c.backward:
		c.from = c.to - n + 1
	default:
		c.to = c.from + n - 1
	}
}

// left is the number of events that are not fetched yet.
func (c *cursor) left() int64 { return max(c.to-c.from+1, 0) }

// next is the seq of the next event to fetch.
func (c *cursor) next() int64 {
	if c.backward {
		return c.to
	}
	return c.from
}

// took moves the position after a page, and sets the size of the next one. A page with
// fewer rows than want ends with an error.
func (c *cursor) took(ctx context.Context, p *page, want int64) {
	n, size := int64(len(p.lines)), 0
	for _, line := range p.lines {
		size += len(line)
	}
	if c.backward {
		c.to -= n
	} else {
		c.from += n
	}
	if n > 0 {
		c.rows = min(4*c.rows, maxPage, max(1, pageBytes/max(int64(size)/n, 1)))
	}
	if p.err == nil && n < want {
		p.err = c.missingRows(ctx)
	}
}

// fetchAhead starts to fetch the page after p if the reader is likely to need it. Until
// the page is received, only the fetching goroutine uses the cursor's position.
func (c *cursor) fetchAhead(ctx context.Context, p page) <-chan page {
	if p.err != nil || c.left() == 0 || c.rows < maxPage {
		return nil
	}
	ahead := make(chan page, 1)
	go func() { ahead <- c.fetch(ctx) }()
	return ahead
}

// fetch reads the next page.
func (c *cursor) fetch(ctx context.Context) (p page) {
	p.due = c.next()
	want := min(c.rows, c.left())
	p.lines, p.err = c.readPage(ctx, want)
	c.took(ctx, &p, want)
	return p
}

func (c *cursor) readPage(ctx context.Context, want int64) (lines [][]byte, err error) {
	pool, err := c.store.pool(ctx)
	if err != nil {
		return nil, err
	}
	query, from, to := nextForward, c.from, c.from+want-1
	if c.backward {
		query, from, to = nextBackward, c.to-want+1, c.to
	}
	rows, err := pool.Query(ctx, query, c.row.key, from, to)
	if err != nil {
		return nil, c.store.failure(err)
	}
	defer rows.Close()
	var seq int64
	for rows.Next() {
		var line []byte
		if err := rows.Scan(&seq, &line); err != nil {
			return lines, c.store.failure(err)
		}
		lines = append(lines, line)
	}
	return lines, c.store.failure(rows.Err())
}

// missingRows is the reason for missing rows: the session was removed, or the table is
// damaged.
func (c *cursor) missingRows(ctx context.Context) error {
	var now sessionRow
	found, err := c.store.one(ctx, now.columns(), readSession, []byte(c.session))
	if err != nil {
		return err
	}
	if !found || now.key != c.row.key {
		return fmt.Errorf("read session %q: the session was removed during the read: %w", c.session, eventlog.ErrNotFound)
	}
	return corrupt(c.session, "events", c.next(), errMissing)
}

// deliver parses the lines of p and yields their events, then p's error. It returns
// false when reading must stop. It uses no field that fetch changes.
func (c *cursor) deliver(ctx context.Context, p page, yield func(event.Event, error) bool) bool {
	step := int64(1)
	if c.backward {
		step = -1
	}
	for i, line := range p.lines {
		var e event.Event
		err := c.store.usable(ctx)
		if err == nil {
			e, err = c.event(ctx, p.due+int64(i)*step, line)
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	if p.err != nil {
		yield(event.Event{}, p.err)
	}
	return p.err == nil
}

// event parses the line of seq due.
func (c *cursor) event(ctx context.Context, due int64, line []byte) (event.Event, error) {
	e, err := parseLine(c.session, due, line)
	if err == nil && !c.row.describes(&e) {
		return e, c.mismatch(ctx, due)
	}
	return e, err
}

// mismatch is the error for a session row that is inconsistent with the events; nil if
// the row changed in the meantime.
func (c *cursor) mismatch(ctx context.Context, due int64) error {
	var now sessionRow
	found, err := c.store.one(ctx, now.columns(), readSession, []byte(c.session))
	if err == nil && found {
		err = now.check(c.session)
	}
	if err == nil && found && now.key == c.row.key && now.first == c.row.first && now.head == c.row.head {
		err = corrupt(c.session, "sessions", due, errEnds)
	}
	return err
}

// parseLine parses the line of seq. The rows are in the order of their seqs, so the line
// after a missing row has a wrong seq. A nil line is too long.
func parseLine(session string, seq int64, line []byte) (event.Event, error) {
	if line == nil {
		return event.Event{}, corrupt(session, "events", seq, errLongLine)
	}
	e, err := event.Parse(line, session)
	if err == nil && e.Seq == seq {
		return e, nil
	}
	var newer *event.VersionError
	if errors.As(err, &newer) {
		return event.Event{}, fmt.Errorf("session %q, seq %d: %w", session, seq, err)
	}
	if err == nil {
		err = fmt.Errorf("the row has the line of seq %d", e.Seq)
	}
	return event.Event{}, corrupt(session, "events", seq, err)
}

func corrupt(session, table string, seq int64, cause error) error {
	return &eventlog.CorruptError{Session: session, Path: "table " + table, Offset: -1, Seq: seq, Cause: cause}
}

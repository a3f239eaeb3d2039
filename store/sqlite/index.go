package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/eventlog"
)

const (
	readState    = `SELECT rules, watermark, erasures FROM search_state`
	readBehind   = `SELECT key, session, seq, line FROM events WHERE key > ? ORDER BY key LIMIT ?`
	indexEvent   = `INSERT INTO search (rowid, grams) VALUES (?, ?)`
	setWatermark = `UPDATE search_state SET rules = ?, watermark = ?`
)

const (
	// indexBatch is how many events come into the index in one transaction.
	indexBatch = 1000
	// indexChunk is after how many of them it is seen whether anybody waits.
	indexChunk = 64
	// indexRest is for how long nobody must have written before the index is
	// brought up to date.
	indexRest = 100 * time.Millisecond
	// leastFinish is for how long closing may go on with the index in any case.
	leastFinish = 50 * time.Millisecond
)

// indexer brings the index of texts up to date, behind the appends: when
// nobody has written for a moment, and once more when the store is closed. As
// long as it is behind, a search reads the events that it lacks; so its errors
// need no report: what the index is to be made of is read, and so reported, by
// others, and what is wrong with it is found by Check.
type indexer struct {
	store *Store
	wake  chan struct{}
	last  atomic.Int64 // when something was written, in nanoseconds
	added atomic.Int64 // events since parts of the index were merged

	mu     sync.Mutex
	opened time.Time
	cancel context.CancelFunc // set while it is running
	done   chan struct{}
}

// start begins to go along with a store that was opened for writing.
func (x *indexer) start(s *Store) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.store, x.opened, x.done = s, time.Now(), make(chan struct{})
	x.wake = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(s.life)
	x.cancel = cancel
	go x.run(ctx, x.done)
	x.touch()
}

// touch says that something was written.
func (x *indexer) touch() {
	x.last.Store(time.Now().UnixNano())
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// finish stops it, and brings the index up to date unless that takes longer than
// half of the time that the store was open.
func (x *indexer) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cancel == nil {
		return
	}
	x.cancel()
	x.cancel = nil
	<-x.done
	ctx, cancel := context.WithTimeout(x.store.life, max(time.Since(x.opened)/2, leastFinish))
	defer cancel()
	_ = x.catchUp(ctx)
}

func (x *indexer) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		}
		for more := true; more && x.rest(ctx); {
			var err error
			if more, err = x.step(ctx); isBusy(err) {
				x.last.Store(time.Now().UnixNano())
				more = true
			}
		}
		if x.added.Load() >= indexBatch && x.rest(ctx) {
			x.added.Store(0)
			_ = x.merge(ctx, mergePages)
		}
	}
}

// rest waits until nobody has written for a moment.
func (x *indexer) rest(ctx context.Context) bool {
	for {
		wait := indexRest - time.Since(time.Unix(0, x.last.Load()))
		if wait <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// catchUp brings the index up to date.
func (x *indexer) catchUp(ctx context.Context) error {
	for more := true; more; {
		err := x.patiently(ctx, func(ctx context.Context) (err error) {
			more, err = x.step(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// patiently repeats a step while another process writes.
func (x *indexer) patiently(ctx context.Context, step func(context.Context) error) error {
	return within(ctx, x.store.options.LockTimeout, func(ctx context.Context) error {
		return patiently(ctx, func() error { return step(ctx) })
	})
}

// step brings some more events into the index; more is false when there are no
// more. The texts are made before anybody is kept from writing.
func (x *indexer) step(ctx context.Context) (more bool, err error) {
	b, err := x.behind(ctx)
	if err != nil || len(b.docs) == 0 {
		return false, err
	}
	if err = x.store.writer.do(ctx, &job{op: b, alone: true}); err == nil {
		x.added.Add(int64(len(b.docs)))
	}
	return err == nil, err
}

// Index implements eventlog.Indexer. It also makes one part of the parts that the
// index consists of.
func (s *Store) Index(ctx context.Context, anew bool) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	if anew {
		if err := s.write(ctx, reindexing{}, false); err != nil {
			return err
		}
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.index.catchUp(ctx); err != nil {
		return err
	}
	return s.index.merge(ctx, -mergePages)
}

// reindexing empties the index.
type reindexing struct{}

func (reindexing) apply(w *writer) error     { return w.resetIndex() }
func (reindexing) unknown(cause error) error { return cause }

const (
	mergeParts   = `INSERT INTO search (search, rank) VALUES ('merge', ?)`
	countChanges = `SELECT total_changes()`
	// mergePages is how much of the index is merged in one transaction.
	mergePages = 250
)

// merge makes fewer parts of those that the index consists of, which every search
// looks through; one of all if pages is negative. It lets others write meanwhile.
func (x *indexer) merge(ctx context.Context, pages int64) error {
	for more := true; more; {
		m := &merging{pages: pages}
		err := x.patiently(ctx, func(ctx context.Context) error { return x.store.writer.do(ctx, &job{op: m, alone: true}) })
		if err != nil {
			return err
		}
		more, pages = m.more, max(pages, -pages)
	}
	return nil
}

// merging merges some pages.
type merging struct {
	pages int64
	more  bool // there are more to merge
}

func (m *merging) unknown(cause error) error { return cause }

func (m *merging) apply(w *writer) error { return w.unsynced(func() error { return m.merge(w.conn) }) }

// merge goes on merging. SQLite says by the changes whether it has done anything.
func (m *merging) merge(c *conn) error {
	before, after := make([]driver.Value, 1), make([]driver.Value, 1)
	if _, err := c.first(before, countChanges); err != nil {
		return err
	}
	if _, err := c.exec(mergeParts, m.pages); err != nil {
		return err
	}
	_, err := c.first(after, countChanges)
	was, _ := before[0].(int64)
	is, _ := after[0].(int64)
	m.more = is-was >= 2
	return err
}

// indexState is the row of search_state.
type indexState struct{ rules, watermark, erasures int64 }

func readIndexState(c *conn) (s indexState, err error) {
	row := make([]driver.Value, 3)
	found, err := c.first(row, readState)
	if err != nil {
		return s, err
	}
	for i, to := range []*int64{&s.rules, &s.watermark, &s.erasures} {
		n, ok := row[i].(int64)
		if *to = n; !ok || !found {
			return s, errors.Join(eventlog.ErrCorrupt, errRow)
		}
	}
	return s, nil
}

// indexing is a batch of events for the index.
type indexing struct {
	state indexState // of when they were read
	docs  []document // by key
}

// document is an event as the index has it.
type document struct {
	key, id int64
	grams   string
}

// behind reads the next events that the index lacks.
func (x *indexer) behind(ctx context.Context) (*indexing, error) {
	b := &indexing{}
	var events []unindexed
	err := x.store.read(ctx, func(c *conn) (err error) {
		b.state, events, err = readBacklog(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	grams := newGramSet()
	for _, r := range events {
		text, err := x.store.gramsOf(ctx, grams, r.line)
		if err != nil {
			return nil, err
		}
		id, ok := docOf(r.session, r.seq)
		if !ok {
			break
		}
		b.docs = append(b.docs, document{r.key, id, text})
	}
	return b, nil
}

// unindexed is a row of an event that the index lacks.
type unindexed struct {
	key, session, seq int64
	line              []byte
}

// readBacklog reads the state of the index and the next events that it lacks, of
// the same moment.
func readBacklog(c *conn) (s indexState, events []unindexed, err error) {
	if err := c.run("SAVEPOINT backlog"); err != nil {
		return s, nil, err
	}
	if s, err = readIndexState(c); err == nil {
		from := s.watermark
		if s.rules != indexRules {
			from = 0
		}
		events, err = readUnindexed(c, from)
	}
	if released := c.run("RELEASE backlog"); err == nil {
		err = released
	}
	return s, events, err
}

// maxBacklogBytes bounds the lines of a batch.
const maxBacklogBytes = 8 << 20

func readUnindexed(c *conn, from int64) (events []unindexed, err error) {
	rows, err := c.query(readBehind, from, int64(indexBatch))
	if err != nil {
		return nil, err
	}
	size := 0
	row := make([]driver.Value, 4)
	for size < maxBacklogBytes {
		if err = rows.Next(row); err != nil {
			break
		}
		var e unindexed
		e.key, _ = row[0].(int64)
		e.session, _ = row[1].(int64)
		e.seq, _ = row[2].(int64)
		e.line, _ = row[3].([]byte)
		size += len(e.line)
		events = append(events, e)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return events, finish(rows, err)
}

// gramsOf is what the index has of an event, given its line. The error is ctx's.
func (s *Store) gramsOf(ctx context.Context, grams *gramSet, line []byte) (string, error) {
	text, err := textOf(ctx, line, s.OpenBlob)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return unreadGram, nil
	}
	return grams.of(eventlog.FoldText(text)), nil
}

// textOf is the text of the event on a line.
func textOf(ctx context.Context, line []byte, open func(context.Context, eventlog.Digest) (io.ReadCloser, error)) (string, error) {
	e, err := eventlog.ParseLine(line, "")
	if err != nil {
		return "", err
	}
	return eventlog.SearchText(ctx, &e, open)
}

func (b *indexing) unknown(cause error) error { return cause }

// apply puts the batch into the index, in a transaction of its own, or as much of
// it as can be done before somebody else wants to write. It changes nothing if
// the index is not any more as it was when the events were read. While another
// process writes it is busy.
func (b *indexing) apply(w *writer) error { return w.unsynced(func() error { return b.fill(w) }) }

// unsynced runs f in a transaction of its own. A loss of power may take it, since
// it is not synced, but not what others were promised: the next commit that is
// synced syncs all.
func (w *writer) unsynced(f func() error) (err error) {
	if err := w.reconnect(); err != nil {
		return err
	}
	if w.level == Full {
		if err := w.conn.run(Normal.pragma()); err != nil {
			return err
		}
		defer func() {
			if again := w.conn.run(Full.pragma()); again != nil {
				w.suspect = true // a new connection begins with the level as it should be
				err = errors.Join(err, again)
			}
		}()
	}
	if err := w.tryBegin(); err != nil {
		return err
	}
	if err = f(); err == nil {
		_, err = w.conn.exec("COMMIT")
	}
	if err != nil {
		w.rollback()
	}
	return err
}

func (b *indexing) fill(w *writer) error {
	state, err := readIndexState(w.conn)
	if err != nil || state != b.state {
		return err
	}
	if state.rules != indexRules && state.watermark > 0 {
		if err := w.resetIndex(); err != nil {
			return err
		}
	}
	last := int64(0)
	for chunk := range slices.Chunk(b.docs, indexChunk) {
		if last > 0 && w.wanted() {
			break
		}
		last = chunk[len(chunk)-1].key
		if err := w.index(chunk); err != nil {
			return err
		}
	}
	_, err = w.conn.exec(setWatermark, int64(indexRules), last)
	return err
}

// index puts documents into the index, in the order of their rows there.
func (w *writer) index(docs []document) error {
	slices.SortFunc(docs, func(a, b document) int { return cmp.Compare(a.id, b.id) })
	for _, d := range docs {
		if d.grams == "" {
			continue
		}
		if _, err := w.conn.exec(indexEvent, d.id, d.grams); err != nil {
			return err
		}
	}
	return nil
}

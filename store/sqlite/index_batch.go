package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	readState    = `SELECT rules, watermark, erasures FROM search_state`
	readBehind   = `SELECT key, session, seq, line FROM events WHERE key > ? ORDER BY key LIMIT ?`
	indexEvent   = `INSERT INTO search (rowid, grams) VALUES (?, ?)`
	setWatermark = `UPDATE search_state SET rules = ?, watermark = ?`
)

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
	return grams.of(event.Fold(text)), nil
}

// textOf is the text of the event on a line.
func textOf(ctx context.Context, line []byte, open func(context.Context, event.Digest) (io.ReadCloser, error)) (string, error) {
	e, err := event.Parse(line, "")
	if err != nil {
		return "", err
	}
	r := event.TextReader{Open: open}
	text, err := r.Read(ctx, &e)
	return string(text), err
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
	if w.level == Always {
		if err := w.conn.run(Periodic.pragma()); err != nil {
			return err
		}
		defer func() {
			if again := w.conn.run(Always.pragma()); again != nil {
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

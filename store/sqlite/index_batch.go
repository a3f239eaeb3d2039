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
	"github.com/convlog/convlog/internal/searchtext"
)

const (
	readState       = `SELECT rules, watermark, erasures FROM search_state`
	readBacklogRows = `SELECT key, session, seq, ` + shortLine + ` FROM events WHERE key > ? ORDER BY key` + limitRows
	indexEvent      = `INSERT INTO search (rowid, grams) VALUES (?, ?)`
	setWatermark    = `UPDATE search_state SET rules = ?, watermark = ?`
)

// indexState is the single row of table search_state.
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

// indexBatch is a batch of events for the index.
type indexBatch struct {
	state indexState // at the time of the read
	docs  []document // ordered by key
}

// document is the index row of an event.
type document struct {
	key, id int64
	grams   string
}

// nextBatch reads the next events that are not indexed yet and extracts their texts.
func (x *indexer) nextBatch(ctx context.Context) (*indexBatch, error) {
	b := &indexBatch{}
	var events []backlogEvent
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

// backlogEvent is an event that is not indexed yet.
type backlogEvent struct {
	key, session, seq int64
	line              []byte
}

// readBacklog reads the index state and the next events that are not indexed yet, in
// one transaction.
func readBacklog(c *conn) (s indexState, events []backlogEvent, err error) {
	err = c.atOnce(func() error {
		if s, err = readIndexState(c); err != nil {
			return err
		}
		from := s.watermark
		if s.rules != indexRules {
			from = 0
		}
		events, err = readUnindexed(c, from)
		return err
	})
	return s, events, err
}

// maxBacklogBytes bounds the lines of a batch.
const maxBacklogBytes = 8 << 20

func readUnindexed(c *conn, from int64) (events []backlogEvent, err error) {
	rows, err := c.query(readBacklogRows, from, int64(indexBatchRows))
	if err != nil {
		return nil, err
	}
	size := 0
	row := make([]driver.Value, 4)
	for size < maxBacklogBytes {
		if err = rows.Next(row); err != nil {
			break
		}
		var e backlogEvent
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

// gramsOf returns the index words of the event in line. The words are unreadGram if
// the text is unreadable. The only error is ctx's error.
func (s *Store) gramsOf(ctx context.Context, grams *gramSet, line []byte) (string, error) {
	text, err := textOf(ctx, line, s.OpenBlob)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return unreadGram, nil
	}
	return grams.words(text), nil
}

// textOf returns the folded text of the event in line.
func textOf(ctx context.Context, line []byte, open func(context.Context, event.Digest) (io.ReadCloser, error)) (string, error) {
	e, err := event.Parse(line, "")
	if err != nil {
		return "", err
	}
	r := searchtext.Reader{Open: open}
	text, err := r.Read(ctx, &e)
	if err != nil {
		return "", err
	}
	return searchtext.Fold(string(text)), nil
}

func (b *indexBatch) unknown(cause error) error { return cause }

// apply indexes the batch in a transaction of its own. It stops early when a write is
// queued. It changes nothing if the index state has changed since the batch was read.
// The error is busy while another process writes.
func (b *indexBatch) apply(w *writer) error { return w.runUnsynced(func() error { return b.fill(w) }) }

// runUnsynced runs f in a transaction that is not synced. A loss of power may undo the
// transaction, but no acknowledged append: the next synced commit syncs all earlier
// commits.
func (w *writer) runUnsynced(f func() error) (err error) {
	if err := w.reconnect(); err != nil {
		return err
	}
	if w.level == always {
		if err := w.conn.run(atCheckpoint.pragma()); err != nil {
			return err
		}
		defer func() {
			if again := w.conn.run(always.pragma()); again != nil {
				w.suspect = true // a new connection has the right sync level
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

func (b *indexBatch) fill(w *writer) error {
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
		if last > 0 && w.hasJobs() {
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

// index inserts documents in the order of their row ids.
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

package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	readErased     = `SELECT key, ` + shortLine + ` FROM events WHERE session = ? AND seq = ?`
	rangeIndexed   = `SELECT min(seq), max(seq) FROM events WHERE session = ? AND key <= ?`
	deleteIndexRow = `INSERT INTO search (search, rowid, grams) VALUES ('delete', ?, ?)`
	emptyIndex     = `INSERT INTO search (search) VALUES ('delete-all')`
	countErasure   = `UPDATE search_state SET erasures = erasures + 1`
	resetState     = `UPDATE search_state SET watermark = 0, erasures = erasures + 1`
	dropSearch     = `DROP TABLE IF EXISTS search`
	maxUnindexed   = 500 // rows deleted one by one, some milliseconds each
	resetPerIndex  = 100 // cost of deleting a row, relative to inserting one
)

// unindex removes the index rows of events in the transaction that erases the events.
// It empties the index if that is cheaper, or if it cannot delete single rows.
func (w *writer) unindex(session int64, seqs []int64) error {
	state, err := readIndexState(w.conn)
	if err != nil {
		return fmt.Errorf("read the state of the index: %w", err)
	}
	if state.rules != indexRules || len(seqs) > maxUnindexed || int64(len(seqs)-1)*resetPerIndex > state.watermark {
		return w.resetIndex()
	}
	return w.changeIndex(func(grams *gramSet) error {
		for _, seq := range seqs {
			if err := w.unindexEvent(grams, session, seq, state.watermark); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeIndex runs f, a small change of the index, in a savepoint. If f fails,
// changeIndex empties the index. SQLite reports a damaged index with the statement
// after the last change, at the latest.
func (w *writer) changeIndex(f func(*gramSet) error) error {
	if err := w.conn.run("SAVEPOINT small"); err != nil {
		return fmt.Errorf("change the index: %w", err)
	}
	err := f(newGramSet())
	if err == nil {
		_, err = w.conn.exec(countErasure)
	}
	if err == nil {
		return wrap("change the index", w.conn.run("RELEASE small"))
	}
	if err := w.conn.run("ROLLBACK TO small; RELEASE small"); err != nil {
		return fmt.Errorf("change the index: %w", err)
	}
	return w.resetIndex()
}

// unindexEvent deletes the index row of one event, if there is one.
func (w *writer) unindexEvent(grams *gramSet, session, seq, watermark int64) error {
	id, words, err := w.indexRow(grams, session, seq, watermark)
	if err != nil || words == "" {
		return err
	}
	_, err = w.conn.exec(deleteIndexRow, id, words)
	return err
}

// reindex inserts index rows for replaced events. The background update does not visit
// these events again.
func (w *writer) reindex(session int64, seqs []int64) error {
	state, err := readIndexState(w.conn)
	if err != nil {
		return err
	}
	return w.changeIndex(func(grams *gramSet) error {
		for _, seq := range seqs {
			id, words, err := w.indexRow(grams, session, seq, state.watermark)
			if err != nil {
				words = unreadGram
			}
			if err := w.index([]document{{id: id, grams: words}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// indexRow returns the id and the words of an event's index row. words is empty if the
// event is not indexed yet.
func (w *writer) indexRow(grams *gramSet, session, seq, watermark int64) (id int64, words string, err error) {
	row := make([]driver.Value, 2)
	found, err := w.conn.first(row, readErased, session, seq)
	if err != nil || !found {
		return 0, "", err
	}
	key, _ := row[0].(int64)
	line, _ := row[1].([]byte)
	id, ok := docOf(session, seq)
	if key > watermark || !ok {
		return id, "", nil
	}
	text, err := textOf(context.Background(), line, w.openBlob)
	if err != nil {
		return id, "", err
	}
	return id, grams.words(text), nil
}

// openBlob reads a blob on the writer's connection, in its transaction.
func (w *writer) openBlob(_ context.Context, d event.Digest) (io.ReadCloser, error) {
	row := make([]driver.Value, 2)
	found, err := w.conn.first(row, findBlob, string(d))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("open blob %s: %w", d, eventlog.ErrBlobNotFound)
	}
	size, _ := row[1].(int64)
	var body bytes.Buffer
	for piece := int64(0); int64(body.Len()) < size; piece++ {
		part := make([]driver.Value, 1)
		found, err := w.conn.first(part, readPiece, row[0], piece)
		if err != nil || !found {
			return nil, fmt.Errorf("read blob %s: piece %d is missing: %w", d, piece, eventlog.ErrCorrupt)
		}
		some, _ := part[0].([]byte)
		body.Write(some)
	}
	return io.NopCloser(&body), nil
}

// unindexSession removes all index rows of a session.
func (w *writer) unindexSession(session int64) error {
	state, err := readIndexState(w.conn)
	if err != nil {
		return fmt.Errorf("read the state of the index: %w", err)
	}
	row := make([]driver.Value, 2)
	if _, err := w.conn.first(row, rangeIndexed, session, state.watermark); err != nil {
		return fmt.Errorf("find the indexed events: %w", err)
	}
	first, _ := row[0].(int64)
	last, _ := row[1].(int64)
	if first == 0 {
		_, err := w.conn.exec(countErasure) // a batch in progress may contain events of the session
		return wrap("count an erasure", err)
	}
	if last-first >= maxUnindexed {
		return w.resetIndex()
	}
	seqs := make([]int64, 0, last-first+1)
	for seq := first; seq <= last; seq++ {
		seqs = append(seqs, seq)
	}
	return w.unindex(session, seqs)
}

// resetIndex empties the index, even a damaged one. The next update rebuilds the index
// from the first event on.
func (w *writer) resetIndex() error {
	if _, err := w.conn.exec(emptyIndex); err != nil {
		if err := w.conn.run(dropSearch + ";" + makeSearch); err != nil {
			return fmt.Errorf("empty the index: %w", err)
		}
	}
	_, err := w.conn.exec(resetState)
	return wrap("empty the index", err)
}

func seqsOf(events []event.Event) []int64 {
	seqs := make([]int64, len(events))
	for i := range events {
		seqs[i] = events[i].Seq
	}
	return seqs
}

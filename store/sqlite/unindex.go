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
	readErased    = `SELECT key, line FROM events WHERE session = ? AND seq = ?`
	rangeIndexed  = `SELECT min(seq), max(seq) FROM events WHERE session = ? AND key <= ?`
	takeOut       = `INSERT INTO search (search, rowid, grams) VALUES ('delete', ?, ?)`
	emptyIndex    = `INSERT INTO search (search) VALUES ('delete-all')`
	countErasure  = `UPDATE search_state SET erasures = erasures + 1`
	resetState    = `UPDATE search_state SET watermark = 0, erasures = erasures + 1`
	dropSearch    = `DROP TABLE search`
	maxUnindexed  = 500 // rows that are taken out one by one, which takes milliseconds each
	resetPerIndex = 100 // the cost of taking a row out by that of making one
)

// unindex takes events out of the index that are about to be erased, in the
// transaction that erases them. Where that cannot be done row by row, or would
// take longer than to make the index anew, it is emptied.
func (w *writer) unindex(session int64, seqs []int64) error {
	state, err := readIndexState(w.conn)
	if err != nil {
		return fmt.Errorf("read the state of the index: %w", err)
	}
	if state.rules != indexRules || len(seqs) > maxUnindexed || int64(len(seqs)-1)*resetPerIndex > state.watermark {
		return w.resetIndex()
	}
	return w.change(func(grams *gramSet) error {
		for _, seq := range seqs {
			if err := w.takeOut(grams, session, seq, state.watermark); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes a small change of the index, and empties it if that fails. What
// is wrong with it shows with the statement after the last change, at the
// latest.
func (w *writer) change(f func(*gramSet) error) error {
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

// takeOut takes one event out of the index, if it is in it.
func (w *writer) takeOut(grams *gramSet, session, seq, watermark int64) error {
	id, words, err := w.indexed(grams, session, seq, watermark)
	if err != nil || words == "" {
		return err
	}
	_, err = w.conn.exec(takeOut, id, words)
	return err
}

// reindex puts events into the index whose lines were replaced, and which the
// index is not to meet again.
func (w *writer) reindex(session int64, seqs []int64) error {
	state, err := readIndexState(w.conn)
	if err != nil {
		return err
	}
	return w.change(func(grams *gramSet) error {
		for _, seq := range seqs {
			id, words, err := w.indexed(grams, session, seq, state.watermark)
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

// indexed is what the index has of an event; nothing if the index has not come to
// it yet.
func (w *writer) indexed(grams *gramSet, session, seq, watermark int64) (id int64, words string, err error) {
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
	return id, grams.of(event.Fold(text)), nil
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

// unindexSession takes all events of a session out of the index.
func (w *writer) unindexSession(session int64) error {
	state, err := readIndexState(w.conn)
	if err != nil {
		return fmt.Errorf("read the state of the index: %w", err)
	}
	row := make([]driver.Value, 2)
	if _, err := w.conn.first(row, rangeIndexed, session, state.watermark); err != nil {
		return fmt.Errorf("find what is indexed: %w", err)
	}
	first, _ := row[0].(int64)
	last, _ := row[1].(int64)
	if first == 0 {
		_, err := w.conn.exec(countErasure) // a batch that is being made may have some of it
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

// resetIndex empties the index, whatever state it is in, for it to be made anew
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

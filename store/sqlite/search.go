package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	findSearch = `SELECT 1 FROM sqlite_schema WHERE name = 'search'`
	searchRows = `SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC`
	// The plus keeps SQLite from going through the index of all events instead.
	freshSessions = `SELECT session, min(seq) FROM events WHERE key > ? GROUP BY +session`
	freshSession  = `SELECT session, min(seq) FROM events WHERE key > ? AND +session = ?`
	listActivity  = `SELECT s.key, s.id, e.timestamp FROM sessions s LEFT JOIN events e ON e.session = s.key AND e.seq = s.head`
	readActivity  = listActivity + ` WHERE s.key = ?`
	readSearched  = `SELECT seq, line FROM events WHERE session = ? AND seq = ?`
)

// Search implements eventlog.Searcher: what the index has, and all that it
// lacks. A file that was made before there was an index, and an index that is
// damaged, are passed over: then it is all events.
func (s *Store) Search(ctx context.Context, terms []string, session string, to int64) iter.Seq2[eventlog.Candidates, error] {
	return func(yield func(eventlog.Candidates, error) bool) {
		p := picking{only: session}
		p.query, p.indexed = indexQuery(terms)
		err := s.read(ctx, func(c *conn) error { return p.pick(ctx, c) })
		if isDamage(err) && p.indexed {
			p.indexed = false
			err = s.read(ctx, func(c *conn) error { return p.pick(ctx, c) })
		}
		if err != nil {
			yield(eventlog.Candidates{Session: session}, s.locate(session, "events", 0, err))
			return
		}
		for _, one := range p.sorted() {
			if !yield(eventlog.Candidates{Session: one.Session, Events: s.picked(ctx, one, to)}, nil) {
				return
			}
		}
	}
}

// picking finds the events that a search has to look at.
type picking struct {
	query    string // for the index
	indexed  bool   // there is one that can be asked
	only     string // the session; "" is all
	sessions map[int64]*picked
}

// picked is what there is to look at of a session.
type picked struct {
	eventlog.Activity
	key   int64
	fresh int64   // the seq from which on all is; 0 is none
	seqs  []int64 // of those before, newest first
}

// pick does all of it in one transaction.
func (p *picking) pick(ctx context.Context, c *conn) error {
	p.sessions = map[int64]*picked{}
	if _, err := c.exec("SAVEPOINT picking"); err != nil {
		return err
	}
	err := p.all(ctx, c)
	if _, released := c.exec("RELEASE picking"); err == nil {
		err = released
	}
	return err
}

func (p *picking) all(ctx context.Context, c *conn) error {
	key := int64(0)
	if p.only != "" {
		row := make([]driver.Value, 3)
		found, err := c.first(row, findSession, p.only)
		if err != nil || !found {
			return err
		}
		key, _ = row[0].(int64)
	}
	state, err := p.state(c)
	if err != nil {
		return err
	}
	if !p.indexed || state.rules != indexRules {
		return p.everything(c, key)
	}
	if err := p.ask(ctx, c, key); err != nil {
		return err
	}
	if err := p.lacking(c, key, state.watermark); err != nil {
		return err
	}
	return p.describe(c)
}

// state is the index's, if there is one and it can be asked.
func (p *picking) state(c *conn) (s indexState, err error) {
	if !p.indexed {
		return s, nil
	}
	row := make([]driver.Value, 1)
	found, err := c.first(row, findSearch)
	if err != nil || !found {
		return s, err
	}
	return readIndexState(c)
}

// everything picks all events.
func (p *picking) everything(c *conn, key int64) error {
	query, args := listActivity, []driver.Value{}
	if key > 0 {
		query, args = readActivity, []driver.Value{key}
	}
	return c.each(func(row []driver.Value) { p.activity(row).fresh = 1 }, 3, query, args...)
}

// ask picks what the index has.
func (p *picking) ask(ctx context.Context, c *conn, key int64) error {
	from, to := int64(0), int64(1)<<62
	if key > 0 {
		from, _ = docOf(key, 0)
		to, _ = docOf(key+1, 0)
	}
	rows, err := c.query(searchRows, p.query, from, to)
	if err != nil {
		return err
	}
	row := make([]driver.Value, 1)
	for n := 0; ; n++ {
		if err = rows.Next(row); err != nil {
			break
		}
		if n%1024 == 0 && ctx.Err() != nil {
			err = ctx.Err()
			break
		}
		doc, _ := row[0].(int64)
		one := p.session(doc >> 32)
		one.seqs = append(one.seqs, doc&(1<<32-1))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return finish(rows, err)
}

// lacking picks what the index lacks.
func (p *picking) lacking(c *conn, key, watermark int64) error {
	query, args := freshSessions, []driver.Value{watermark}
	if key > 0 {
		query, args = freshSession, []driver.Value{watermark, key}
	}
	return c.each(func(row []driver.Value) {
		if session, ok := row[0].(int64); ok {
			p.session(session).fresh, _ = row[1].(int64)
		}
	}, 2, query, args...)
}

// describe reads the ids of the sessions and when they were last active.
func (p *picking) describe(c *conn) error {
	for key := range p.sessions {
		if err := c.each(func(row []driver.Value) { p.activity(row) }, 3, readActivity, key); err != nil {
			return err
		}
	}
	return nil
}

// activity takes a row of listActivity.
func (p *picking) activity(row []driver.Value) *picked {
	key, _ := row[0].(int64)
	one := p.session(key)
	one.Session, _ = row[1].(string)
	if micros, ok := row[2].(int64); ok {
		one.Last = time.UnixMicro(micros).UTC()
	}
	return one
}

func (p *picking) session(key int64) *picked {
	one, ok := p.sessions[key]
	if !ok {
		one = &picked{key: key}
		p.sessions[key] = one
	}
	return one
}

// sorted are the sessions in the order of a search. Events that belong to none
// are no session's.
func (p *picking) sorted() []*picked {
	var all []*picked
	for _, one := range p.sessions {
		if one.Session != "" {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *picked) int { return eventlog.ByActivity(a.Activity, b.Activity) })
	return all
}

// picked yields the events that were picked of a session, newest first.
func (s *Store) picked(ctx context.Context, one *picked, to int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if one.fresh > 0 && (to == 0 || one.fresh <= to) {
			for e, err := range s.Read(ctx, one.Session, eventlog.Span{From: one.fresh, To: to, Backward: true}) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
		seqs := slices.DeleteFunc(slices.Clone(one.seqs), func(seq int64) bool {
			return one.fresh > 0 && seq >= one.fresh || to > 0 && seq > to
		})
		for rows := firstPageRows; len(seqs) > 0; rows = min(4*rows, maxPageRows) {
			n := min(rows, len(seqs))
			if !s.pickedPage(ctx, one, seqs[:n], yield) {
				return
			}
			seqs = seqs[n:]
		}
	}
}

// searched is a line and the seq it stands at.
type searched struct {
	seq  int64
	line []byte
}

// pickedPage yields the events of some seqs. Those that are gone were removed
// meanwhile.
func (s *Store) pickedPage(ctx context.Context, one *picked, seqs []int64, yield func(event.Event, error) bool) bool {
	var lines []searched
	err := s.read(ctx, func(c *conn) error {
		lines = lines[:0]
		for _, seq := range seqs {
			err := c.each(func(row []driver.Value) {
				line, _ := row[1].([]byte)
				lines = append(lines, searched{seq, line})
			}, 2, readSearched, one.key, seq)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return yield(event.Event{}, s.locate(one.Session, "events", 0, err)) && false
	}
	for _, l := range lines {
		e, err := s.parse(one.Session, l.seq, l.line)
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

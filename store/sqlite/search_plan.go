package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/internal/pages"
	"github.com/convlog/convlog/internal/searchtext"
)

const (
	findSearch = `SELECT 1 FROM sqlite_schema WHERE name = 'search'`
	searchRows = `SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC`
	// The plus stops SQLite from scanning the index of all events.
	freshSessions = `SELECT session, min(seq) FROM events WHERE key > ? GROUP BY +session`
	freshSession  = `SELECT session, min(seq) FROM events WHERE key > ? AND +session = ?`
	listActivity  = `SELECT s.key, s.id, s.first, e.timestamp FROM sessions s LEFT JOIN events e ON e.session = s.key AND e.seq = s.head`
	readActivity  = listActivity + ` WHERE s.key IN (SELECT value FROM json_each(?))`
	readPlanned   = `SELECT value, ` + shortLine + ` FROM json_each(?) CROSS JOIN events ON session = value >> 32 AND seq = value & 4294967295`
)

// searchPlan collects the events that a search must read.
type searchPlan struct {
	query    string // for the index
	indexed  bool   // the index is usable
	only     string // the session; "" is all
	to       int64  // the newest event of that session; 0 is no bound
	state    indexState
	sessions map[int64]*sessionPlan
}

// sessionPlan lists the events of one session that a search must read.
type sessionPlan struct {
	searchtext.Activity
	key, first int64
	scanFrom   int64     // read all events from this seq on; 0 is none
	seqs       []int64   // newest indexed matches before scanFrom, newest first
	rest       int64     // the newest indexed match that is not in seqs; 0 is none
	lines      []seqLine // of seqs, if the plan has few
}

const (
	// firstHits is the number of matches in the first part of a session. After so many,
	// the plan estimates the number of the others.
	firstHits = 128
	// partHits is the number of matches in every other part of a plan.
	partHits = 512
	// manyHits is the number of matches from which on a plan leaves them to the parts. A
	// query of the index takes as long as to read about a thousand matches.
	manyHits = 4096
)

// every returns how many events there are for each of the first matches.
func (one *sessionPlan) every() int64 {
	n := min(firstHits, len(one.seqs))
	return max((one.seqs[0]-one.seqs[n-1]+1)/int64(n), 1)
}

// build fills the plan in one transaction.
func (p *searchPlan) build(ctx context.Context, c *conn) error {
	p.sessions = map[int64]*sessionPlan{}
	return c.atOnce(func() error { return p.collect(ctx, c) })
}

func (p *searchPlan) collect(ctx context.Context, c *conn) error {
	key := int64(0)
	if p.only != "" {
		row := make([]driver.Value, 3)
		found, err := c.first(row, findSession, p.only)
		if err != nil || !found {
			return err
		}
		key, _ = row[0].(int64)
	}
	var err error
	if p.state, err = p.readState(c); err != nil {
		return err
	}
	if p.state.rules != indexRules {
		return p.addAll(c, key)
	}
	if err := p.queryIndex(ctx, c, key); err != nil {
		return err
	}
	if err := p.addUnindexed(c, key); err != nil {
		return err
	}
	if err := p.describe(c); err != nil {
		return err
	}
	return p.readFew(c)
}

// readState returns the index state. It is zero if there is no usable index.
func (p *searchPlan) readState(c *conn) (s indexState, err error) {
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

// addAll adds all events.
func (p *searchPlan) addAll(c *conn, key int64) error {
	query, args := listActivity, []driver.Value{}
	if key > 0 {
		query, args = readActivity, []driver.Value{fmt.Sprintf("[%d]", key)}
	}
	return c.each(func(row []driver.Value) { p.addActivity(row).scanFrom = 1 }, 4, query, args...)
}

// queryIndex adds the newest matches of each session in the index.
func (p *searchPlan) queryIndex(ctx context.Context, c *conn, key int64) error {
	from, to := int64(0), int64(1)<<62
	if key > 0 {
		from, _ = docOf(key, 0)
		to, _ = docOf(key+1, 0)
	}
	if key > 0 && p.to > 0 {
		to, _ = docOf(key, min(p.to, maxDocSeq))
	}
	for from <= to {
		full, err := p.queryNewest(ctx, c, from, to)
		if err != nil || full == nil {
			return err
		}
		to, _ = docOf(full.key, 0) // the row before it is of an older session
	}
	return nil
}

// queryNewest adds matches until a session is likely to have many more: it returns that
// session, or nil if it has added all matches.
func (p *searchPlan) queryNewest(ctx context.Context, c *conn, from, to int64) (full *sessionPlan, err error) {
	err = eachMatch(ctx, c, p.query, from, to, func(doc int64) bool {
		one := p.session(doc >> 32)
		seq := doc & maxDocSeq
		if len(one.seqs) == firstHits && seq > manyHits*one.every() {
			one.rest, full = seq, one
			return false
		}
		one.seqs = append(one.seqs, seq)
		return true
	})
	return full, err
}

// eachMatch calls f with the row id of each match in the index, the highest first, until
// f returns false.
func eachMatch(ctx context.Context, c *conn, query string, from, to int64, f func(doc int64) bool) error {
	rows, err := c.query(searchRows, query, from, to)
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
		if doc, _ := row[0].(int64); !f(doc) {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return finish(rows, err)
}

// addUnindexed adds the events that are not indexed yet.
func (p *searchPlan) addUnindexed(c *conn, key int64) error {
	query, args := freshSessions, []driver.Value{p.state.watermark}
	if key > 0 {
		query, args = freshSession, []driver.Value{p.state.watermark, key}
	}
	return c.each(func(row []driver.Value) {
		if session, ok := row[0].(int64); ok {
			p.session(session).scanFrom, _ = row[1].(int64)
		}
	}, 2, query, args...)
}

// describe reads the id and the last activity of each session in the plan.
func (p *searchPlan) describe(c *conn) error {
	if len(p.sessions) == 0 {
		return nil
	}
	keys, err := json.Marshal(slices.Collect(maps.Keys(p.sessions)))
	if err != nil {
		return err
	}
	return c.each(func(row []driver.Value) { p.addActivity(row) }, 4, readActivity, string(keys))
}

// readFew reads the lines of all matches with one statement, unless they are more than a
// page.
func (p *searchPlan) readFew(c *conn) error {
	var docs []int64
	for _, one := range p.sessions {
		if len(docs)+len(one.seqs) > pages.FirstRows {
			return nil
		}
		for _, seq := range one.seqs {
			doc, _ := docOf(one.key, seq)
			docs = append(docs, doc)
		}
	}
	list, err := json.Marshal(docs)
	if err != nil || len(docs) == 0 {
		return err
	}
	lines, full, err := readLines(c, nil, readPlanned, string(list))
	if err != nil || full {
		return err
	}
	for _, l := range lines {
		one := p.session(l.seq >> 32)
		one.lines = append(one.lines, seqLine{l.seq & maxDocSeq, l.line})
	}
	return nil
}

// addActivity adds a row of listActivity to the plan.
func (p *searchPlan) addActivity(row []driver.Value) *sessionPlan {
	key, _ := row[0].(int64)
	one := p.session(key)
	one.Session, _ = row[1].(string)
	one.first, _ = row[2].(int64)
	if micros, ok := row[3].(int64); ok {
		one.Last = time.UnixMicro(micros).UTC()
	}
	return one
}

func (p *searchPlan) session(key int64) *sessionPlan {
	one, ok := p.sessions[key]
	if !ok {
		one = &sessionPlan{key: key}
		p.sessions[key] = one
	}
	return one
}

// inOrder returns the plans in the order of a search, latest activity first. It drops
// events without a session.
func (p *searchPlan) inOrder() []*sessionPlan {
	var all []*sessionPlan
	for _, one := range p.sessions {
		if one.Session != "" {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *sessionPlan) int { return searchtext.ByActivity(a.Activity, b.Activity) })
	return all
}

// searchPart has matches of one session: a list of them, or a range of seqs in which the
// index has them.
type searchPart struct {
	plan     *searchPlan
	one      *sessionPlan
	seqs     []int64
	from, to int64 // 0 for a list
}

// parts yields the parts of one session after its first matches, newest first.
func (p *searchPlan) parts(one *sessionPlan) iter.Seq[searchPart] {
	return func(yield func(searchPart) bool) {
		for seqs := range slices.Chunk(one.seqs[min(firstHits, len(one.seqs)):], partHits) {
			if !yield(searchPart{one: one, seqs: seqs}) {
				return
			}
		}
		if one.rest == 0 {
			return
		}
		size := manyHits / 2 * one.every()
		for to := one.rest; to >= one.first; to -= size {
			if !yield(searchPart{plan: p, one: one, from: max(one.first, to-size+1), to: to}) {
				return
			}
		}
	}
}

// matches reads the seqs of the matches in the index, newest first. changed is true if
// rows have left the index since the plan was built.
func (part *searchPart) matches(ctx context.Context, c *conn) (seqs []int64, changed bool, err error) {
	err = c.atOnce(func() error {
		state, err := part.plan.readState(c)
		planned := part.plan.state
		changed = state.rules != planned.rules || state.erasures != planned.erasures || state.watermark < planned.watermark
		if err != nil || changed {
			return err
		}
		from, _ := docOf(part.one.key, part.from)
		to, _ := docOf(part.one.key, part.to)
		return eachMatch(ctx, c, part.plan.query, from, to, func(doc int64) bool {
			seqs = append(seqs, doc&maxDocSeq)
			return true
		})
	})
	return seqs, changed, err
}

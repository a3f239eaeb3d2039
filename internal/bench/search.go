//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
	"github.com/convlog/convlog/search"
)

var searchTrials = []trial{
	{
		rows: []row{
			searchRow("rare", "that 10 events have"),
			searchRow("common", "that most events have"),
			searchRow("none", "that no event has"),
		},
		measure: searchSQLite,
	},
	{
		rows: []row{{
			name:     "search/short",
			measured: "newest 20 hits of a word of two letters, which is not in the index",
			against:  "all hits of a word that most events have",
			unit:     nanoseconds, bar: atMost(1),
		}},
		measure: searchShort,
	},
	{
		rows: []row{
			{
				name:     "search/long",
				measured: "search of 100,000 events in one session for a word that one of 13 has, all hits with context",
				against:  "a query of an FTS5 table of their texts, joined with a table of their lines, with snippet(), newest first, same driver",
				unit:     nanoseconds, bar: atMost(1),
			},
			{
				name:     "search/first",
				measured: "the first 50 hits of it",
				against:  "all hits",
				unit:     nanoseconds, bar: atMost(0.1),
			},
		},
		measure: searchLong,
	},
	{
		rows: []row{{
			name:     "search/jsonl",
			measured: "search for a word that none of 100,000 events has, in one session",
			against:  "Read of all of them, payloads not decoded",
			unit:     nanoseconds, bar: atMost(2),
		}},
		measure: searchJSONL,
	},
}

func searchRow(name, which string) row {
	return row{
		name:     "search/" + name,
		measured: "search of 10,000 events in 20 sessions for a word " + which + ", all hits with context",
		against:  "a query of an FTS5 table of their texts, joined with a table of their lines, with snippet(), newest first, same driver",
		unit:     nanoseconds, bar: atMost(2),
	}
}

const (
	searched         = 10_000
	searchedSessions = 20
	rareWord         = "zyzzyva"
	commonWord       = "token"
	noWord           = "xylophone"
	frequentWord     = "marmoset" // that one of 13 events has
)

// searchable is a store to search, and a bare table of the same events.
type searchable struct {
	log    *eventlog.Log
	bare   *bareTexts
	counts map[string]int // number of hits
}

// newSearchable creates sessions, each with so many events.
func newSearchable(ctx context.Context, b *bench, sessions, events int) (*searchable, error) {
	log, _ := b.sqlite(unsynced)
	bare, err := openBareTexts(ctx, b.path(".db"))
	if err != nil {
		return nil, err
	}
	b.closes = append(b.closes, bare.close)
	s := &searchable{log: log, bare: bare, counts: map[string]int{}}
	for i := range sessions {
		if err := s.fill(ctx, b.name(), i, events); err != nil {
			return nil, err
		}
	}
	for _, word := range []string{rareWord, commonWord, noWord, frequentWord} {
		if s.counts[word], err = bare.count(ctx, word); err != nil {
			return nil, err
		}
	}
	return s, search.Index(ctx, log, false)
}

// fill creates a session of n events; every second session has the rare word.
func (s *searchable) fill(ctx context.Context, session string, i, n int) error {
	payloads := converse(seededWriter(i), n).payloads
	if i%2 == 0 {
		payloads[startLen-1] = event.Message{Role: event.System, Parts: []event.Part{event.Text("Say " + rareWord)}}
	}
	sayOften(payloads)
	if err := appendAll(ctx, s.log, session, newEvents(payloads), batchLen); err != nil {
		return err
	}
	return s.bare.insert(ctx, i, s.log.Read(ctx, session, eventlog.All()))
}

// sayOften adds the frequent word to one of 13 payloads: to messages of people and models.
func sayOften(payloads []event.Payload) {
	due := 0
	for k, p := range payloads {
		due++
		m, ok := p.(event.Message)
		if ok && due >= 13 && (m.Role == event.User || m.Role == event.Assistant) {
			m.Parts = append(slices.Clip(m.Parts), event.Text(frequentWord))
			payloads[k], due = m, due-13
		}
	}
}

func searchSQLite(ctx context.Context, b *bench) ([]figure, error) {
	s, err := newSearchable(ctx, b, searchedSessions, searched/searchedSessions)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, word := range []string{rareWord, commonWord, noWord} {
		some, err := compare(ctx, b.sizes.rounds, tenTimes(s.ours(word, 0)), tenTimes(s.theirs(word)), samples.times)
		if err != nil {
			return nil, err
		}
		figures = append(figures, some...)
	}
	return figures, nil
}

func searchLong(ctx context.Context, b *bench) ([]figure, error) {
	s, err := newSearchable(ctx, b, 1, b.sizes.history)
	if err != nil {
		return nil, err
	}
	all := s.ours(frequentWord, 0)
	long, err := compare(ctx, b.sizes.rounds, all, s.theirs(frequentWord), samples.times)
	if err != nil {
		return nil, err
	}
	first, err := compare(ctx, b.sizes.rounds, tenTimes(s.ours(frequentWord, 50)), all, samples.times)
	return append(long, first...), err
}

// tenTimes is a side that runs ten times. One search takes less time than a garbage
// collection left over from before.
func tenTimes(one side) side {
	const times = 10
	return func(ctx context.Context) (sum float64, err error) {
		for range times {
			took, err := one(ctx)
			if err != nil {
				return 0, err
			}
			sum += took
		}
		return sum / times, nil
	}
}

func searchShort(ctx context.Context, b *bench) ([]figure, error) {
	s, err := newSearchable(ctx, b, searchedSessions, searched/searchedSessions)
	if err != nil {
		return nil, err
	}
	return compare(ctx, b.sizes.rounds, s.ours("if", 20), s.ours(commonWord, 0), samples.times)
}

// ours is a search of the log.
func (s *searchable) ours(word string, limit int) side {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := countHits(ctx, s.log, search.Query{Text: word, Limit: limit})
		took := float64(time.Since(start).Nanoseconds())
		if limit > 0 && n > limit {
			return 0, expectCount(n, limit)
		}
		if limit == 0 {
			err = errors.Join(err, expectCount(n, s.counts[word]))
		}
		return took, err
	}
}

func countHits(ctx context.Context, log *eventlog.Log, q search.Query) (n int, err error) {
	for hit, err := range search.Events(ctx, log, q) {
		if err != nil || len(hit.Matches) == 0 {
			return n, errors.Join(err, fmt.Errorf("hit %d of session %s", hit.Seq, hit.Session))
		}
		n++
	}
	return n, nil
}

func (s *searchable) theirs(word string) side {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		_, err := s.bare.search(ctx, word)
		return float64(time.Since(start).Nanoseconds()), err
	}
}

// bareTexts is a full-text table and a table of events, without a log.
type bareTexts struct{ *bareDB }

const (
	bareTextSchema = `CREATE VIRTUAL TABLE texts USING fts5(text)`
	bareTextInsert = `INSERT INTO texts (rowid, text) VALUES (?, ?)`
	bareTextSearch = `SELECT e.session, e.seq, e.type, e.timestamp, e.line, snippet(texts, 0, '[', ']', '…', 24)
		FROM texts JOIN events e ON e.key = texts.rowid WHERE texts MATCH ? ORDER BY texts.rowid DESC`
	bareTextCount = `SELECT count(*) FROM texts WHERE texts MATCH ?`
)

func openBareTexts(ctx context.Context, path string) (*bareTexts, error) {
	bare, err := openBare(ctx, path)
	if err != nil {
		return nil, err
	}
	if _, err := bare.db.ExecContext(ctx, bareTextSchema); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare bare texts: %w", err), bare.close())
	}
	return &bareTexts{bare}, nil
}

// insert inserts a session's events and their texts into the tables.
func (d *bareTexts) insert(ctx context.Context, session int, events func(func(event.Event, error) bool)) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for e, err := range events {
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		text, err := (&searchtext.Reader{}).Read(ctx, &e)
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		result, err := tx.StmtContext(ctx, d.bareDB.insert).ExecContext(ctx, session, e.Seq, e.ID.String(), string(e.Type), e.Timestamp.UnixMicro(), e.Line())
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		key, err := result.LastInsertId()
		if err == nil {
			_, err = tx.ExecContext(ctx, bareTextInsert, key, text)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// search reads all hits of a word.
func (d *bareTexts) search(ctx context.Context, word string) (n int, err error) {
	rows, err := d.db.QueryContext(ctx, bareTextSearch, `"`+word+`"`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var session, seq, timestamp int64
	var line sql.RawBytes
	var kind, snippet string
	for rows.Next() {
		if err := rows.Scan(&session, &seq, &kind, &timestamp, &line, &snippet); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

func (d *bareTexts) count(ctx context.Context, word string) (n int, err error) {
	err = d.db.QueryRowContext(ctx, bareTextCount, `"`+word+`"`).Scan(&n)
	return n, err
}

func searchJSONL(ctx context.Context, b *bench) ([]figure, error) {
	h, err := b.longJSONL(ctx)
	if err != nil {
		return nil, err
	}
	ours := func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := countHits(ctx, h.log, search.Query{Text: noWord})
		return float64(time.Since(start).Nanoseconds()), errors.Join(err, expectCount(n, 0))
	}
	return compare(ctx, b.sizes.rounds, ours, h.readAll(b.sizes.history), samples.times)
}

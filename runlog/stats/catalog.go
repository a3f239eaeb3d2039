package stats

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Catalog gives the summaries of sessions. It takes them from the catalog of the store
// (eventlog.Cataloger) if they are up to date there, and reads the other sessions. All
// methods may be called concurrently.
type Catalog struct {
	log    *eventlog.Log
	opts   CatalogOptions
	prices string

	mu   sync.Mutex
	rows []eventlog.CatalogRow // not in the store yet
	size int
}

// CatalogOptions configure a Catalog. The zero value summarizes all events, without
// estimates.
type CatalogOptions struct {
	Options
	// AnyDays accepts stored summaries with other Days and Prices, for callers that use
	// neither days nor estimates.
	AnyDays bool
	// Writable opens the store of the log for writing, for a log whose store is read-only.
	// Flush stores its rows there and closes it. Without Writable, Flush stores them in the
	// store of the log.
	Writable func(ctx context.Context) (eventlog.Store, error)
}

// catalogRules is the version of the summaries in rows. A change of a counted value, or
// of a member, is a new version.
const catalogRules = 5

// The bounds of rows, in bytes.
const (
	maxRow  = 64 << 10
	maxRows = 1 << 20 // that wait to be stored
)

// NewCatalog returns the catalog of a log. It uses the first CatalogOptions only.
func NewCatalog(log *eventlog.Log, opts ...CatalogOptions) *Catalog {
	c := &Catalog{log: log}
	if len(opts) > 0 {
		c.opts = opts[0]
	}
	if c.opts.Prices != nil {
		text, _ := json.Marshal(c.opts.Prices, json.Deterministic(true)) // a table has no value that JSON lacks
		sum := sha256.Sum256(text)
		c.prices = hex.EncodeToString(sum[:8])
	}
	return c
}

// Listed is a session of a listing.
type Listed struct {
	Session string
	Head    event.Head
}

// Load returns the summaries of sessions, in their order, each with the error of reading the
// session in Err. It reads sessions in parallel;
// lists of some hundreds are quick and small. The error is ctx's.
func (c *Catalog) Load(ctx context.Context, sessions []Listed) ([]Summary, error) {
	stored, keeps := c.stored(ctx, sessions)
	all := make([]Summary, len(sessions))
	var readers sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, s := range sessions {
		free <- struct{}{}
		readers.Go(func() {
			defer func() { <-free }()
			if ctx.Err() == nil {
				summary, err := c.load(ctx, s, stored[s.Session], keeps)
				summary.Err = err
				all[i] = summary
			}
		})
	}
	readers.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if c.waiting() > maxRows {
		c.Flush(ctx)
	}
	return all, nil
}

// stored returns the stored rows. keeps is false if the store has no catalog.
func (c *Catalog) stored(ctx context.Context, sessions []Listed) (rows map[string][]byte, keeps bool) {
	store, ok := eventlog.As[eventlog.Cataloger](c.log.Store())
	if !ok {
		return nil, false
	}
	ids := make([]string, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i].Session
	}
	rows, err := store.CatalogRows(ctx, ids)
	if err != nil {
		return nil, !errors.Is(err, eventlog.ErrUnsupported) // the sessions themselves are read
	}
	return rows, true
}

// load decodes the row of a session, or reads the session. keeps says that the store keeps
// rows.
func (c *Catalog) load(ctx context.Context, s Listed, row []byte, keeps bool) (Summary, error) {
	if len(row) > 0 {
		if x, ok := c.decode(s, row); ok {
			return x, nil
		}
	}
	var at uint64
	if keeps {
		at, keeps = c.version(ctx, s.Session)
	}
	x, listed, err := loadSummary(ctx, c.log, s.Session, c.opts.Options)
	if err == nil && keeps && c.keepable() && c.within(&x) == allEvents {
		listed.At = at
		c.keep(s.Session, at, &listed, &x)
	}
	return x, err
}

// keepable reports whether summaries with the options can be stored: rows have neither
// hours nor a selection of models.
func (c *Catalog) keepable() bool { return c.opts.Model == nil && !c.opts.Hours }

// version returns the version of a session before it is read. ok is false if it is
// unknown.
func (c *Catalog) version(ctx context.Context, session string) (at uint64, ok bool) {
	versioner, ok := eventlog.As[eventlog.Versioner](c.log.Store())
	if !ok {
		return 0, false
	}
	at, err := versioner.Version(ctx, session)
	return at, err == nil
}

// part is the part of a session's events that is in the time that counts.
type part int

const (
	someEvents part = iota
	noEvents
	allEvents
)

func (c *Catalog) within(x *Summary) part {
	o := &c.opts
	switch {
	case !x.First.Before(o.Since) && (o.Until.IsZero() || x.Last.Before(o.Until)):
		return allEvents
	case x.Last.Before(o.Since) || !o.Until.IsZero() && !x.First.Before(o.Until):
		return noEvents
	}
	return someEvents
}

// catalogRow is the second line of a row of the catalog as JSON. The row begins with its checksum,
// and the first line is a listedRow.
type catalogRow struct {
	Rules string `json:"rules"`
	// Head is the hash of the newest event of the summary.
	Head string `json:"head"`
	// Zone says how the time zone divides the time from First to Last, and Prices is a
	// digest of the prices of the estimates.
	Zone    string `json:"zone,omitzero"`
	Prices  string `json:"prices,omitzero"`
	Summary `json:",inline"`
}

func rowRules() string { return fmt.Sprintf("%d.%d", catalogRules, projection.Usage().Version) }

// decode returns the summary of a row, if it is the summary that reading the session
// would give.
func (c *Catalog) decode(s Listed, data []byte) (Summary, bool) {
	var row catalogRow
	_, summary, ok := splitRow(s.Session, data)
	if !ok || json.Unmarshal(summary, &row) != nil || row.Rules != rowRules() || row.Head != s.Head.Hash.String() {
		return Summary{}, false
	}
	if !c.opts.AnyDays && (row.Prices != c.prices || row.Zone == "" || row.Zone != c.zone(&row.Summary)) {
		return Summary{}, false
	}
	switch within := c.within(&row.Summary); {
	case within == noEvents:
		row.Stats = Stats{}
	case within == someEvents || !c.keepable():
		return Summary{}, false
	}
	return row.Summary, true
}

// splitRow returns the two lines of a row as JSON: the part for listings, and the summary. ok is
// false if the row is damaged.
func splitRow(session string, data []byte) (listed, summary []byte, ok bool) {
	if len(data) < sumLen || string(data[:sumLen]) != rowSum(session, data[sumLen:]) {
		return nil, nil, false
	}
	return bytes.Cut(data[sumLen:], []byte{'\n'})
}

// keep adds a row to the rows that wait.
func (c *Catalog) keep(session string, at uint64, listed *listedRow, x *Summary) {
	row := catalogRow{Rules: rowRules(), Head: listed.Head.Hash.String(), Zone: c.zone(x), Prices: c.prices, Summary: *x}
	listed.Rules = row.Rules
	begin, err := json.Marshal(listed, json.Deterministic(true))
	if err != nil {
		return
	}
	rest, err := json.Marshal(row, json.Deterministic(true))
	body := slices.Concat(begin, []byte{'\n'}, rest)
	if err != nil || len(body) > maxRow {
		return
	}
	data := append([]byte(rowSum(session, body)), body...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, eventlog.CatalogRow{Session: session, At: at, Data: data})
	c.size += len(data)
}

// sumLen is the length of a checksum in a row.
const sumLen = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rowSum is the checksum of the row of a session.
func rowSum(session string, body []byte) string {
	sum := crc32.Checksum([]byte(session), castagnoli)
	return fmt.Sprintf("%08x", crc32.Update(sum, castagnoli, body))
}

// zone describes the offsets of the time zone from x.First to x.Last: equal texts mean
// equal days. It is empty if there are too many changes.
func (c *Catalog) zone(x *Summary) string {
	const most = 100 // changes in a session of some decades
	days := c.opts.Days
	if days == nil {
		days = time.UTC
	}
	var text []byte
	at := x.First.In(days)
	for range most {
		_, offset := at.Zone()
		text = strconv.AppendInt(text, int64(offset), 10)
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(x.Last) {
			return string(text)
		}
		text = fmt.Appendf(text, " %d ", end.Unix())
		at = end
	}
	return ""
}

func (c *Catalog) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// Flush stores the summaries that Load has read since, so that the next reader finds
// them. It waits at most 0.1 s for the store lock. It returns no error: the next reader
// reads a session whose summary is not stored.
func (c *Catalog) Flush(ctx context.Context) {
	c.mu.Lock()
	rows := c.rows
	c.rows, c.size = nil, 0
	c.mu.Unlock()
	if len(rows) == 0 {
		return
	}
	_ = c.put(ctx, rows) // as the comment says
}

func (c *Catalog) put(ctx context.Context, rows []eventlog.CatalogRow) error {
	if c.opts.Writable == nil {
		return putRows(ctx, c.log.Store(), rows)
	}
	store, err := c.opts.Writable(ctx)
	if err != nil {
		return err
	}
	return errors.Join(putRows(ctx, store, rows), store.Close())
}

// lockTime bounds the wait of putRows for the store lock.
const lockTime = 100 * time.Millisecond

// putRows stores rows of the catalog in a store, under its lock.
func putRows(ctx context.Context, store eventlog.Store, rows []eventlog.CatalogRow) error {
	catalog, ok := eventlog.As[eventlog.Cataloger](store)
	locker, ok2 := eventlog.As[eventlog.Locker](store)
	if !ok || !ok2 {
		return eventlog.ErrUnsupported
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(lockTime, cancel)
	ctx, unlock, err := locker.Lock(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	if !late.Stop() {
		return context.Cause(ctx)
	}
	return catalog.PutCatalogRows(ctx, rows)
}

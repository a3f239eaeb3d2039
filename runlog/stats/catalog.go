package stats

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
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
const catalogRules = 8

// The bounds of rows, in bytes.
const (
	maxRow  = 64 << 10
	maxRows = 8 << 20 // that wait to be stored: a store may replace a file for each row
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

// Load returns the summary of a session with the head.
func (c *Catalog) Load(ctx context.Context, session string, head event.Head) (x Summary, err error) {
	err = c.Each(ctx, 1, func(int) (string, event.Head) { return session, head }, func(_ int, s *Summary) { x = *s })
	return x, cmp.Or(err, x.Err)
}

// Each calls use with the index and the summary of each of n sessions, one after the other, in the order
// of the catalog; at returns the id and the head of a session. The error of reading a session is in Err.
// Each reads sessions in parallel. The error is ctx's.
func (c *Catalog) Each(ctx context.Context, n int, at func(i int) (session string, head event.Head), use func(i int, s *Summary)) error {
	for part := range c.parts(n, at) {
		stored, keeps := c.stored(ctx, at, part)
		all := make([]Summary, len(part))
		inParallel(len(part), func(i int) {
			if ctx.Err() == nil {
				session, head := at(part[i])
				summary, err := c.load(ctx, session, head, stored[session], keeps)
				summary.Err = err
				all[i] = summary
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for i := range all {
			use(part[i], &all[i])
		}
		if c.waiting() > maxRows {
			c.Flush(ctx)
		}
	}
	return nil
}

// inParallel calls f with the numbers below n.
func inParallel(n int, f func(i int)) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				f(i)
			}
		})
	}
	workers.Wait()
}

// grouper is a store that keeps the rows of many sessions in one file.
type grouper interface {
	CatalogGroup(session string) uint8
}

// partLen is the least number of sessions in a part.
const partLen = 256

// parts yields the indices of sessions in parts whose rows are read together.
func (c *Catalog) parts(n int, at func(i int) (string, event.Head)) iter.Seq[[]int] {
	store, ok := eventlog.As[grouper](c.log.Store())
	var groups [1 << 8][]int
	for i := range n {
		group := uint8(i / partLen)
		if ok {
			session, _ := at(i)
			group = store.CatalogGroup(session)
		}
		groups[group] = append(groups[group], i)
	}
	return func(yield func([]int) bool) {
		var part []int
		for _, group := range groups {
			if part = append(part, group...); len(part) >= partLen {
				if !yield(part) {
					return
				}
				part = nil
			}
		}
		if len(part) > 0 {
			yield(part)
		}
	}
}

// stored returns the stored rows of a part of sessions. keeps is false if the store has no catalog.
func (c *Catalog) stored(ctx context.Context, at func(i int) (string, event.Head), part []int) (rows map[string][]byte, keeps bool) {
	store, ok := eventlog.As[eventlog.Cataloger](c.log.Store())
	if !ok {
		return nil, false
	}
	ids := make([]string, len(part))
	for i, n := range part {
		ids[i], _ = at(n)
	}
	rows, err := store.CatalogRows(ctx, ids)
	if err != nil {
		return nil, !errors.Is(err, eventlog.ErrUnsupported) // the sessions themselves are read
	}
	return rows, true
}

// load decodes the row of a session, or reads the session. keeps says that the store keeps
// rows.
func (c *Catalog) load(ctx context.Context, session string, head event.Head, row []byte, keeps bool) (Summary, error) {
	if len(row) > 0 {
		if x, ok := c.decode(session, head, row); ok {
			return x, nil
		}
	}
	var at uint64
	if keeps {
		at, keeps = c.version(ctx, session)
	}
	x, listed, err := loadSummary(ctx, c.log, session, c.opts.Options)
	if err == nil && keeps && c.keepable() && c.within(&x) == allEvents {
		listed.At = at
		c.keep(session, at, &listed, &x)
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

// A row of the catalog is its checksum, the rules, the head, the part for listings after its
// length (listedRow), and:
//   - the zone: how the time zone divides the time from First to Last
//   - the prices: a digest of the prices of the estimates
//   - the summary
func rowRules() string { return fmt.Sprintf("%d.%d", catalogRules, projection.Usage().Version) }

// openRow returns the head and the part for listings of a row, and the rest to read. ok is false if
// the row is damaged, or of other rules.
func openRow(session string, data []byte) (head event.Head, listed []byte, rest rowBytes, ok bool) {
	if len(data) < sumLen || binary.LittleEndian.Uint32(data) != rowSum(session, data[sumLen:]) {
		return head, nil, rest, false
	}
	rest = rowBytes{b: data[sumLen:], reads: true}
	ok = string(rest.field(nil)) == rules
	rest.head(&head)
	listed = rest.field(nil)
	return head, listed, rest, ok && !rest.failed
}

var rules = rowRules()

// decode returns the summary of a row, if it is the summary that reading the session
// would give.
func (c *Catalog) decode(session string, head event.Head, data []byte) (x Summary, ok bool) {
	of, _, rest, ok := openRow(session, data)
	if !ok || of.Hash != head.Hash {
		return Summary{}, false
	}
	return c.decodeSummary(rest)
}

// decodeSummary decodes the summary of a row, if it is of the options.
func (c *Catalog) decodeSummary(rest rowBytes) (x Summary, ok bool) {
	var zone, prices string
	rest.text(&zone)
	rest.text(&prices)
	rest.summary(&x)
	if rest.failed || !c.opts.AnyDays && (prices != c.prices || zone == "" || zone != c.zone(&x)) {
		return Summary{}, false
	}
	switch within := c.within(&x); {
	case within == noEvents:
		x.Stats = Stats{}
	case within == someEvents || !c.keepable():
		return Summary{}, false
	}
	return x, true
}

// keep adds a row to the rows that wait.
func (c *Catalog) keep(session string, at uint64, listed *listedRow, x *Summary) {
	var begin, body rowBytes
	begin.listed(listed)
	ruled, zone, prices := rules, c.zone(x), c.prices
	body.text(&ruled)
	body.head(&listed.Head)
	body.field(begin.b)
	body.text(&zone)
	body.text(&prices)
	body.summary(x)
	if len(body.b) > maxRow {
		return
	}
	data := append(binary.LittleEndian.AppendUint32(nil, rowSum(session, body.b)), body.b...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, eventlog.CatalogRow{Session: session, At: at, Data: data})
	c.size += len(data)
}

// sumLen is the length of the checksum of a row.
const sumLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rowSum is the checksum of the row of a session.
func rowSum(session string, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(session), castagnoli), castagnoli, body)
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

package stats

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sealed"
)

// knownLister is a store that lists sessions from their rows of the catalog.
type knownLister interface {
	ListKnown(ctx context.Context, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) iter.Seq2[eventlog.SessionInfo, error]
}

// Listed is a session of Catalog.Sessions, with what its row of the catalog has.
type Listed struct {
	eventlog.SessionInfo
	// Name is the name, as Catalog.Names finds it, if Named is true. It may be empty.
	Name  string
	Named bool
	// Sum is the summary; nil if the row has none with the options of the catalog.
	Sum *Summary
}

// Sessions is Log.Sessions, and reads no event of a session whose row is up to date
// (eventlog.SessionInfo.Known). The order of the sessions is not defined. Without sums, Listed.Sum
// is nil, which takes less time.
func (c *Catalog) Sessions(ctx context.Context, sums bool) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		ahead := rowsAhead{catalog: c, sums: sums && c.keepable(), rows: map[string]rowAhead{}}
		sessions := c.log.Sessions(ctx)
		if store, ok := eventlog.As[knownLister](c.log.Store()); ok {
			sessions = store.ListKnown(ctx, ahead.known)
		}
		for info, err := range sessions {
			if !yield(ahead.take(info), err) {
				return
			}
		}
	}
}

// rowsAhead are the sessions whose rows the store has read and not yielded yet. They are few.
type rowsAhead struct {
	catalog *Catalog
	sums    bool

	mu   sync.Mutex
	rows map[string]rowAhead
}

type rowAhead struct {
	name  string
	named bool
	sum   *Summary
}

// known describes a session by its row, if the row is up to date.
func (x *rowsAhead) known(row eventlog.CatalogRow) (info eventlog.SessionInfo, ok bool) {
	head, part, rest, ok := openRow(row.Session, row.Data)
	if !ok {
		return info, false
	}
	l, ok := decodeListed(head, part)
	if !ok || l.At != row.At || l.First == nil {
		return info, false
	}
	ahead := rowAhead{name: l.Name, named: l.Named}
	if x.sums {
		if s, ok := x.catalog.decodeSummary(rest); ok {
			ahead.sum = &s
		}
	}
	x.mu.Lock()
	x.rows[row.Session] = ahead
	x.mu.Unlock()
	return l.info(row.Session), true
}

// take removes and returns a session. A session that is listed without its row has nothing of it.
func (x *rowsAhead) take(info eventlog.SessionInfo) Listed {
	x.mu.Lock()
	row := x.rows[info.ID]
	delete(x.rows, info.ID)
	x.mu.Unlock()
	if info.Known.IsZero() {
		row = rowAhead{}
	}
	return Listed{info, row.name, row.named, row.sum}
}

// listedRow is the part of a row that a listing shows.
type listedRow struct {
	At    uint64 // the version of the session
	Head  event.Head
	Last  time.Time
	Bytes int64
	First *listedEvent // nil if the row cannot describe it
	Name  string
	Named bool // Name is known
}

// listedEvent is the first event of a session.
type listedEvent struct {
	Seq            int64
	Type           event.Type
	Time           time.Time
	Metadata, Data jsontext.Value
}

// info describes a session.
func (l *listedRow) info(session string) eventlog.SessionInfo {
	first := l.First
	info := eventlog.SessionInfo{
		ID: session, Bytes: l.Bytes, Known: l.Head,
		First: event.Event{Seq: first.Seq, SessionID: session, Type: first.Type, Timestamp: first.Time, Metadata: first.Metadata, Data: first.Data},
		Last:  event.Event{Seq: l.Head.Seq, SessionID: session, Timestamp: l.Last},
	}
	if first.Type == event.SessionStarted {
		sealed.Remember(&info.First)
		_, _ = event.DecodeKept[event.Session](&info.First) // the store calls known in parallel, and callers decode it one by one
	}
	return info
}

// decodeListed decodes the part of a row that a listing shows.
func decodeListed(head event.Head, part []byte) (l listedRow, ok bool) {
	r := rowBytes{b: part, reads: true}
	r.listed(&l)
	l.Head = head
	return l, !r.failed
}

// Names calls use with the index and the name of each of n sessions that the catalog knows: the title in
// the newest events, else the first text in the oldest ones, as a listing finds them that reads
// NameEvents events at each end. It reads no session.
func (c *Catalog) Names(ctx context.Context, n int, at func(i int) (session string, head event.Head), use func(i int, name string)) {
	for part := range c.parts(n, at) {
		rows, _ := c.stored(ctx, at, part)
		for _, i := range part {
			session, newest := at(i)
			head, part, _, ok := openRow(session, rows[session])
			if !ok || head != newest {
				continue
			}
			if l, ok := decodeListed(head, part); ok && l.Named {
				use(i, l.Name)
			}
		}
	}
}

// nameEvents is how many events at each end of a session give its name.
const nameEvents = 32

// namer finds the name of a session while its events are read.
type namer struct {
	n       int
	early   string // the newest title in the first nameEvents events
	text    string // the first text in them
	title   string // the newest title
	titled  int    // its number, from 1
	spilled bool   // an event has its data elsewhere: a listing does not see it
}

// add reads the next event of the session.
func (x *namer) add(e *event.Event) {
	x.n++
	if _, _, away := e.Spilled(); away {
		x.spilled = true
	}
	if s, ok, err := event.Decode[event.Session](e); ok && err == nil {
		if title := oneLine(s.Title); title != "" {
			x.title, x.titled = title, x.n
			if x.n <= nameEvents {
				x.early = title
			}
		}
	}
	if x.n <= nameEvents && x.text == "" {
		x.text = oneLine(InputText(e))
	}
}

// name is the name; ok is false if a listing may find another one.
func (x *namer) name() (string, bool) {
	if x.titled > max(x.n-nameEvents, 0) {
		return x.title, !x.spilled
	}
	return cmp.Or(x.early, x.text), !x.spilled
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// listedOf copies the first event of a session for its row; nil if it was redacted or its data is
// elsewhere.
func listedOf(e *event.Event) *listedEvent {
	if _, _, away := e.Spilled(); away || e.Redacted() {
		return nil
	}
	return &listedEvent{Seq: e.Seq, Type: e.Type, Time: e.Timestamp, Metadata: slices.Clone(e.Metadata), Data: slices.Clone(e.Data)}
}

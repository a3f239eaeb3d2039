package runlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/projection"
)

// ErrBadLedger means that a line of a ledger file is not an entry.
var ErrBadLedger = errors.New("not a ledger file")

// LedgerEntry is a line of a ledger: the cost of one event. A later piece of a
// model's answer corrects the usage of earlier pieces, so an entry can have negative
// tokens. The sums are right.
type LedgerEntry struct {
	SessionID string      `json:"session_id"`
	Seq       int64       `json:"seq"`
	EventID   ulid.ULID   `json:"event_id"`
	Time      time.Time   `json:"time"`
	TurnID    ulid.ULID   `json:"turn_id,omitzero"`
	Model     string      `json:"model,omitzero"`
	Agent     string      `json:"agent,omitzero"`
	Cost      event.Cost  `json:"cost,omitzero"`
	Usage     event.Usage `json:"usage,omitzero"`
}

// Ledger is an append-only file of costs, with a LedgerEntry a line. It may be used
// concurrently. Only one process at a time may have it open.
type Ledger struct {
	name string

	mu   sync.Mutex
	file *os.File
	has  map[ulid.ULID]bool // the events that have an entry
}

// OpenLedger opens the ledger file at path, or creates it with mode 0600.
// accounting_flushed events refer to it by its base name. A torn last line is
// truncated. The error is ErrBadLedger if a line is not an entry.
func OpenLedger(path string) (*Ledger, error) {
	f, err := regular.Open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l := &Ledger{name: filepath.Base(path), file: f, has: map[ulid.ULID]bool{}}
	if err := l.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), f.Close())
	}
	return l, nil
}

// scan reads which events have an entry.
func (l *Ledger) scan() error {
	in := bufio.NewReader(l.file)
	var end int64
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				return l.file.Truncate(end)
			}
			return nil
		}
		if err != nil {
			return err
		}
		var e LedgerEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrBadLedger, number, err)
		}
		if e.SessionID == "" || e.EventID.IsZero() {
			return fmt.Errorf("%w: line %d has no session_id or event_id", ErrBadLedger, number)
		}
		l.has[e.EventID] = true
		end += int64(len(line))
	}
}

// Close closes the file.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// Flush appends the new costs of a session's own events to the ledger, and then
// appends a durable accounting_flushed event to the session. After a crash between
// the two, the next Flush does not write the entries again. Without new costs it does
// nothing, and flushed is false.
func (l *Ledger) Flush(ctx context.Context, log *eventlog.Log, session string) (flush event.AccountingFlush, flushed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		flush, flushed, err = l.flush(ctx, log, session)
		if !errors.Is(err, eventlog.ErrConflict) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("flush accounting of session %q: %w", session, err)
	}
	return flush, flushed, err
}

func (l *Ledger) flush(ctx context.Context, log *eventlog.Log, session string) (event.AccountingFlush, bool, error) {
	d, err := l.due(ctx, log, session)
	if err != nil || len(d.entries) == 0 {
		return event.AccountingFlush{}, false, err
	}
	flush := event.AccountingFlush{Ledger: l.name, Through: d.head.Seq}
	var lines []byte
	for i := range d.entries {
		entry, err := json.Marshal(&d.entries[i], json.Deterministic(true))
		if err != nil {
			return flush, false, err
		}
		flush.Total = flush.Total.Add(d.entries[i].Cost)
		flush.Entries = append(flush.Entries, jsontext.Value(entry))
		if !l.has[d.entries[i].EventID] {
			lines = append(append(lines, entry...), '\n')
		}
	}
	e := event.New(flush)
	if err := l.write(lines, d.entries); err != nil {
		return flush, false, err
	}
	_, err = log.Append(ctx, session, eventlog.At(d.head).Durable(), e)
	return flush, err == nil, err
}

// write appends lines to the file and syncs it.
func (l *Ledger) write(lines []byte, entries []LedgerEntry) error {
	if len(lines) == 0 {
		return nil
	}
	end, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(lines); err != nil {
		return errors.Join(err, l.file.Truncate(end))
	}
	if err := l.file.Sync(); err != nil {
		return errors.Join(err, l.file.Truncate(end))
	}
	for i := range entries {
		l.has[entries[i].EventID] = true
	}
	return nil
}

// due is the costs of a session without an accounting_flushed event for this ledger.
type due struct {
	entries []LedgerEntry
	head    event.Head
}

func (l *Ledger) due(ctx context.Context, log *eventlog.Log, session string) (d due, err error) {
	var m projection.Meter
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return d, err
		}
		e := e.Effective()
		inherited := e.SessionID != session || e.Inherited()
		if err := m.Read(e, inherited, func(c projection.Charge) { d.add(e, c) }); err != nil {
			return d, err
		}
		d.head = e.Head()
		if e.Type.Name() == event.AccountingFlushed && !inherited {
			if err := d.flushed(e, l.name); err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

func (d *due) add(e *event.Event, c projection.Charge) {
	d.entries = append(d.entries, LedgerEntry{SessionID: e.SessionID, Seq: e.Seq, EventID: e.ID, Time: e.Timestamp, TurnID: c.Turn,
		Model: c.Model, Agent: c.Agent, Cost: c.Cost, Usage: c.Usage})
}

// flushed removes the entries that an earlier flush covers.
func (d *due) flushed(e *event.Event, name string) error {
	p, err := event.DecodeKept[event.AccountingFlush](e)
	if err != nil || p.Ledger != name {
		return err
	}
	n := 0
	for n < len(d.entries) && d.entries[n].Seq <= p.Through {
		n++
	}
	d.entries = d.entries[n:]
	return nil
}

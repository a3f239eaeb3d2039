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
	"github.com/convlog/convlog/projection"
)

// ErrBadLedger: a line of a ledger file is not an entry.
var ErrBadLedger = errors.New("not a ledger")

// LedgerEntry is a line of a ledger: what one event of a session cost. A later
// piece of a model's answer corrects the tokens before it, so an entry may take
// some away; sums are right.
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

// Ledger is a file that accounts for what sessions spend: a LedgerEntry a line,
// only ever appended to. It may be used concurrently; of several processes, one
// at a time may have it open.
type Ledger struct {
	name string

	mu   sync.Mutex
	file *os.File
	has  map[ulid.ULID]bool // the events that have an entry
}

// OpenLedger opens the ledger file at path, or creates it, mode 0600. Its base
// name is the name that accounting_flushed events give it. What an unfinished
// write left at the end is cut off; a line that is no entry is ErrBadLedger.
func OpenLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l := &Ledger{name: filepath.Base(path), file: f, has: map[ulid.ULID]bool{}}
	if err := l.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), f.Close())
	}
	return l, nil
}

// scan notes what the file accounts for.
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
			return fmt.Errorf("%w: line %d names no event", ErrBadLedger, number)
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

// Flush writes what a session itself has spent since the last flush to the
// ledger, and then appends the accounting_flushed event that says so, durably.
// Both happen once for each entry, whatever was interrupted: entries that the
// file has already are not written again. With nothing new it does nothing, and
// flushed is false.
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

// write appends lines to the file and syncs it, which has the entries then.
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

// due is what a session has not accounted for.
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

// flushed drops what an earlier flush to the ledger accounted for.
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

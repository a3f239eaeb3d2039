package sink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// ErrBadLedger means that a line of a ledger file is not an entry. Restore the file.
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
// concurrently. Several Ledgers, also of several processes, may share one file: a lock
// of the file (flock) keeps their writes apart, so the file must not be on a network
// file system. A file that was moved away is created anew.
type Ledger struct {
	path string

	lock chan struct{} // holds the ledger while it is full
	file *ledgerFile   // nil after Close
}

// OpenLedger opens the ledger file at path, or creates it with mode 0600 and its folder,
// and reads it.
// accounting_flushed events refer to it by its base name. OpenLedger waits for the lock
// of the file until ctx ends, and truncates a torn last line. The error is ErrBadLedger
// if a line is not an entry.
func OpenLedger(ctx context.Context, path string) (*Ledger, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l := &Ledger{path: path, lock: make(chan struct{}, 1), file: new(ledgerFile)}
	if err := l.file.hold(ctx, path, func() error { return nil }); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), l.file.close())
	}
	return l, nil
}

// Close closes the file. It waits for a running Flush.
func (l *Ledger) Close() error {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	if l.file == nil {
		return nil
	}
	err := l.file.close()
	l.file = nil
	return err
}

// Flush appends the new costs of a session's own events to the ledger, and then
// appends a durable accounting_flushed event to the session. After a crash between
// the two, the next Flush does not write the entries again. Without new costs it does
// nothing, and flushed is false. Several flushes of one session, also by several
// processes, write each cost once. Every wait ends with ctx.
func (l *Ledger) Flush(ctx context.Context, log *eventlog.Log, session string) (flush event.AccountingFlush, flushed bool, err error) {
	return flushAccounting(ctx, log, session, filepath.Base(l.path), l.store)
}

// store appends the entries that the file lacks, and syncs it.
func (l *Ledger) store(ctx context.Context, entries []LedgerEntry) error {
	select {
	case l.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.lock }()
	if l.file == nil {
		return fmt.Errorf("ledger %s: %w", l.path, os.ErrClosed)
	}
	return l.file.hold(ctx, l.path, func() error { return l.file.add(entries) })
}

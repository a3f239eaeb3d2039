package lease

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// maxName is the length of the longest name, in bytes.
const maxName = 512

// errName is the error of a name that is empty or too long.
var errName = errors.New("the name of a lease has 1 to 512 bytes")

// Table has the leases that one open store holds. All methods may be called
// concurrently.
type Table struct {
	mu     sync.Mutex
	locks  locks
	held   map[slot]*lease
	closed bool
}

// slot is the place of a name among the locks: the first 62 bits of its hash. Two names
// with one slot would exclude each other. Among 10,000 names that happens once in
// 10^11 stores.
type slot int64

// locks excludes the holders of other tables. A Table calls one method at a time, and
// try only for a slot that it does not hold.
type locks interface {
	// try takes the lock of a slot, or returns false if another table holds it.
	try(slot) (bool, error)
	unlock(slot) error
	// held reports whether another table holds the lock of a slot.
	held(slot) (bool, error)
	// close releases all locks.
	close() error
}

func newTable(l locks) *Table { return &Table{locks: l, held: make(map[slot]*lease)} }

// Lease implements eventlog.Leaser.
func (t *Table) Lease(ctx context.Context, name string) (eventlog.Lease, error) {
	at, err := slotOf(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("lease %q: %w", name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.take(at); err != nil {
		return nil, fmt.Errorf("lease %q: %w", name, err)
	}
	l := &lease{table: t, at: at, name: name, lost: make(chan struct{})}
	t.held[at] = l
	return l, nil
}

// take takes the lock of a slot.
func (t *Table) take(at slot) error {
	if t.closed {
		return eventlog.ErrClosed
	}
	if t.held[at] != nil {
		return eventlog.ErrLeased
	}
	free, err := t.locks.try(at)
	if err == nil && !free {
		err = eventlog.ErrLeased
	}
	return err
}

// Leased implements eventlog.Leaser.
func (t *Table) Leased(ctx context.Context, name string) (bool, error) {
	at, err := slotOf(ctx, name)
	if err != nil {
		return false, fmt.Errorf("inspect lease %q: %w", name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false, fmt.Errorf("inspect lease %q: %w", name, eventlog.ErrClosed)
	}
	if t.held[at] != nil {
		return true, nil
	}
	held, err := t.locks.held(at)
	if err != nil {
		return false, fmt.Errorf("inspect lease %q: %w", name, err)
	}
	return held, nil
}

// Close ends all leases. Later calls return ErrClosed.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	for _, l := range t.held {
		close(l.lost)
	}
	clear(t.held)
	return t.locks.close()
}

// slotOf checks ctx and the name.
func slotOf(ctx context.Context, name string) (slot, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if name == "" || len(name) > maxName {
		return 0, fmt.Errorf("%w, not %d", errName, len(name))
	}
	sum := sha256.Sum256([]byte(name))
	return slot(binary.BigEndian.Uint64(sum[:]) >> 2), nil
}

// lease implements eventlog.Lease.
type lease struct {
	table *Table
	at    slot
	name  string
	lost  chan struct{}
}

// Lost implements eventlog.Lease.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release implements eventlog.Lease.
func (l *lease) Release() error {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	if l.table.held[l.at] != l {
		return nil // it has ended already
	}
	delete(l.table.held, l.at)
	close(l.lost)
	if err := l.table.locks.unlock(l.at); err != nil {
		return fmt.Errorf("release lease %q: %w", l.name, err)
	}
	return nil
}

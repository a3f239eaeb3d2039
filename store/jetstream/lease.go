package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// leaseSubject has the messages of leases. The sequence of the first message of a holder
// is the epoch of its lease.
const leaseSubject = "lease"

// maxLeaseName is the length of the longest name, in bytes.
const maxLeaseName = 512

var errLeaseName = errors.New("the name of a lease has 1 to 512 bytes")

// leases are the held leases of a store.
type leases struct {
	store *Store

	mu   sync.Mutex
	held map[*lease]struct{}
}

// lease implements eventlog.Lease.
type lease struct {
	record
	leases *leases
	once   sync.Once
	lost   chan struct{}
}

// Lease implements eventlog.Leaser.
func (s *Store) Lease(ctx context.Context, name string) (eventlog.Lease, error) {
	l, err := s.leases.take(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("lease %q: %w", name, err)
	}
	return l, nil
}

// Leased implements eventlog.Leaser.
func (s *Store) Leased(ctx context.Context, name string) (bool, error) {
	held, err := s.leases.isHeld(ctx, name)
	return held, wrap(fmt.Sprintf("inspect lease %q", name), err)
}

func checkLeaseName(name string) error {
	if name == "" || len(name) > maxLeaseName {
		return fmt.Errorf("%w, not %d", errLeaseName, len(name))
	}
	return nil
}

func (ls *leases) isHeld(ctx context.Context, name string) (bool, error) {
	if err := checkLeaseName(name); err != nil {
		return false, err
	}
	l, err := ls.store.reading(ctx)
	if l == nil || err != nil {
		return false, err
	}
	m, err := l.control.last(ctx, l.control.subject(leaseSubject, encodeName(name)))
	return m != nil, err
}

func (ls *leases) take(ctx context.Context, name string) (*lease, error) {
	if err := checkLeaseName(name); err != nil {
		return nil, err
	}
	y, err := ls.store.writable(ctx)
	if err != nil {
		return nil, err
	}
	if !ls.store.locks.enter() {
		return nil, eventlog.ErrClosed
	}
	defer ls.store.locks.takers.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ls.store.lifetime, stop)()
	l := &lease{leases: ls, lost: make(chan struct{})}
	err = l.record.store(ctx, y.control, y.control.subject(leaseSubject, encodeName(name)))
	if isCode(err, codeWrongSequence) {
		return nil, eventlog.ErrLeased
	}
	if err != nil {
		return nil, ls.store.failure(err)
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.held == nil {
		ls.held = make(map[*lease]struct{})
	}
	ls.held[l] = struct{}{}
	go func() {
		select {
		case <-l.expired:
			_ = l.Release()
		case <-l.ended:
		}
	}()
	return l, nil
}

// Lost implements eventlog.Lease.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release implements eventlog.Lease.
func (l *lease) Release() error {
	l.once.Do(func() {
		l.leases.mu.Lock()
		delete(l.leases.held, l)
		l.leases.mu.Unlock()
		close(l.lost)
		l.end()
	})
	return nil
}

// close ends all leases.
func (ls *leases) close() error {
	ls.mu.Lock()
	var held []*lease
	for l := range ls.held {
		held = append(held, l)
	}
	ls.mu.Unlock()
	for _, l := range held {
		_ = l.Release()
	}
	return nil
}

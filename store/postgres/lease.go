package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// A lease is a row with an owner and an end, by the clock of the server. Its epoch tells
// it from the leases of the same name before and after it. The owner is the number of an
// advisory lock (holder.go). A lease is held until its end, while that lock is held.
//
// No change of a lease is synced: a server that crashes ends all owners.
const (
	noSync = `set_config('synchronous_commit', 'off', true) = 'off'`
	// takeLease takes a lease that has ended, or whose owner is $4. It takes none on a
	// server that lacks the lock of the new owner.
	takeLease = `INSERT INTO leases (name, owner, expires) SELECT $1::bytea, $2::bigint, clock_timestamp() + $3::interval
		WHERE NOT pg_try_advisory_xact_lock_shared($2) AND ` + noSync + `
		ON CONFLICT (name) DO UPDATE SET owner = $2, epoch = DEFAULT, expires = clock_timestamp() + $3
		WHERE leases.expires <= clock_timestamp() OR leases.owner = $4 RETURNING epoch`
	releaseLease  = `DELETE FROM leases WHERE name = $1 AND epoch = $2 AND ` + noSync
	releaseLeases = `DELETE FROM leases WHERE owner = $1`
	// findLease finds the owner of a lease, and whether the owner's lock is gone. A standby
	// does not have the locks of its primary.
	findLease = `SELECT owner, CASE WHEN pg_is_in_recovery() THEN false ELSE pg_try_advisory_xact_lock_shared(owner) END
		FROM leases WHERE name = $1 AND expires > clock_timestamp()`
)

// maxLeaseName is the length of the longest name, in bytes.
const maxLeaseName = 512

// graceTime is how long a lease outlives the lock of its owner. The owner may be alive:
// in this time it learns that its connection broke, and ends the work under its leases.
const graceTime = time.Second

// maxTakes bounds the number of times that a lease is taken again because its row
// changed in between.
const maxTakes = 8

var (
	errLeaseName = errors.New("the name of a lease has 1 to 512 bytes")
	errNoHolder  = fmt.Errorf("%w: the connection that holds the leases broke", eventlog.ErrUnavailable)
)

// leases has the leases of an open store. All of them have the owner of one holder.
type leases struct {
	store   *Store
	opening chan struct{} // has an element while a holder connects, and after Close
	running sync.WaitGroup

	mu     sync.Mutex
	held   map[string]*lease
	holder *holder // nil if there is no connection
	former int64   // the owner of the last holder whose connection broke
	// dead has the owners whose lock is gone, with the time when this store saw it first.
	// An owner does not take its lock again.
	dead map[int64]time.Time
}

// lease implements eventlog.Lease.
type lease struct {
	leases *leases
	name   string
	epoch  int64
	since  time.Time
	until  time.Time // the end of the row is after it
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
func (s *Store) Leased(ctx context.Context, name string) (held bool, err error) {
	owner, dead, err := s.leases.find(ctx, name)
	return owner != 0 && !dead, wrap(fmt.Sprintf("inspect lease %q", name), err)
}

// find returns the owner of a lease; 0 if the lease has ended. dead reports that the
// lock of the owner has been gone for graceTime. find waits for the end of that time.
func (ls *leases) find(ctx context.Context, name string) (owner int64, dead bool, err error) {
	if err := checkLeaseName(name); err != nil {
		return 0, false, err
	}
	if _, err = ls.store.one(ctx, []any{&owner, &dead}, findLease, []byte(name)); dead && err == nil {
		err = ls.awaitGrace(ctx, owner)
	}
	return owner, dead, err
}

// awaitGrace waits until this store has known for graceTime that the lock of an owner is
// gone.
func (ls *leases) awaitGrace(ctx context.Context, owner int64) error {
	now := time.Now()
	ls.mu.Lock()
	for known, since := range ls.dead {
		if now.Sub(since) > graceTime+ls.store.options.LeaseTime { // its rows have ended
			delete(ls.dead, known)
		}
	}
	if ls.dead == nil {
		ls.dead = make(map[int64]time.Time)
	}
	since, seen := ls.dead[owner]
	if !seen {
		since = now
		ls.dead[owner] = now
	}
	ls.mu.Unlock()
	left := time.NewTimer(graceTime - now.Sub(since))
	defer left.Stop()
	select {
	case <-left.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-ls.store.lifetime.Done():
		return eventlog.ErrClosed
	}
}

func checkLeaseName(name string) error {
	if name == "" || len(name) > maxLeaseName {
		return fmt.Errorf("%w, not %d", errLeaseName, len(name))
	}
	return nil
}

func (ls *leases) take(ctx context.Context, name string) (*lease, error) {
	if err := checkLeaseName(name); err != nil {
		return nil, err
	}
	h, err := ls.connected(ctx)
	if err != nil {
		return nil, err
	}
	var former int64 // an owner whose lock is gone
	for range maxTakes {
		l := &lease{leases: ls, name: name, until: ls.end(), lost: make(chan struct{})}
		taken, err := ls.store.one(ctx, []any{&l.epoch}, takeLease, []byte(name), h.owner, ls.store.options.LeaseTime, former)
		if err != nil {
			return nil, err
		}
		if taken {
			return l, ls.add(l, h)
		}
		owner, dead, err := ls.find(ctx, name)
		if err != nil {
			return nil, err
		}
		if owner != 0 && !dead {
			return nil, eventlog.ErrLeased
		}
		former = owner
	}
	return nil, errNoHolder
}

// add adds a lease that was taken for a holder.
func (ls *leases) add(l *lease, h *holder) error {
	l.since = time.Now()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.store.lifetime.Err() != nil {
		return eventlog.ErrClosed // the owner has no lock any more
	}
	if ls.holder != h {
		return errNoHolder
	}
	if before := ls.held[l.name]; before != nil {
		before.end() // it has expired
	}
	ls.held[l.name] = l
	return nil
}

// end is the time until which a lease is safe that is taken or renewed now. It is before
// the end on the server, because the statement runs later.
func (ls *leases) end() time.Time { return time.Now().Add(ls.store.options.LeaseTime) }

// end ends a lease in this process. The caller has locked leases.mu.
func (l *lease) end() {
	if l.leases.held[l.name] == l {
		delete(l.leases.held, l.name)
		close(l.lost)
	}
}

// Lost implements eventlog.Lease.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release implements eventlog.Lease.
func (l *lease) Release() error {
	ls := l.leases
	ls.mu.Lock()
	held := ls.held[l.name] == l
	l.end()
	ls.mu.Unlock()
	if !held {
		return nil // it has ended already
	}
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	pool, err := ls.store.writable(ctx)
	if err == nil {
		_, err = pool.Exec(ctx, releaseLease, []byte(l.name), l.epoch)
		err = ls.store.failure(err)
	}
	return wrap(fmt.Sprintf("release lease %q", l.name), err)
}

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

// A lease is a message without a time to live. Its body names its holder: an open store
// that has leases, which renews one message for all of them. A lease is held while it
// exists and the message of its holder does.
const (
	leaseSubject  = "lease"
	holderSubject = "holder"
)

// maxLeaseName is the length of the longest name, in bytes.
const maxLeaseName = 512

var errLeaseName = errors.New("the name of a lease has 1 to 512 bytes")

// leases are the leases of an open store.
type leases struct {
	store  *Store
	making chan struct{} // has an element while a call makes the holder

	mu     sync.Mutex
	holder *holder // nil before the first lease
}

// lease implements eventlog.Lease.
type lease struct {
	leases *leases
	holder *holder
	name   string
	body   string // tells it from the leases of the same name before and after it
	at     uint64 // the sequence of its message

	once sync.Once
	lost chan struct{}
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
	y, err := ls.store.reading(ctx)
	if y == nil || err != nil {
		return false, err
	}
	m, err := y.control.last(ctx, y.control.subject(leaseSubject, encodeName(name)))
	if m == nil || err != nil {
		return false, err
	}
	id, err := y.control.holderOf(m)
	if err != nil {
		return false, err
	}
	return y.control.isHolder(ctx, id)
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
	h, err := ls.holding(ctx, y)
	if err != nil {
		return nil, err
	}
	l := &lease{leases: ls, holder: h, name: name, body: h.id + "." + newID(), lost: make(chan struct{})}
	if err := ls.add(l); err != nil {
		return nil, err
	}
	if err := l.store(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// add reserves the name of a lease in this store.
func (ls *leases) add(l *lease) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.holder.leases[l.name] != nil {
		return eventlog.ErrLeased
	}
	l.holder.leases[l.name] = l
	return nil
}

func (ls *leases) remove(l *lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(l.holder.leases, l.name)
}

// end ends a lease in this process. It is false if the lease has ended.
func (l *lease) end() (ended bool) {
	l.once.Do(func() {
		close(l.lost)
		ended = true
	})
	return ended
}

// store stores the message of a lease. If ctx ends or the server is silent before that is
// done, the lease is given back later.
func (l *lease) store(ctx context.Context) error {
	s := l.leases.store
	ctx, cancel := context.WithTimeoutCause(ctx, unlockTime, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, errSilent))
	defer cancel()
	result := make(chan error)
	s.locks.takers.Go(func() {
		err := l.put(s.lifetime)
		if err != nil {
			l.leases.remove(l)
		}
		select {
		case result <- err:
		case <-ctx.Done():
			if err == nil {
				l.giveBack()
			}
		}
	})
	select {
	case err := <-result:
		if err == nil && l.holder.isExpired() {
			err = fmt.Errorf("%w: it expired before the server answered", eventlog.ErrUnavailable)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.lifetime.Done():
		return eventlog.ErrClosed
	}
}

// put stores the message of a lease, unless a living holder has one. It replaces the
// message of a dead holder on the condition that it is still dead: the answer that it is
// may come from an old state.
func (l *lease) put(ctx context.Context) error {
	st := l.holder.stream
	subject, before, dead := l.subject(), uint64(0), ""
	for began := time.Now(); ; {
		m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte(l.body)}
		expectLast(m, before)
		var err error
		if dead == "" {
			l.at, err = st.publish(ctx, m)
		} else {
			l.at, err = st.publishAll(ctx, []*nats.Msg{st.guard(st.subject(holderSubject, dead), 0), m})
		}
		if !isCode(err, codeWrongSequence) {
			return st.store.failure(err)
		}
		other, err := st.last(ctx, subject)
		if other != nil && string(other.body) == l.body {
			l.at = other.at // it was sent again
			return nil
		}
		at := uint64(0)
		if other != nil && err == nil {
			at = other.at
			dead, err = l.deadHolder(ctx, other)
		} else {
			dead = ""
		}
		if err == nil && at <= before {
			err = st.pauseStale(ctx, began)
		}
		if err != nil {
			return err
		}
		before = at
	}
}

// deadHolder returns the holder of another message of the lease. A living one is ErrLeased.
// It is "" if this store has the message: it could not remove it.
func (l *lease) deadHolder(ctx context.Context, other *message) (id string, err error) {
	st := l.holder.stream
	id, err = st.holderOf(other)
	if err != nil || id == l.holder.id {
		return "", err
	}
	alive, err := st.isHolder(ctx, id)
	if alive {
		err = eventlog.ErrLeased
	}
	return id, err
}

func (l *lease) subject() string { return l.holder.stream.subject(leaseSubject, encodeName(l.name)) }

// erase removes the message of a lease.
func (l *lease) erase(ctx context.Context) error {
	return l.holder.stream.purge(ctx, l.subject(), l.at+1)
}

// giveBack removes the message of a lease. It tries until the store closes.
func (l *lease) giveBack() {
	lifetime := l.leases.store.lifetime
	for l.erase(lifetime) != nil && lifetime.Err() == nil {
		select {
		case <-time.After(resendPause):
		case <-lifetime.Done():
		}
	}
	l.leases.remove(l)
}

// Lost implements eventlog.Lease.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release implements eventlog.Lease. If the server is silent, it is ErrUnavailable, and the
// store goes on trying.
func (l *lease) Release() error {
	locks := &l.leases.store.locks
	if !l.end() || l.holder.isExpired() || !locks.enter() {
		return nil // it has ended, or Close ends it
	}
	defer locks.takers.Done()
	done := make(chan struct{})
	locks.takers.Go(func() {
		defer close(done)
		l.giveBack()
	})
	silent := time.NewTimer(unlockTime)
	defer silent.Stop()
	select {
	case <-done:
		return nil
	case <-silent.C:
		return fmt.Errorf("release lease %q: %w: %w", l.name, eventlog.ErrUnavailable, errSilent)
	}
}

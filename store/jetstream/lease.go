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
	at     uint64 // the sequence of its message; 0 if that is not known

	lost      chan struct{}
	ending    sync.Once
	releasing sync.Once
	removed   chan struct{} // closed when the name is free again in this store

	// The mutex of leases guards these.
	isHeld      bool // a call has returned it, and nobody has released it
	isAbandoned bool // no call waits for the answer of the server
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
	st, subject := y.control, y.control.subject(leaseSubject, encodeName(name))
	m, err := st.last(ctx, subject)
	for m != nil && err == nil {
		var id string
		if id, err = st.holderOf(m); err != nil {
			return false, err
		}
		if alive, err := st.isHolder(ctx, id); alive || err != nil {
			return alive, err
		}
		m, err = st.next(ctx, subject, m.at+1) // another holder may have taken it meanwhile
	}
	return false, err
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
	l := &lease{leases: ls, holder: h, name: name, body: h.id + "." + newID(), lost: make(chan struct{}), removed: make(chan struct{})}
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
	switch other := l.holder.leases[l.name]; {
	case other == nil:
		l.holder.leases[l.name] = l
		return nil
	case other.isAbandoned:
		return fmt.Errorf("%w: an earlier call has no answer yet", eventlog.ErrUnavailable)
	default:
		return eventlog.ErrLeased
	}
}

// remove makes the name of a lease free again in this store.
func (ls *leases) remove(l *lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.holder.leases[l.name] == l {
		delete(l.holder.leases, l.name)
		close(l.removed)
	}
}

func (ls *leases) mark(l *lease, held, abandoned bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.isHeld, l.isAbandoned = held, abandoned
}

// end ends a lease in this process.
func (l *lease) end() { l.ending.Do(func() { close(l.lost) }) }

// store stores the message of a lease. If ctx ends or the server is silent before that is
// done, or if it fails, the lease is given back later.
func (l *lease) store(ctx context.Context) error {
	s := l.leases.store
	ctx, cancel := context.WithTimeoutCause(ctx, unlockTime, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, errSilent))
	defer cancel()
	result := make(chan error, 1)
	s.locks.takers.Go(func() {
		err := l.put(s.lifetime)
		if errors.Is(err, eventlog.ErrLeased) {
			l.leases.remove(l)
		}
		result <- err
	})
	var err error
	answered := false
	select {
	case err = <-result:
		answered = true
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-s.lifetime.Done():
	}
	switch {
	case errors.Is(err, eventlog.ErrLeased):
		return err
	case s.lifetime.Err() != nil:
		return eventlog.ErrClosed // Close removes it
	case err == nil && l.holder.isExpired():
		return errLate
	case err == nil:
		l.leases.mark(l, true, false)
		return nil
	}
	l.leases.mark(l, false, true)
	s.locks.takers.Go(func() {
		if !answered {
			<-result
		}
		l.giveBack()
	})
	return err
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
			m.Header["Nats-Msg-Id"] = []string{l.body} // a late sending stores nothing after a release
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

// erase removes the message of a lease, if it has one.
func (l *lease) erase(ctx context.Context) error {
	st, at := l.holder.stream, l.at
	if at == 0 {
		newest, err := st.newest(ctx)
		if err != nil {
			return err
		}
		found, err := st.lastOf(ctx, []string{l.subject()}, newest)
		if m := found[l.subject()]; m == nil || string(m.body) != l.body {
			return err
		}
		at = found[l.subject()].at
	}
	return st.store.failure(st.purge(ctx, l.subject(), at+1))
}

// giveBack removes the message of a lease. It tries until that is done, the store closes,
// or the holder expires: then the lease is free.
func (l *lease) giveBack() {
	lifetime := l.leases.store.lifetime
	for {
		if err := l.erase(lifetime); err == nil || errors.Is(err, eventlog.ErrMoved) {
			l.leases.remove(l)
			return
		}
		select {
		case <-time.After(resendPause):
		case <-l.holder.expired:
			return
		case <-lifetime.Done():
			return
		}
	}
}

// Lost implements eventlog.Lease.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release implements eventlog.Lease. If the server is silent, it is ErrUnavailable, and the
// store goes on trying.
func (l *lease) Release() error {
	l.end()
	s := l.leases.store
	l.releasing.Do(func() {
		l.leases.mark(l, false, false)
		if s.locks.enter() { // Close removes it otherwise
			s.locks.takers.Go(l.giveBack)
			s.locks.takers.Done()
		}
	})
	silent := time.NewTimer(unlockTime)
	defer silent.Stop()
	select {
	case <-l.removed:
	case <-l.holder.expired:
	case <-s.unused:
	case <-silent.C:
		l.leases.mark(l, false, true)
		return fmt.Errorf("release lease %q: %w: %w", l.name, eventlog.ErrUnavailable, errSilent)
	}
	return nil
}

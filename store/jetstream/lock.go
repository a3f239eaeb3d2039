package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

// A lock is a message of the control stream with a time to live, which its holder renews.
// A holder of the shared lock stores its own message, then looks for the exclusive one. A
// holder of the exclusive lock stores the exclusive message, then waits until there is no
// shared one. So one of the two sees the other.
const (
	exclusiveSubject = "lock.exclusive"
	sharedSubject    = "lock.shared"
)

// lockKey is the key of a store's lock in a context.
type lockKey struct{ store *Store }

// locks are the held locks of a store.
type locks struct {
	store *Store

	mu     sync.Mutex
	held   map[*lock]struct{}
	closed bool
	takers sync.WaitGroup // calls that take a lock or a lease
}

// enter begins to take a lock or a lease. It returns false after Close.
func (ls *locks) enter() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.closed {
		ls.takers.Add(1)
	}
	return !ls.closed
}

// awaitTakers waits until no call takes a lock or a lease. Later calls fail.
func (ls *locks) awaitTakers() {
	ls.mu.Lock()
	ls.closed = true
	ls.mu.Unlock()
	ls.takers.Wait()
}

// lock is a held store lock.
type lock struct {
	record
	locks     *locks
	exclusive bool
	fences    map[string]uint64 // by name of the stream
	lost      context.CancelCauseFunc
}

// Lock implements eventlog.Locker. A read-only store has no exclusive lock, and a shared
// lock without a message.
func (s *Store) Lock(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error) {
	l, err := s.lockable(ctx, exclusive)
	if err != nil {
		return nil, nil, err
	}
	if s.options.ReadOnly {
		held, stop := context.WithCancel(ctx)
		return held, stop, nil
	}
	if !s.locks.enter() {
		return nil, nil, eventlog.ErrClosed
	}
	defer s.locks.takers.Done()
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.lifetime, func() { stop(eventlog.ErrClosed) })()
	if limit := s.options.LockTimeout; limit > 0 {
		defer time.AfterFunc(limit, func() { stop(fmt.Errorf("%w for %v", eventlog.ErrLocked, limit)) }).Stop()
	}
	taken, err := s.locks.take(waiting, l, exclusive)
	if err != nil {
		if cause := context.Cause(waiting); cause != nil {
			err = cause
		}
		return nil, nil, err
	}
	held, taken.lost = context.WithCancelCause(context.WithValue(ctx, lockKey{s}, taken))
	s.locks.add(taken)
	return held, sync.OnceFunc(func() {
		s.locks.remove(taken)
		taken.release(l)
		taken.lost(context.Canceled)
	}), nil
}

// lockable returns the layout for a lock. It creates the log, unless the store may not
// write.
func (s *Store) lockable(ctx context.Context, exclusive bool) (*layout, error) {
	if s.options.ReadOnly && !exclusive {
		return s.reading(ctx)
	}
	return s.writable(ctx)
}

// add makes a lock end with the store, and with its message.
func (ls *locks) add(l *lock) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.held == nil {
		ls.held = make(map[*lock]struct{})
	}
	ls.held[l] = struct{}{}
	go func() {
		select {
		case <-l.expired:
			l.lost(eventlog.ErrLockLost)
		case <-l.ended:
		}
	}()
}

func (ls *locks) remove(l *lock) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.held, l)
}

// close ends the held locks: their contexts end with ErrLockLost.
func (ls *locks) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for l := range ls.held {
		l.lost(eventlog.ErrLockLost)
		l.release(ls.store.layout.Load())
	}
	clear(ls.held)
}

// The pauses between two looks at a lock that another process holds.
const (
	shortLook = 2 * time.Millisecond
	longLook  = 50 * time.Millisecond
)

// take waits for the lock.
func (ls *locks) take(ctx context.Context, l *layout, exclusive bool) (*lock, error) {
	for pause := shortLook; ; pause = min(2*pause, longLook) {
		taken, err := ls.try(ctx, l, exclusive)
		if taken != nil || err != nil {
			return taken, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try takes the lock, or returns nil if another process has the exclusive lock.
func (ls *locks) try(ctx context.Context, l *layout, exclusive bool) (taken *lock, err error) {
	s := ls.store
	if other, err := l.control.last(ctx, l.control.subject(exclusiveSubject)); other != nil || err != nil {
		return nil, err
	}
	taken = &lock{locks: ls, exclusive: exclusive, fences: make(map[string]uint64)}
	subject := l.control.subject(exclusiveSubject)
	if !exclusive {
		subject = l.control.subject(sharedSubject, newID())
	}
	err = taken.record.store(ctx, l.control, subject)
	if isCode(err, codeWrongSequence) {
		return nil, nil
	}
	if err != nil {
		return nil, s.failure(err)
	}
	ok := true
	if exclusive {
		if err = taken.awaitShared(ctx, l); err == nil {
			err = taken.raise(ctx, l)
		}
	} else {
		ok, err = taken.enterShared(ctx, l)
	}
	if err != nil || !ok {
		taken.end()
		return nil, err
	}
	return taken, nil
}

// enterShared completes a shared lock, unless another process has the exclusive lock.
func (l *lock) enterShared(ctx context.Context, y *layout) (ok bool, err error) {
	other, err := y.control.last(ctx, y.control.subject(exclusiveSubject))
	if other != nil || err != nil {
		return false, err
	}
	return true, l.eachFence(y, func(st *stream) (uint64, error) { return st.lowered(ctx) })
}

// awaitShared waits until no process has the shared lock.
func (l *lock) awaitShared(ctx context.Context, y *layout) error {
	for pause := shortLook; ; pause = min(2*pause, longLook) {
		other, err := y.control.first(ctx, y.control.subject(sharedSubject, "*"))
		if other == nil || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-l.expired:
			return fmt.Errorf("%w: it expired while its holder waited", eventlog.ErrUnavailable)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// raise raises the fences of all streams.
func (l *lock) raise(ctx context.Context, y *layout) error {
	return l.eachFence(y, func(st *stream) (uint64, error) {
		at, err := st.moveFence(ctx, fenceRaised, nil)
		return at, st.store.failure(err)
	})
}

// eachFence calls do for all streams at a time, and keeps the sequences of the fences.
func (l *lock) eachFence(y *layout, do func(st *stream) (uint64, error)) error {
	var mu sync.Mutex
	return parallel(y.all(), func(st *stream) error {
		at, err := do(st)
		mu.Lock()
		defer mu.Unlock()
		l.fences[st.name] = at
		return err
	})
}

// unlockTime bounds the time of a release. After it the lock expires.
const unlockTime = 5 * time.Second

// release lowers the fences and ends the lock.
func (l *lock) release(y *layout) {
	if l.exclusive && !l.isExpired() {
		ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
		defer cancel()
		_ = parallel(y.all(), func(st *stream) error {
			return st.lowerFence(ctx, fence{at: l.fences[st.name], raised: true})
		}) // the next holder lowers a raised fence
	}
	l.end()
}

// record is a message with a time to live that its owner renews.
type record struct {
	stream  *stream
	subject string
	body    string                    // tells its messages from those of other owners
	check   func(ctx context.Context) // runs after each renewal, unless it is nil
	expired chan struct{}             // closed when the message has expired, or may have
	ended   chan struct{}             // closed by end
	stop    context.CancelFunc
	done    chan struct{} // closed when the renewals have ended

	once sync.Once

	// The goroutine of the renewals owns these until done is closed.
	at    uint64
	until time.Time // before this time the message exists, unless it was removed
}

// store stores the message, if the subject has none, and renews it until end. If ctx ends
// before the server answers, the message is removed later.
func (r *record) store(ctx context.Context, st *stream, subject string) error {
	r.stream, r.subject, r.body = st, subject, newID()
	r.expired, r.ended, r.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	stored := make(chan error, 1)
	takers := &st.store.locks.takers
	takers.Go(func() {
		limited, cancel := context.WithTimeout(context.Background(), unlockTime)
		defer cancel()
		stored <- r.renew(limited)
	})
	select {
	case err := <-stored:
		var open *unknownError
		if errors.As(err, &open) || errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%w: %v", eventlog.ErrUnavailable, err) // the message expires, if it is stored
		}
		if err != nil {
			return err
		}
	case <-ctx.Done():
		takers.Go(func() {
			if <-stored == nil {
				r.remove(r.at)
			}
		})
		return ctx.Err()
	}
	if r.isLate() {
		return errLate
	}
	var renewing context.Context
	renewing, r.stop = context.WithCancel(st.store.lifetime)
	go r.renewAll(renewing)
	return nil
}

// errLate reports a message that may have expired before the server answered.
var errLate = fmt.Errorf("%w: it expired before the server answered", eventlog.ErrUnavailable)

// isLate reports whether the message may have expired.
func (r *record) isLate() bool { return !time.Now().Before(r.until) }

// renew stores the message again, with a new time to live. If the server refuses that, the
// last message of the subject decides: if it is the owner's, its answer was lost.
func (r *record) renew(ctx context.Context) error {
	leaseTime := r.stream.store.options.LeaseTime
	for began := time.Now(); ; {
		until := time.Now().Add(leaseTime)
		m := &nats.Msg{Subject: r.subject, Header: nats.Header{}, Data: []byte(r.body)}
		m.Header["Nats-TTL"] = []string{strconv.Itoa(int(leaseTime/time.Second)) + "s"}
		m.Header["Nats-Msg-Id"] = []string{newID()}
		expectLast(m, r.at)
		at, refused := r.stream.publish(ctx, m)
		if refused == nil {
			r.at, r.until = at, until
		}
		if !isCode(refused, codeWrongSequence) {
			return refused
		}
		last, err := r.stream.last(ctx, r.subject)
		if err != nil {
			return err
		}
		if last == nil || string(last.body) != r.body {
			return refused
		}
		if last.at <= r.at {
			err = r.stream.pauseStale(ctx, began)
		}
		if err != nil {
			return err
		}
		r.at = last.at
	}
}

// renewAll renews the message three times in its lease time, until ctx ends or it has
// expired.
func (r *record) renewAll(ctx context.Context) {
	defer close(r.done)
	third := r.stream.store.options.LeaseTime / 3
	for pause := third; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause, time.Until(r.until))):
		}
		limited, cancel := context.WithDeadline(ctx, r.until)
		err := r.renew(limited)
		cancel()
		pause = third
		switch {
		case ctx.Err() != nil:
			return
		case isCode(err, codeWrongSequence), r.isLate():
			close(r.expired)
			return
		case err != nil:
			pause = resendPause
		case r.check != nil:
			limited, cancel := context.WithTimeout(ctx, third)
			r.check(limited)
			cancel()
		}
	}
}

func (r *record) isExpired() bool {
	select {
	case <-r.expired:
		return true
	default:
		return false
	}
}

// end stops the renewals and removes the message.
func (r *record) end() {
	r.once.Do(func() {
		r.stop()
		<-r.done
		close(r.ended)
		if !r.isExpired() {
			r.remove(r.at)
		}
	})
}

// remove removes the messages of the subject up to a sequence.
func (r *record) remove(upTo uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	_ = r.stream.purge(ctx, r.subject, upTo+1) // the message expires otherwise
}

package eventlog

import (
	"context"
	"crypto/rand"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Log is an append-only log of sessions over a Store. It assigns seqs and
// hashes, validates, keeps appends idempotent, spills big bodies, follows
// lineages, and hands events to watchers; the store keeps the lines. A Log may
// be used concurrently, and several processes may have logs on one store.
type Log struct {
	store Store
	opts  Options
	mint  *Minter

	hot    sync.Map   // of *hot, by session
	mu     sync.Mutex // of those who change which sessions are hot
	hots   int        // how many are
	closed atomic.Bool
	done   chan struct{} // closed by Close

	poll poller
}

// Options configure a Log. The zero value is ready for use.
type Options struct {
	// Now is the clock of timestamps; time.Now if nil.
	Now func() time.Time
	// Random is the source of salts, and of ids that Append mints;
	// crypto/rand if nil. It is used by one goroutine at a time.
	Random io.Reader
	// SpillOver is the size in bytes above which data is kept as a blob: 256
	// KiB if 0, no spilling but where an append would be too large if negative.
	SpillOver int
	// Hook sees each event before it is validated, and may rewrite its data,
	// metadata and cost, or refuse it by returning an error (ErrRefused). It
	// must be deterministic: a retry passes it again. It is called concurrently.
	Hook func(ctx context.Context, session string, e *Event) error
	// Upcasters turn older payload versions into newer ones on read.
	Upcasters []Upcaster
	// HotSessions bounds how many sessions' heads are kept in memory; 1,024 if 0.
	HotSessions int
}

const (
	defaultSpill = 256 << 10
	defaultHot   = 1024
)

// Open makes a log over a store; at most one Options is used. The log owns the
// store: Close closes it.
func Open(store Store, opts ...Options) *Log {
	l := &Log{store: store, done: make(chan struct{})}
	if len(opts) > 0 {
		l.opts = opts[0]
	}
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	if l.opts.SpillOver == 0 {
		l.opts.SpillOver = defaultSpill
	}
	if l.opts.HotSessions == 0 {
		l.opts.HotSessions = defaultHot
	}
	l.mint = &Minter{Now: l.opts.Now}
	if l.opts.Random == nil {
		l.opts.Random = rand.Reader
	} else {
		l.opts.Random = &lockedReader{r: l.opts.Random}
		l.mint.Random = l.opts.Random
	}
	l.poll.log = l
	return l
}

// Store is the store underneath, for its optional abilities.
func (l *Log) Store() Store { return l.store }

// Close waits for appends that are under way, ends watchers with ErrClosed,
// and closes the store.
func (l *Log) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	close(l.done)
	l.poll.wait()
	return l.store.Close()
}

func (l *Log) usable(ctx context.Context) error {
	if l.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// acquire finds or makes the hot state of a session; release it after use.
func (l *Log) acquire(session string) *hot {
	if h := l.find(session); h != nil && h.pin() {
		return h
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.find(session); h != nil && h.pin() {
		return h
	}
	l.evict()
	h := &hot{session: session}
	h.pin()
	l.hot.Store(session, h)
	l.hots++
	return h
}

func (l *Log) release(h *hot) { h.users.Add(-1) }

// find gives the hot state of a session if there is one.
func (l *Log) find(session string) *hot {
	h, _ := l.hot.Load(session)
	found, _ := h.(*hot)
	return found
}

// evict makes room for one more hot session, if any is idle. l.mu is held.
func (l *Log) evict() {
	if l.hots < l.opts.HotSessions {
		return
	}
	l.hot.Range(func(session, h any) bool {
		if h.(*hot).retire() {
			l.hot.Delete(session)
			l.hots--
		}
		return l.hots >= l.opts.HotSessions
	})
}

// lockedReader lets several goroutines share a reader.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return io.ReadFull(r.r, p)
}

package eventlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/event"
)

// Log is an append-only log of sessions over a Store. It assigns seqs and hashes,
// validates, keeps appends idempotent, spills big bodies, follows lineages, and
// hands events to watchers; the store keeps the lines. A Log may be used
// concurrently, and several processes may open logs on one store.
type Log struct {
	store Store
	opts  Options
	mint  *event.Minter

	hot    sync.Map   // of *hotSession, by session id
	hotMu  sync.Mutex // held while hot changes
	hots   int        // sessions in hot
	closed atomic.Bool
	done   chan struct{} // closed by Close

	poll poller
}

// Options configure a Log. The zero value is ready for use.
type Options struct {
	// Now is the clock of timestamps; time.Now if nil.
	Now func() time.Time
	// Random is the source of salts and of ids that Append mints; crypto/rand if
	// nil. One goroutine at a time reads it.
	Random io.Reader
	// SpillOver is the size in bytes above which data becomes a blob: 256 KiB if
	// 0. If negative, data is spilled only where an append would be too large.
	SpillOver int
	// Hook sees each event before it is validated. It may change the event's
	// data, metadata and cost, or refuse it by returning an error (ErrRefused).
	// It must be deterministic: a retry calls it again. It is called concurrently.
	Hook func(ctx context.Context, session string, e *event.Event) error
	// Upcasters turn older payload versions into newer ones on read.
	Upcasters []event.Upcaster
	// HotSessions bounds how many sessions' heads stay in memory; 1,024 if 0.
	HotSessions int
}

const (
	defaultSpill = 256 << 10
	defaultHot   = 1024
)

// Open opens a log over a store. The log owns the store: Close closes it. At most
// one Options is used. The methods of a log over a nil store return ErrClosed.
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
	l.mint = &event.Minter{Now: l.opts.Now}
	if l.opts.Random == nil {
		l.opts.Random = rand.Reader
	} else {
		l.opts.Random = &lockedReader{r: l.opts.Random}
		l.mint.Random = l.opts.Random
	}
	l.poll.log = l
	return l
}

// Store is the store underneath, for its optional abilities (As).
func (l *Log) Store() Store { return l.store }

// Close waits for running appends, ends watchers with ErrClosed, and closes the
// store.
func (l *Log) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	close(l.done)
	l.poll.stopAndWait()
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// Ping reports whether the store can be read. A store that nothing was written to
// yet can be.
func (l *Log) Ping(ctx context.Context) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	for _, err := range l.store.Read(ctx, "convlog:ping", Span{Limit: 1}) {
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("ping: %w", err)
		}
	}
	return nil
}

// Sessions yields every session of the store, ordered by id. A damaged session is
// listed with its error, and the listing continues.
func (l *Log) Sessions(ctx context.Context) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		if err := l.usable(ctx); err != nil {
			yield(SessionInfo{}, err)
			return
		}
		l.store.Sessions(ctx)(yield)
	}
}

func (l *Log) usable(ctx context.Context) error {
	if l == nil || l.store == nil || l.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

func (l *Log) readable(ctx context.Context, session string) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	return event.CheckSessionID(session)
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

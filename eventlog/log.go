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
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/mint"
)

// Log is an append-only log of sessions over a Store. It validates events, assigns
// seqs and hashes, makes appends idempotent, spills big bodies to blobs, reads the
// lineage of forks, and wakes watchers. The store stores the lines. All methods may be
// called concurrently, and several processes may open logs on one store. The methods
// of a nil Log return ErrClosed.
type Log struct {
	store Store
	opts  Options
	mint  *mint.Minter

	hot    sync.Map   // *hotSession by session id
	hotMu  sync.Mutex // held while hot changes
	hots   int        // the number of sessions in hot
	closed atomic.Bool
	done   chan struct{} // closed by Close

	poll  poller
	paths knownPaths

	storeID atomic.Pointer[string] // nil until it is known
}

// Options configure a Log. The zero value is ready for use.
type Options struct {
	// Now is the clock for timestamps; time.Now if nil.
	Now func() time.Time
	// Random is the source of salts and event ids; crypto/rand if nil. One goroutine
	// at a time reads it.
	Random io.Reader
	// SpillOver is a size in bytes: larger data is spilled to a blob. 0 means
	// 256 KiB. If negative, data is spilled only if the append would be too large.
	SpillOver int
	// Hook is called for each event of an append, before validation. It may change the
	// event's data, metadata and cost. If it returns an error, the append fails with
	// ErrRefused. It must be deterministic, because a retry calls it again. It is
	// called concurrently.
	Hook func(ctx context.Context, session string, e *event.Event) error
	// BodyHook is called for each body that PutBlob or StoreArtifact gets. It returns the
	// bytes to store; they may differ from the given ones. An error of BodyHook, or of
	// its reader, ends the call, and nothing is stored. The bodies of copies, imported
	// lines and snapshots have digests already, and do not pass BodyHook.
	BodyHook func(ctx context.Context, body io.Reader) (io.Reader, error)
	// Upcasters convert older payload versions to newer ones on read.
	Upcasters []event.Upcaster
	// HotSessions is the number of sessions whose tail stays in memory between
	// appends; 1,024 if 0.
	HotSessions int
}

const (
	defaultSpill = 256 << 10
	defaultHot   = 1024
)

// Open opens a log over a store. The log owns the store: Close closes it. Open uses
// the first Options only. The methods of a log over a nil store return ErrClosed.
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
	l.mint = &mint.Minter{Now: l.opts.Now}
	if l.opts.Random == nil {
		l.opts.Random = rand.Reader
	} else {
		l.opts.Random = &lockedReader{r: l.opts.Random}
		l.mint.Random = l.opts.Random
	}
	l.poll.log = l
	return l
}

// Store returns the store of the log, so that a caller can find its optional abilities
// (As). It is nil for a nil log.
func (l *Log) Store() Store {
	if l == nil {
		return nil
	}
	return l.store
}

// StoreID returns the id of the store; see Identifier. It is "" if the store gives no ids.
func (l *Log) StoreID(ctx context.Context) (string, error) {
	if err := l.usable(ctx); err != nil {
		return "", err
	}
	if id := l.storeID.Load(); id != nil {
		return *id, nil
	}
	identifier, ok := As[Identifier](l.store)
	if !ok {
		return "", nil
	}
	id, err := identifier.StoreID(ctx)
	if err == nil && id != "" {
		l.storeID.Store(&id)
	}
	return id, err
}

// Close waits for running appends, ends watchers with ErrClosed, and closes the store.
// A second Close does nothing.
func (l *Log) Close() error {
	if l == nil || l.closed.Swap(true) {
		return nil
	}
	close(l.done)
	l.poll.close()
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// Ping returns an error if the store cannot be read. A new, empty store can be read.
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

// Sessions yields every session of the store, ordered by id. A damaged session has
// SessionInfo.Err set, and the listing continues. An error ends the sequence.
func (l *Log) Sessions(ctx context.Context) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		if err := l.usable(ctx); err != nil {
			yield(SessionInfo{}, err)
			return
		}
		l.store.Sessions(ctx)(yield)
	}
}

// maxAppend is the bound of an append, in bytes of its lines.
func (l *Log) maxAppend(ctx context.Context) (int, error) {
	limiter, ok := As[Limiter](l.store)
	if !ok {
		return engine.MaxAppend, nil
	}
	limit, err := limiter.MaxAppend(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask for the largest append: %w", err)
	}
	return min(limit, engine.MaxAppend), nil
}

// usable is the error of a call on a log that is closed, or with a context that is nil
// or has ended.
func (l *Log) usable(ctx context.Context) error {
	if l == nil || l.store == nil || l.closed.Load() {
		return ErrClosed
	}
	if ctx == nil {
		return fmt.Errorf("%w: the context", event.ErrNilArgument)
	}
	return ctx.Err()
}

// readable is usable for a call on a session.
func (l *Log) readable(ctx context.Context, session string) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	return event.CheckSessionID(session)
}

// lockedReader is a reader that several goroutines may share.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return io.ReadFull(r.r, p)
}

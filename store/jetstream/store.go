package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/notify"
)

// Store stores sessions in streams of JetStream. It implements eventlog.Store and the
// interfaces in the assertions below. All methods are safe for concurrent use.
type Store struct {
	options  Options
	servers  string
	lifetime context.Context // ends when Close begins
	cancel   context.CancelFunc
	unused   chan struct{} // closed when Close has released the locks

	opening chan struct{} // has an element while the store connects or opens the log
	client  atomic.Pointer[client]
	early   atomic.Pointer[error]  // the last error of the connection while the store connects
	layout  atomic.Pointer[layout] // nil until the log is found or created
	closed  atomic.Bool

	heads      heads
	watermarks watermarks
	locks      locks
	leases     leases
	changes    *notify.Hub
	lost       connectionLosses
}

var (
	_ eventlog.Store         = (*Store)(nil)
	_ eventlog.BlobIndex     = (*Store)(nil)
	_ eventlog.Blobs         = (*Store)(nil)
	_ eventlog.BulkVersioner = (*Store)(nil)
	_ eventlog.Checker       = (*Store)(nil)
	_ eventlog.Eraser        = (*Store)(nil)
	_ eventlog.Identifier    = (*Store)(nil)
	_ eventlog.Leaser        = (*Store)(nil)
	_ eventlog.Limiter       = (*Store)(nil)
	_ eventlog.Lister        = (*Store)(nil)
	_ eventlog.Locker        = (*Store)(nil)
	_ eventlog.Notifier      = (*Store)(nil)
	_ eventlog.Relater       = (*Store)(nil)
	_ eventlog.Retainer      = (*Store)(nil)
	_ eventlog.Salvager      = (*Store)(nil)
	_ eventlog.Sweeper       = (*Store)(nil)
	_ eventlog.Syncer        = (*Store)(nil)
	_ eventlog.Versioner     = (*Store)(nil)
)

// New returns the store of a URL as NATS takes it: nats:// or tls://, with several
// servers separated by commas. The URL may have these options, which override Options:
//
//	?prefix=NAME          Options.Prefix
//	&shards=N             Options.Shards
//	&replicas=N           Options.Replicas
//	&synced=true          Options.Synced
//	&credentials=PATH     Options.Credentials
//
// New makes no connection. It uses the first Options only. Errors have no password. With
// Options.Connect the URL may be empty.
func New(url string, opts ...Options) (*Store, error) {
	s := &Store{opening: make(chan struct{}, 1), unused: make(chan struct{})}
	if len(opts) > 0 {
		s.options = opts[0]
	}
	if url != "" || s.options.Connect == nil {
		var err error
		if s.servers, err = parse(url, &s.options); err != nil {
			return nil, err
		}
	}
	if err := s.options.normalize(); err != nil {
		return nil, err
	}
	s.lifetime, s.cancel = context.WithCancel(context.Background())
	s.locks.store, s.watermarks.store = s, s
	s.leases = leases{store: s, making: make(chan struct{}, 1)}
	s.changes = notify.New(s.poller)
	return s, nil
}

// newID returns a random id of 22 characters.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// usable is the error of a call on a closed store, or with an ended context.
func (s *Store) usable(ctx context.Context) error {
	if s.lifetime.Err() != nil {
		return eventlog.ErrClosed
	}
	return ctx.Err()
}

// connected returns the connection, and makes it if necessary.
func (s *Store) connected(ctx context.Context) (*client, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if c := s.client.Load(); c != nil {
		return c, nil
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	made := make(chan error, 1)
	go func() {
		defer s.leave()
		made <- s.connect()
	}()
	select {
	case err := <-made:
		return s.client.Load(), s.failure(err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enter waits until no other call connects or opens the log.
func (s *Store) enter(ctx context.Context) error {
	select {
	case s.opening <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.lifetime.Done():
		return eventlog.ErrClosed
	}
}

func (s *Store) leave() { <-s.opening }

// connect makes the connection. The caller has entered.
func (s *Store) connect() error {
	if s.client.Load() != nil {
		return nil
	}
	connect := s.options.Connect
	if connect == nil {
		connect = func(options ...nats.Option) (*nats.Conn, error) { return nats.Connect(s.servers, options...) }
	}
	options := []nats.Option{
		nats.Name("convlog"), nats.Timeout(connectTime), nats.MaxReconnects(-1),
		nats.ReconnectWait(50 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.ReconnectBufSize(-1), // a message is not sent later, when nobody waits for it
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.asyncError(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { s.lost.report() }),
	}
	if s.options.Credentials != "" {
		options = append(options, nats.UserCredentials(s.options.Credentials))
	}
	nc, err := connect(options...)
	if err != nil {
		return err
	}
	c, err := newClient(nc, s.unused)
	if err == nil {
		err = s.lifetime.Err()
	}
	if err != nil {
		nc.Close()
		return err
	}
	s.client.Store(c)
	if early := s.early.Load(); early != nil {
		c.denied(*early)
	}
	return nil
}

// asyncError gets the errors of the connection that belong to no call.
func (s *Store) asyncError(err error) {
	s.early.Store(&err)
	if c := s.client.Load(); c != nil {
		c.denied(err)
	}
	s.lost.report() // a slow consumer has lost messages
}

// Close implements eventlog.Store. It ends the leases and the locks.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	s.changes.Close()
	s.leases.stop()
	s.locks.awaitTakers()
	s.leases.close()
	s.watermarks.close()
	s.locks.close()
	close(s.unused)
	s.opening <- struct{}{} // waits for a running opening; nobody opens any more
	if c := s.client.Load(); c != nil {
		c.nc.Close()
	}
	return nil
}

// connectionLosses tells listeners that messages may have been lost.
type connectionLosses struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
}

func (l *connectionLosses) add(listening *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = make(map[*listener]struct{})
	}
	l.listeners[listening] = struct{}{}
}

func (l *connectionLosses) remove(listening *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listeners, listening)
}

func (l *connectionLosses) report() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for listening := range l.listeners {
		listening.publish("")
	}
}

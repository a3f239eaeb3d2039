package postgres

import (
	"context"
	"encoding/base64"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/internal/notify"
)

const (
	// A payload of a notification has the name of the open store that sent it, and the base64
	// of session ids, separated by commas.
	// The commit need not wait for a disk: a notification does not survive the server.
	notifyAll = `SELECT pg_notify($1, p), set_config('synchronous_commit', 'off', true) FROM unnest($2::text[]) p`
	// A change before a snapshot has a transaction before its xmin.
	readState    = `SELECT pg_snapshot_xmin(pg_current_snapshot()), removals FROM fence`
	changedSince = `SELECT id FROM sessions WHERE changed >= $1 LIMIT 10000`
)

// maxPayload bounds the payload of a notification; PostgreSQL takes less than 8,000
// bytes.
const maxPayload = 7900

// channel is the name of the channel for notifications. A database has one series of
// names.
func (s *Store) channel() string {
	const most = 63
	name := "convlog_" + s.schema
	return name[:min(len(name), most)]
}

// Changes implements eventlog.Notifier with LISTEN. A session is reported again if the
// notification of another process may have been lost.
func (s *Store) Changes(ctx context.Context) iter.Seq2[string, error] {
	return s.changes.Changes(ctx, s.lifetime.Done())
}

// publish reports a change of a session to listeners of this store and of other
// processes. The change is committed.
func (s *Store) publish(session string) {
	s.changes.Publish(session)
	s.sender.send(session)
}

// sender sends notifications. One goroutine sends all changes that gathered while it sent
// the ones before: a notification in the transaction of an append would make appends of
// different sessions wait for each other.
type sender struct {
	store *Store
	name  string // of this open store; random

	mu      sync.Mutex
	pending map[string]struct{}
	running bool
	closed  bool
	done    sync.WaitGroup
}

// send queues a notification.
func (n *sender) send(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if n.pending == nil {
		n.pending = make(map[string]struct{})
	}
	n.pending[session] = struct{}{}
	if !n.running {
		n.running = true
		n.done.Go(n.run)
	}
}

// close waits until the queued notifications are sent.
func (n *sender) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.done.Wait()
}

// notifyPause is the pause after a notification.
const notifyPause = time.Millisecond

// run sends until nothing is pending. The first change is sent at once: a watcher waits for
// it. Those that follow within notifyPause are sent together: each notification costs the
// server a transaction.
func (n *sender) run() {
	for {
		sessions := n.take()
		if len(sessions) == 0 {
			return
		}
		n.notify(n.payloads(sessions))
		time.Sleep(notifyPause)
	}
}

// take removes the pending changes and returns their sessions. If there are none, run ends.
func (n *sender) take() (sessions map[string]struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sessions = n.pending
	n.pending, n.running = nil, len(sessions) > 0
	return sessions
}

// notify sends payloads. A failure is no error of an append: listeners find the change
// with their next poll.
func (n *sender) notify(payloads []string) {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	_, _ = n.store.conns.Load().Exec(ctx, notifyAll, n.store.channel(), payloads)
}

// payloads packs session ids into few payloads.
func (n *sender) payloads(sessions map[string]struct{}) (packed []string) {
	payload := n.name
	for session := range sessions {
		id := "," + base64.StdEncoding.EncodeToString([]byte(session))
		if len(payload)+len(id) > maxPayload {
			packed = append(packed, payload)
			payload = n.name
		}
		payload += id
	}
	return append(packed, payload)
}

// poller starts to listen for changes of other processes.
func (s *Store) poller(publish func(session string)) notify.Poller {
	return &listener{store: s, publish: publish}
}

// listener implements notify.Poller. A goroutine passes notifications on. Poll is the
// backstop for notifications that a process did not send before it died.
type listener struct {
	store   *Store
	publish func(session string)
	stop    context.CancelFunc
	done    sync.WaitGroup
	state   state
}

// state is the state of the log at a poll.
type state struct {
	since    uint64 // transactions from here on were not visible
	removals int64
}

// Poll implements notify.Poller.
func (l *listener) Poll(ctx context.Context) (notify.Pace, error) {
	if l.stop == nil {
		conn, err := l.connect(ctx)
		if err != nil {
			return notify.Idle, err
		}
		listening, stop := context.WithCancel(context.Background())
		l.stop = stop
		l.done.Go(func() { l.listen(listening, conn) })
		l.state, err = l.now(ctx)
		return notify.Backstop, err
	}
	now, err := l.now(ctx)
	if err != nil {
		return notify.Backstop, nil // the goroutine reports what changed when the server is back
	}
	if now.removals != l.state.removals {
		l.publish("")
	} else if err := l.publishSince(ctx, l.state.since); err != nil {
		return notify.Backstop, nil
	}
	l.state = now
	return notify.Backstop, nil
}

func (l *listener) now(ctx context.Context) (now state, err error) {
	_, err = l.store.one(ctx, []any{&now.since, &now.removals}, readState)
	return now, err
}

// publishSince publishes the sessions that changed since a snapshot.
func (l *listener) publishSince(ctx context.Context, since uint64) error {
	pool, err := l.store.pool(ctx)
	if err != nil {
		return err
	}
	rows, err := pool.Query(ctx, changedSince, since)
	if err != nil {
		return l.store.failure(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return l.store.failure(err)
		}
		l.publish(string(id))
	}
	return l.store.failure(rows.Err())
}

// connect returns a connection that listens.
func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	if _, err := l.store.pool(ctx); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, l.store.dedicated())
	if err != nil {
		return nil, l.store.failure(err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{l.store.channel()}.Sanitize()); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, l.store.failure(err)
	}
	return conn, nil
}

// The pauses between two tries to connect again.
const (
	shortRetry = 50 * time.Millisecond
	longRetry  = 2 * time.Second
)

// listen publishes notifications until ctx ends. After a lost connection it connects
// again; anything may have changed in between.
func (l *listener) listen(ctx context.Context, conn *pgx.Conn) {
	for pause := shortRetry; ; {
		if conn != nil {
			l.receive(ctx, conn)
			_ = conn.Close(context.WithoutCancel(ctx))
			pause = shortRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longRetry)
		var err error
		if conn, err = l.connect(ctx); err == nil {
			l.publish("")
		}
	}
}

// receive publishes notifications of other stores until the connection breaks. The changes
// of this store are published when they are made; a second time, watchers would read the
// session again.
func (l *listener) receive(ctx context.Context, conn *pgx.Conn) {
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		from, ids, _ := strings.Cut(n.Payload, ",")
		if from == l.store.sender.name {
			continue
		}
		for id := range strings.SplitSeq(ids, ",") {
			if session, err := base64.StdEncoding.DecodeString(id); err == nil {
				l.publish(string(session))
			}
		}
	}
}

// Close implements notify.Poller.
func (l *listener) Close() {
	if l.stop != nil {
		l.stop()
		l.done.Wait()
	}
}

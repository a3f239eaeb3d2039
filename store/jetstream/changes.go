package jetstream

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/internal/notify"
)

// Changes implements eventlog.Notifier: the server repeats each stored message, without
// its body, on a subject of its own. A session is reported again if messages may have been
// lost.
func (s *Store) Changes(ctx context.Context) iter.Seq2[string, error] {
	return s.changes.Changes(ctx, s.lifetime.Done())
}

// poller starts to listen for changes of other processes.
func (s *Store) poller(publish func(session string)) notify.Poller {
	return &listener{store: s, publish: publish}
}

// listener implements notify.Poller. A subscription passes changes on. Poll is the
// backstop for messages that were not delivered.
type listener struct {
	store   *Store
	publish func(session string)
	sub     *nats.Subscription
	polls   int
	newest  map[string]uint64 // sequences of the shards at the poll before

	mu   sync.Mutex
	seen map[string]uint64 // the highest sequences of delivered messages
}

// settlingPolls is the number of polls in a row after the start, while servers learn of
// the subscription.
const settlingPolls = 3

// Poll implements notify.Poller.
func (l *listener) Poll(ctx context.Context) (notify.Pace, error) {
	if l.sub == nil {
		if err := l.subscribe(ctx); err != nil {
			return notify.Idle, err
		}
	}
	now, err := l.now(ctx)
	l.polls++
	if err != nil && l.polls == 1 {
		return notify.Idle, err
	}
	if err == nil {
		l.compare(now)
	}
	if l.polls < settlingPolls {
		return notify.Busy, nil
	}
	return notify.Backstop, nil
}

// subscribe begins to listen.
func (l *listener) subscribe(ctx context.Context) error {
	c, err := l.store.connected(ctx)
	if err != nil {
		return err
	}
	l.seen = make(map[string]uint64)
	if l.sub, err = c.nc.Subscribe(l.store.options.Prefix+".live.>", l.receive); err == nil {
		l.store.lost.add(l)
		err = c.flush(ctx)
	}
	return l.store.failure(err)
}

// receive gets the subjects PREFIX.live.SHARD.session.ID.frames, among others.
func (l *listener) receive(m *nats.Msg) {
	rest := strings.TrimPrefix(m.Subject, l.store.options.Prefix+".live.")
	shard, kind, _ := strings.Cut(rest, ".")
	if seq, err := strconv.ParseUint(lastValue(m.Header, "Nats-Sequence"), 10, 64); err == nil {
		l.mu.Lock()
		l.seen[shard] = max(l.seen[shard], seq)
		l.mu.Unlock()
	}
	st := stream{}
	if session, ok := st.sessionOf(kind); ok && strings.HasSuffix(kind, "."+framesSubject) {
		l.publish(session)
	}
}

// now returns the newest sequences of the shards.
func (l *listener) now(ctx context.Context) (map[string]uint64, error) {
	now := make(map[string]uint64)
	y, err := l.store.reading(ctx)
	if y == nil || err != nil {
		return now, err
	}
	for n, st := range y.shards {
		if now[strconv.Itoa(n)], err = st.newest(ctx); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// compare reports any session if a message was not delivered: the one that was the newest
// at the poll before.
func (l *listener) compare(now map[string]uint64) {
	l.mu.Lock()
	missed := false
	for shard, newest := range l.newest {
		if l.seen[shard] < newest {
			l.seen[shard], missed = newest, true
		}
	}
	if l.newest == nil {
		for shard, newest := range now {
			l.seen[shard] = max(l.seen[shard], newest)
		}
	}
	l.newest = now
	l.mu.Unlock()
	if missed {
		l.publish("")
	}
}

// Close implements notify.Poller.
func (l *listener) Close() {
	if l.sub != nil {
		l.store.lost.remove(l)
		_ = l.sub.Unsubscribe() // a closed connection has no subscriptions
	}
}

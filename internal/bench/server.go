//go:build unix

package main

import (
	"context"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/postgres"
)

// serverBench is a log on a server.
type serverBench struct {
	*bench
	url string
	log *eventlog.Log
}

// openServer opens the store of a URL.
func openServer(url string) (eventlog.Store, error) {
	if strings.HasPrefix(url, "nats:") {
		return jetstream.New(url)
	}
	return postgres.New(url)
}

// onServer returns the bench of a new log on a server. The caller closes the log.
func (b *bench) onServer(ctx context.Context, url string) (*serverBench, error) {
	store, err := openServer(url)
	if err != nil {
		return nil, err
	}
	s := &serverBench{bench: b, url: url, log: eventlog.Open(store)}
	_, err = s.log.Append(ctx, b.name(), eventlog.New(), event.UserMessage("creates the log"))
	return s, err
}

// appends compares the appends of some writers, a session each, with raw, which stores the
// same events without a log.
func (s *serverBench) appends(ctx context.Context, writers int, ours func(context.Context, *eventlog.Log, []event.Event) (float64, error), raw func(context.Context, []event.Event) error) ([]figure, error) {
	events := people(s.sizes.durable)
	stored, err := s.storedEvents(ctx, events)
	if err != nil {
		return nil, err
	}
	bare := func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := parallel(writers, func(int) error { return raw(ctx, stored) })
		return perItem(start, writers*len(stored)), err
	}
	return compare(ctx, s.sizes.rounds, func(ctx context.Context) (float64, error) { return ours(ctx, s.log, events) }, bare, samples.rates)
}

// shared compares the appends of 16 goroutines to one session with the appends of one.
func (s *serverBench) shared(ctx context.Context) ([]figure, error) {
	n := s.sizes.durable
	many := func(ctx context.Context) (float64, error) {
		session := s.name()
		batches := make([][]event.Event, workers)
		for i := range batches {
			batches[i] = users(n)
		}
		start := time.Now()
		err := parallel(workers, func(i int) error { return appendEach(ctx, s.log, session, batches[i]) })
		return perItem(start, workers*n), err
	}
	one := func(ctx context.Context) (float64, error) { return s.timeAppends(ctx, s.log, users(n)) }
	return compare(ctx, s.sizes.rounds, many, one, samples.rates)
}

// reads compares a read of a long session with raw, a read of the same n events without a
// log, and the last 64 events with all.
func (s *serverBench) reads(ctx context.Context, raw func(ctx context.Context, n int) error) ([]figure, error) {
	n := s.sizes.history
	if err := fill(ctx, s.log, longSession, n); err != nil {
		return nil, err
	}
	read := (&history{log: s.log}).readAll(n)
	bare := func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := raw(ctx, n)
		return float64(time.Since(start)), err
	}
	last := func(ctx context.Context) (float64, error) {
		start := time.Now()
		got, err := countEvents(ctx, s.log, eventlog.Last(64))
		if err == nil {
			err = expectCount(got, 64)
		}
		return float64(time.Since(start)), err
	}
	whole, err := pair(ctx, s.sizes.rounds, read, bare)
	if err != nil {
		return nil, err
	}
	few, err := pair(ctx, s.sizes.rounds, last, read)
	if err != nil {
		return nil, err
	}
	return []figure{whole.times(), few.times()}, nil
}

// lists compares a listing with raw, a query of the same sessions without a log. A session
// has two events of each of its appends.
func (s *serverBench) lists(ctx context.Context, appends int, raw func(ctx context.Context, want int) error) ([]figure, error) {
	events := users(2 * appends)
	sessions := []string{s.last}
	for range s.sizes.sessions - 1 {
		sessions = append(sessions, s.name())
	}
	err := parallelN(workers, len(sessions), func(i int) error {
		return appendAll(ctx, s.log, sessions[i], events, 2)
	})
	if err != nil {
		return nil, err
	}
	want := s.sizes.sessions
	list := func(ctx context.Context) (float64, error) {
		start := time.Now()
		n, err := countSessions(ctx, s.log)
		if err == nil {
			err = expectCount(n, want)
		}
		return perItem(start, want), err
	}
	bare := func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := raw(ctx, want)
		return perItem(start, want), err
	}
	return compare(ctx, s.sizes.rounds, list, bare, samples.times)
}

// watches compares the median times of a watcher in another log and of raw, which stores an
// event without a log: each event is appended after the watcher has the one before.
func (s *serverBench) watches(ctx context.Context, raw func(context.Context, []event.Event) error) ([]figure, error) {
	other, err := openServer(s.url)
	if err != nil {
		return nil, err
	}
	watching := eventlog.Open(other)
	defer watching.Close()
	events := people(s.sizes.durable)
	stored, err := s.storedEvents(ctx, events)
	if err != nil {
		return nil, err
	}
	seen := func(ctx context.Context) (float64, error) {
		session := s.name()
		if err := appendEach(ctx, s.log, session, events[:startLen]); err != nil {
			return 0, err
		}
		return timeSeen(ctx, s.log, watching, session, events[startLen:])
	}
	bare := func(ctx context.Context) (float64, error) {
		var took []float64
		for i := range stored {
			start := time.Now()
			if err := raw(ctx, stored[i:i+1]); err != nil {
				return 0, err
			}
			took = append(took, float64(time.Since(start)))
		}
		return median(took), nil
	}
	return compare(ctx, s.sizes.rounds, seen, bare, samples.times)
}

// timeSeen is the median time until the watcher of a log has an event that another log
// appends.
func timeSeen(ctx context.Context, log, watching *eventlog.Log, session string, events []event.Event) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type sight struct {
		at  time.Time
		err error
	}
	sights := make(chan sight)
	go func() {
		for _, err := range watching.Watch(ctx, session, startLen) {
			select {
			case sights <- sight{time.Now(), err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	if first := <-sights; first.err != nil {
		return 0, first.err
	}
	var took []float64
	for i := range events {
		start := time.Now()
		if _, err := log.Append(ctx, session, eventlog.Any(), events[i]); err != nil {
			return 0, err
		}
		s := <-sights
		if s.err != nil {
			return 0, s.err
		}
		took = append(took, float64(s.at.Sub(start)))
	}
	return median(took), nil
}

// idleTime is the time in which requests of idle watchers are counted.
const idleTime = 30 * time.Second

// watchIdle watches 1,000 sessions until ctx ends, and waits until the last notifications
// and the first comparisons of the backstop are over. The backstop asks every ten seconds.
func (s *serverBench) watchIdle(ctx context.Context) error {
	const watched = 1000
	seen := make(chan error, watched)
	for range watched {
		session := s.name()
		if _, err := s.log.Append(ctx, session, eventlog.New(), event.UserMessage("hello")); err != nil {
			return err
		}
		go func() {
			for _, err := range s.log.Watch(ctx, session, 1) {
				seen <- err
			}
		}()
	}
	for range watched {
		if err := <-seen; err != nil {
			return err
		}
	}
	time.Sleep(25 * time.Second)
	return nil
}

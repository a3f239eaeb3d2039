//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
)

// Readers and watchers, in this process and others, read while writers append, redact,
// fork, are killed and leave torn tails, and while a session is removed, recreated,
// damaged and repaired. They see every event once and no incomplete line.
func TestReadersDuringIncidents(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		c := s.startGroup(2, job{Pause: 2 * time.Millisecond})
		c.waitBusy(c.members[0])
		a := s.startObservers()
		for n := range *incidentsFlag {
			c.incident(n)
		}
		c.killAll()
		c.takeOver()
		log := s.log()
		head, err := log.Head(s.ctx, shared)
		s.must(err)
		a.finish(head.Seq)
		c.check(true)
		t.Logf("%d incidents, %d kills, %d events acknowledged", *incidentsFlag, c.killed, c.ledger.events())
	})
}

// observers are readers and watchers, in this process and in others.
type observers struct {
	*fixture
	children []*child
	seen     []*atomic.Int64 // the last seq seen, per watcher of the shared session

	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// startObservers starts observers and waits until they read.
func (s *fixture) startObservers() *observers {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	a := &observers{fixture: s, cancel: cancel}
	for range 2 {
		a.startProcess()
	}
	log := s.log()
	a.startLocal(func() error { return newReader(log, s.seed, 10).run(ctx) })
	a.startLocal(func() error { return watchRecreated(ctx, log) })
	for range 2 {
		seen := a.progress()
		a.startLocal(func() error { return watchShared(ctx, log, s.seed, seen.Store) })
	}
	return a
}

func (a *observers) progress() *atomic.Int64 {
	seen := new(atomic.Int64)
	a.seen = append(a.seen, seen)
	return seen
}

// startProcess starts a process that reads and watches.
func (a *observers) startProcess() {
	seen := a.progress()
	ready := make(chan struct{}, 1)
	c := a.start(job{Do: "read", Writer: len(a.children)}, func(line string) {
		var verb string
		var n, seq int64
		_, _ = fmt.Sscan(line, &verb, &n, &seq)
		seen.Store(seq)
		select {
		case ready <- struct{}{}:
		default:
		}
	})
	select {
	case <-ready:
	case <-c.silent:
		a.Fatalf("a reader did not begin: %v", c.finish())
	}
	a.children = append(a.children, c)
}

// startLocal starts a reader or watcher in this process.
func (a *observers) startLocal(look func() error) {
	a.wg.Go(func() {
		if err := look(); err != nil {
			a.mu.Lock()
			a.errs = append(a.errs, err)
			a.mu.Unlock()
			a.cancel()
		}
	})
}

// finish waits until all watchers have seen the newest event, ends the observers and
// reports their errors.
func (a *observers) finish(newest int64) {
	a.Helper()
	for _, seen := range a.seen {
		for seen.Load() < newest && !a.failed() {
			time.Sleep(time.Millisecond)
		}
	}
	a.cancel()
	a.wg.Wait()
	a.must(errors.Join(a.errs...))
	for _, c := range a.children {
		a.must(c.in.Close())
		a.must(c.finish())
	}
}

// failed reports whether an observer has ended.
func (a *observers) failed() bool {
	for _, c := range a.children {
		select {
		case <-c.silent:
			return true
		default:
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.errs) > 0 || a.ctx.Err() != nil
}

// watchShared watches the shared session until ctx ends.
func watchShared(ctx context.Context, log *eventlog.Log, seed uint64, seen func(seq int64)) error {
	w := checker{seed: seed, session: shared}
	for ctx.Err() == nil {
		for e, err := range log.Watch(ctx, shared, 1) {
			if errors.Is(err, eventlog.ErrNotFound) && w.last.Seq == 0 {
				break // the session does not exist yet
			}
			if ctx.Err() != nil {
				break
			}
			if err == nil {
				err = w.next(&e)
			}
			if err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			seen(e.Seq)
		}
	}
	return nil
}

// incident makes the n-th incident happen.
func (c *group) incident(n int) {
	c.Helper()
	switch n % 4 {
	case 0:
		c.replaceBusy()
	case 1:
		c.recreate(n)
	case 2:
		c.waitBusy(c.members[0])
		c.leaveTornTail(shared)
	case 3:
		c.damageAndRepair()
	}
}

func (c *group) replaceBusy() {
	c.Helper()
	i := c.random.IntN(len(c.members))
	c.waitBusy(c.members[i])
	c.waitRandom(5 * time.Millisecond)
	c.replace(i)
}

// recreate removes the recreated session and creates it again, sometimes with more than
// a page of events.
func (c *group) recreate(n int) {
	c.Helper()
	log := c.backend.log(c.dir)
	if n > 1 {
		c.must(erase.Remove(c.ctx, log, recreated))
	}
	c.must(recreate(c.ctx, log, n, 1+c.random.IntN(10), 10+600*(n/4%2)))
	c.must(log.Close())
}

// damageAndRepair damages an event of the recreated session and repairs it in place.
func (c *group) damageAndRepair() {
	c.Helper()
	log := c.backend.log(c.dir)
	head, err := log.Head(c.ctx, recreated)
	c.must(err)
	seq := 1 + c.random.Int64N(head.Seq-5)
	c.damage(recreated, seq)
	r, err := repair.Session(c.ctx, log, recreated, repair.Options{InPlace: true})
	c.must(err)
	if len(r.Lost) != 1 || r.Lost[0].From > seq || r.Lost[0].To < seq || r.Head.Seq != head.Seq {
		c.Errorf("damaged event %d of %d, repaired %+v", seq, head.Seq, r)
	}
	c.must(verifyClean(c.ctx, log, recreated, event.Head{}))
	c.must(log.Close())
}

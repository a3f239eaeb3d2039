package torture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
)

// Readers and watchers, in this process and others, look on while writers
// append, redact, fork, are killed, leave torn tails, and a session is removed
// and made anew, damaged and repaired. They see neither a torn nor a mixed
// line, miss nothing and see nothing twice.
func TestReadersUnderFire(t *testing.T) {
	onEach(t, func(t *testing.T, s *scene) {
		c := s.crew(2, job{Pause: 2 * time.Millisecond})
		c.busy(c.members[0])
		a := s.spectators()
		for n := range *incidentsFlag {
			c.incident(n)
		}
		c.buryAll()
		c.succeed()
		log := s.log()
		head, err := log.Head(s.ctx, shared)
		s.must(err)
		a.dismiss(head.Seq)
		c.check(true)
		t.Logf("%d incidents, %d kills, %d events acknowledged", *incidentsFlag, c.killed, c.ledger.events())
	})
}

// audience is readers and watchers, in this process and in others.
type audience struct {
	*scene
	children []*child
	seen     []*atomic.Int64 // by watchers of the shared session: how far they are

	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// spectators starts an audience, and waits until it is there.
func (s *scene) spectators() *audience {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	a := &audience{scene: s, cancel: cancel}
	for range 2 {
		a.elsewhere()
	}
	log := s.log()
	a.here(func() error { return newReader(log, s.seed, 10).run(ctx) })
	a.here(func() error { return watchMortal(ctx, log) })
	for range 2 {
		seen := a.progress()
		a.here(func() error { return watchShared(ctx, log, s.seed, seen.Store) })
	}
	return a
}

func (a *audience) progress() *atomic.Int64 {
	seen := new(atomic.Int64)
	a.seen = append(a.seen, seen)
	return seen
}

// elsewhere starts a process that reads and watches.
func (a *audience) elsewhere() {
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
	case <-c.mute:
		a.Fatalf("a reader did not begin: %v", c.finish())
	}
	a.children = append(a.children, c)
}

// here starts a reader or watcher in this process.
func (a *audience) here(look func() error) {
	a.wg.Go(func() {
		if err := look(); err != nil {
			a.mu.Lock()
			a.errs = append(a.errs, err)
			a.mu.Unlock()
			a.cancel()
		}
	})
}

// dismiss waits until all watchers have seen the newest event, sends the
// audience away, and reports what went wrong for it.
func (a *audience) dismiss(newest int64) {
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

// failed reports whether somebody of the audience has left early.
func (a *audience) failed() bool {
	for _, c := range a.children {
		select {
		case <-c.mute:
			return true
		default:
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.errs) > 0 || a.ctx.Err() != nil
}

// watchShared watches the session of all writers until ctx ends.
func watchShared(ctx context.Context, log *eventlog.Log, seed uint64, seen func(seq int64)) error {
	w := walk{seed: seed, session: shared}
	for ctx.Err() == nil {
		for e, err := range log.Watch(ctx, shared, 1) {
			if errors.Is(err, eventlog.ErrNotFound) && w.last.Seq == 0 {
				break // it was not made yet
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

// incident is one thing that happens to the store.
func (c *crew) incident(n int) {
	c.Helper()
	switch n % 4 {
	case 0:
		c.replaceBusy()
	case 1:
		c.rebirth(n)
	case 2:
		c.busy(c.members[0])
		c.tear(shared)
	case 3:
		c.mend()
	}
}

func (c *crew) replaceBusy() {
	c.Helper()
	i := c.random.IntN(len(c.members))
	c.busy(c.members[i])
	c.linger(5 * time.Millisecond)
	c.replace(i)
}

// rebirth removes the mortal session and makes it anew, sometimes with more
// events than a page holds.
func (c *crew) rebirth(n int) {
	c.Helper()
	log := c.backend.log(c.dir)
	if n > 1 {
		c.must(erase.Remove(c.ctx, log, mortal))
	}
	c.must(live(c.ctx, log, n, 1+c.random.IntN(10), 10+600*(n/4%2)))
	c.must(log.Close())
}

// mend damages an event of the mortal session, and repairs it in place.
func (c *crew) mend() {
	c.Helper()
	log := c.backend.log(c.dir)
	head, err := log.Head(c.ctx, mortal)
	c.must(err)
	seq := 1 + c.random.Int64N(head.Seq-5)
	c.damage(mortal, seq)
	r, err := repair.Session(c.ctx, log, mortal, repair.Options{InPlace: true})
	c.must(err)
	if len(r.Lost) != 1 || r.Lost[0].From > seq || r.Lost[0].To < seq || r.Head.Seq != head.Seq {
		c.Errorf("damaged event %d of %d, repaired %+v", seq, head.Seq, r)
	}
	c.must(sound(c.ctx, log, mortal))
	c.must(log.Close())
}

package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
)

// Readers and watchers, in this process and others, look on while writers
// append, redact, fork, are killed, leave torn tails, and a session is removed
// and made anew. They see neither a torn nor a mixed line, miss nothing and
// see nothing twice.
func TestReadersUnderFire(t *testing.T) {
	onEach(t, func(t *testing.T, s *scene) {
		c := s.crew(2, job{Pause: 2 * time.Millisecond})
		c.busy(c.members[0])
		others := s.spectators(2)
		stop := s.spectate()
		for n := range *incidentsFlag {
			c.incident(n)
		}
		for _, o := range others {
			s.must(o.in.Close())
			s.must(o.finish())
		}
		s.must(stop())
		c.buryAll()
		c.check(true)
		t.Logf("%d incidents, %d kills, %d events acknowledged", *incidentsFlag, c.killed, c.ledger.events())
	})
}

// spectators starts processes that read, and waits until they do.
func (s *scene) spectators(n int) []*child {
	s.Helper()
	var all []*child
	for range n {
		ready := make(chan struct{}, 1)
		c := s.start(job{Do: "read"}, func(string) { ready <- struct{}{} })
		select {
		case <-ready:
		case <-c.mute:
			s.Fatalf("a reader did not begin: %v", c.finish())
		}
		all = append(all, c)
	}
	return all
}

// spectate starts readers and watchers in this process. The function it
// returns stops them, and gives their errors; the watchers must have seen all
// that is there.
func (s *scene) spectate() (stop func() error) {
	ctx, cancel := context.WithCancel(s.ctx)
	log := s.log()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	look := func(run func() error) {
		wg.Go(func() {
			err := run()
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	for i := range 2 {
		look(func() error { return newReader(log, s.seed, uint64(10+i)).run(ctx) })
		look(func() error { return watchShared(ctx, log, s.seed, 1) })
	}
	look(func() error { return watchMortal(ctx, log) })
	return func() error {
		cancel()
		wg.Wait()
		return errors.Join(errs...)
	}
}

// watchShared watches the session of all writers until ctx ends, and then
// makes sure that nothing was missed.
func watchShared(ctx context.Context, log *eventlog.Log, seed uint64, from int64) error {
	w := walk{seed: seed, session: shared}
	for ctx.Err() == nil {
		for e, err := range log.Watch(ctx, shared, max(from, w.last.Seq+1)) {
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
		}
	}
	return nil
}

// incident is one thing that happens to the store.
func (c *crew) incident(n int) {
	c.Helper()
	i := c.random.IntN(len(c.members))
	switch n % 3 {
	case 0:
		c.busy(c.members[i])
		c.linger(5 * time.Millisecond)
		c.replace(i)
	case 1:
		log := c.backend.log(c.dir)
		if n > 1 {
			c.must(log.Remove(c.ctx, mortal))
		}
		c.must(live(c.ctx, log, n, 1+c.random.IntN(10), 600*c.random.IntN(3)))
		c.must(log.Close())
	case 2:
		c.tear()
	}
}

// tear leaves a torn tail behind the shared session, as a writer does that is
// killed in the middle of a write. In a database there is no such place.
func (c *crew) tear() {
	c.Helper()
	if c.backend.name != "jsonl" {
		return
	}
	file := filepath.Join(c.dir, shared+".jsonl")
	unlock, err := flock.Lock(c.ctx, file, true, 0o600)
	c.must(err)
	defer unlock()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	c.must(err)
	line := `{"crc":"3ea13fe8","v":1,"seq":1,"id":"01M7X5J222DBK7GFTFQQMHPVNR","session_id":"shared"`
	_, err = f.WriteString(line[:1+c.random.IntN(len(line))])
	c.must(errors.Join(err, f.Close()))
}

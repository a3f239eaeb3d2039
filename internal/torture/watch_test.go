//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// A session is removed, or loses its newest events. Its watchers, in this process and
// in others, get an error. Appends succeed.
func TestWatchersOfRemovedEvents(t *testing.T) {
	t.Parallel()
	const before, after = 10, 6
	for _, c := range []struct {
		name   string
		vanish func(s *fixture, log *eventlog.Log)
		want   error
		stay   int
	}{
		{"removed", func(s *fixture, log *eventlog.Log) { s.must(erase.Remove(s.ctx, log, heldSession)) }, eventlog.ErrNotFound, 0},
		{"rolled back", func(s *fixture, _ *eventlog.Log) { s.rollBack(heldSession, after) }, eventlog.ErrCorrupt, after},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *fixture) {
				log := s.log()
				for range before {
					s.must(appendTo(heldSession)(s.ctx, log))
				}
				watchers := []*watcher{s.watch(log, c.want), s.watch(s.log(), c.want), s.watchInProcess(c.want)}
				for _, w := range watchers {
					w.await(before)
				}
				c.vanish(s, log)
				for _, w := range watchers {
					w.waitEnd()
				}
				s.must(appendTo(heldSession)(s.ctx, log))
				n, err := count(s.ctx, s.log(), heldSession)
				s.must(errors.Join(err, verifyClean(s.ctx, log, heldSession, event.Head{})))
				if n != c.stay+1 {
					t.Errorf("%d events in the end, want %d", n, c.stay+1)
				}
			})
		})
	}
}

// watcher is a watcher of heldSession, in this process or another.
type watcher struct {
	fixture *fixture
	seen    chan int64
	end     chan error
}

// watch watches in this process. The watcher must end with want.
func (s *fixture) watch(log *eventlog.Log, want error) *watcher {
	w := &watcher{fixture: s, seen: make(chan int64, 100), end: make(chan error, 1)}
	go func() { w.end <- watchHeld(s.ctx, log, want, func(seq int64) { w.seen <- seq }) }()
	return w
}

// watchInProcess watches in another process.
func (s *fixture) watchInProcess(want error) *watcher {
	w := &watcher{fixture: s, seen: make(chan int64, 100), end: make(chan error, 1)}
	c := s.start(job{Do: "watch", How: want.Error()}, func(line string) {
		var verb string
		var n, seq int64
		_, _ = fmt.Sscan(line, &verb, &n, &seq)
		w.seen <- seq
	})
	go func() { w.end <- c.finish() }()
	return w
}

func watchJob(ctx context.Context, b backend, j job) error {
	want := eventlog.ErrNotFound
	if j.How == eventlog.ErrCorrupt.Error() {
		want = eventlog.ErrCorrupt
	}
	log := b.log(j.Dir)
	return errors.Join(watchHeld(ctx, log, want, func(seq int64) { report("seen", 0, seq) }), log.Close())
}

// watchHeld watches from the first event until an error ends the watch.
func watchHeld(ctx context.Context, log *eventlog.Log, want error, seen func(seq int64)) error {
	last := int64(0)
	for e, err := range log.Watch(ctx, heldSession, 1) {
		switch {
		case errors.Is(err, want):
			return nil
		case err != nil:
			return fmt.Errorf("the watcher ended with %w, not with %w", err, want)
		case e.Seq != last+1:
			return fmt.Errorf("the watcher saw seq %d after %d", e.Seq, last)
		}
		last = e.Seq
		seen(last)
	}
	return errors.New("the watcher ended without an error")
}

// await waits until the watcher has seen an event.
func (w *watcher) await(seq int64) {
	w.fixture.Helper()
	for {
		select {
		case seen := <-w.seen:
			if seen == seq {
				return
			}
		case err := <-w.end:
			w.fixture.Fatalf("the watcher ended before it saw seq %d: %v", seq, err)
		}
	}
}

// waitEnd waits for the watcher's end.
func (w *watcher) waitEnd() {
	w.fixture.Helper()
	w.fixture.must(<-w.end)
}

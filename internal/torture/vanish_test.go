package torture

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// A session is taken away, or its newest events are. Whoever watches it, in
// this process and in others, is told so, and the log goes on.
func TestWatchersOfWhatVanishes(t *testing.T) {
	const before, after = 10, 6
	for _, c := range []struct {
		name   string
		vanish func(s *scene, log *eventlog.Log)
		want   error
		stay   int
	}{
		{"removed", func(s *scene, log *eventlog.Log) { s.must(erase.Remove(s.ctx, log, held)) }, eventlog.ErrNotFound, 0},
		{"rolled back", func(s *scene, _ *eventlog.Log) { s.rollBack(held, after) }, eventlog.ErrCorrupt, after},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *scene) {
				log := s.log()
				for range before {
					s.must(appendTo(held)(s.ctx, log))
				}
				watchers := []*watching{s.watch(log, c.want), s.watch(s.log(), c.want), s.watchElsewhere(c.want)}
				for _, w := range watchers {
					w.await(before)
				}
				c.vanish(s, log)
				for _, w := range watchers {
					w.ended()
				}
				s.must(appendTo(held)(s.ctx, log))
				n, err := count(s.ctx, s.log(), held)
				s.must(errors.Join(err, sound(s.ctx, log, held)))
				if n != c.stay+1 {
					t.Errorf("%d events in the end, want %d", n, c.stay+1)
				}
			})
		})
	}
}

// watching is a watcher of held, wherever it is.
type watching struct {
	scene *scene
	seen  chan int64
	end   chan error
}

// watch watches in this process; the watcher must end with want.
func (s *scene) watch(log *eventlog.Log, want error) *watching {
	w := &watching{scene: s, seen: make(chan int64, 100), end: make(chan error, 1)}
	go func() { w.end <- watchHeld(s.ctx, log, want, func(seq int64) { w.seen <- seq }) }()
	return w
}

// watchElsewhere watches in another process.
func (s *scene) watchElsewhere(want error) *watching {
	w := &watching{scene: s, seen: make(chan int64, 100), end: make(chan error, 1)}
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
	return errors.Join(watchHeld(ctx, log, want, func(seq int64) { say("seen", 0, seq) }), log.Close())
}

// watchHeld watches from the start, until it ends by itself.
func watchHeld(ctx context.Context, log *eventlog.Log, want error, seen func(seq int64)) error {
	last := int64(0)
	for e, err := range log.Watch(ctx, held, 1) {
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
func (w *watching) await(seq int64) {
	w.scene.Helper()
	for {
		select {
		case seen := <-w.seen:
			if seen == seq {
				return
			}
		case err := <-w.end:
			w.scene.Fatalf("the watcher ended before it saw seq %d: %v", seq, err)
		}
	}
}

// ended waits for the watcher's end.
func (w *watching) ended() {
	w.scene.Helper()
	w.scene.must(<-w.end)
}

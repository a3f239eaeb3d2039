package sqlite

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/eventlog"
)

const (
	// indexBatch is how many events come into the index in one transaction.
	indexBatch = 1000
	// indexChunk is after how many of them it is seen whether anybody waits.
	indexChunk = 64
	// indexRest is for how long nobody must have written before the index is
	// brought up to date.
	indexRest = 100 * time.Millisecond
	// leastFinish is for how long closing may go on with the index in any case.
	leastFinish = 50 * time.Millisecond
	// mostFinish is for how long at most.
	mostFinish = 10 * time.Second
)

// indexer brings the index of texts up to date, behind the appends: when
// nobody has written for a moment, and once more when the store is closed. As
// long as it is behind, a search reads the events that it lacks; so its errors
// need no report: what the index is to be made of is read, and so reported, by
// others, and what is wrong with it is found by Check.
type indexer struct {
	store *Store
	wake  chan struct{}
	last  atomic.Int64 // when something was written, in nanoseconds
	added atomic.Int64 // events since parts of the index were merged

	mu     sync.Mutex
	opened time.Time
	cancel context.CancelFunc // set while it is running
	done   chan struct{}
}

// start begins to go along with a store that was opened for writing.
func (x *indexer) start(s *Store) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.store, x.opened, x.done = s, time.Now(), make(chan struct{})
	x.wake = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(s.life)
	x.cancel = cancel
	go x.run(ctx, x.done)
	x.touch()
}

// touch says that something was written.
func (x *indexer) touch() {
	x.last.Store(time.Now().UnixNano())
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// finish stops it, and brings the index up to date unless that takes longer than
// half of the time that the store was open, or 10 seconds.
func (x *indexer) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cancel == nil {
		return
	}
	x.cancel()
	x.cancel = nil
	<-x.done
	ctx, cancel := context.WithTimeout(x.store.life, min(max(time.Since(x.opened)/2, leastFinish), mostFinish))
	defer cancel()
	_ = x.catchUp(ctx)
}

func (x *indexer) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		}
		for more := true; more && x.rest(ctx); {
			var err error
			if more, err = x.step(ctx); isBusy(err) {
				x.last.Store(time.Now().UnixNano())
				more = true
			}
		}
		if x.added.Load() >= indexBatch && x.rest(ctx) {
			x.added.Store(0)
			_ = x.merge(ctx, mergePages)
		}
	}
}

// rest waits until nobody has written for a moment.
func (x *indexer) rest(ctx context.Context) bool {
	for {
		wait := indexRest - time.Since(time.Unix(0, x.last.Load()))
		if wait <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// catchUp brings the index up to date.
func (x *indexer) catchUp(ctx context.Context) error {
	for more := true; more; {
		err := x.patiently(ctx, func(ctx context.Context) (err error) {
			more, err = x.step(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// patiently repeats a step while another process writes.
func (x *indexer) patiently(ctx context.Context, step func(context.Context) error) error {
	return within(ctx, x.store.options.LockTimeout, func(ctx context.Context) error {
		return patiently(ctx, func() error { return step(ctx) })
	})
}

// step brings some more events into the index; more is false when there are no
// more. The texts are made before anybody is kept from writing.
func (x *indexer) step(ctx context.Context) (more bool, err error) {
	b, err := x.behind(ctx)
	if err != nil || len(b.docs) == 0 {
		return false, err
	}
	if err = x.store.writer.do(ctx, &job{op: b, alone: true}); err == nil {
		x.added.Add(int64(len(b.docs)))
	}
	return err == nil, err
}

// Index implements eventlog.Searcher. It also makes one part of the parts that the
// index consists of.
func (s *Store) Index(ctx context.Context, anew bool) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	if anew {
		if err := s.write(ctx, reindexing{}, false); err != nil {
			return err
		}
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.index.catchUp(ctx); err != nil {
		return err
	}
	return s.index.merge(ctx, -mergePages)
}

// reindexing empties the index.
type reindexing struct{}

func (reindexing) apply(w *writer) error     { return w.resetIndex() }
func (reindexing) unknown(cause error) error { return cause }

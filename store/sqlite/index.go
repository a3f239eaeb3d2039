package sqlite

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/eventlog"
)

const (
	// indexBatchRows is the largest number of events in one index transaction.
	indexBatchRows = 1000
	// indexChunk is the number of events between two checks for queued writes.
	indexChunk = 64
	// quietPeriod is the time without writes before the background update of the index
	// starts.
	quietPeriod = 100 * time.Millisecond
	// minFinish is the time that Close always gives the update of the index.
	minFinish = 50 * time.Millisecond
	// maxFinish is the longest time that Close gives the update of the index.
	maxFinish = 10 * time.Second
)

// indexer updates the text index in the background and on Close. A search reads events
// that are not indexed yet, so the indexer drops its errors: readers report unreadable
// events, and Check reports a wrong index.
type indexer struct {
	store     *Store
	wake      chan struct{}
	lastWrite atomic.Int64  // time of the last write, in nanoseconds
	added     atomic.Int64  // events added since the last merge
	turn      chan struct{} // a mutex of capacity 1: one goroutine at a time reads the next batch

	mu     sync.Mutex
	opened time.Time
	cancel context.CancelFunc // nil unless the goroutine is running
	done   chan struct{}
}

// start starts the background goroutine of a writable store, unless Options.NoIndex is set.
func (x *indexer) start(s *Store) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.store, x.opened, x.done = s, time.Now(), make(chan struct{})
	x.wake, x.turn = make(chan struct{}, 1), make(chan struct{}, 1)
	if s.options.NoIndex {
		return
	}
	ctx, cancel := context.WithCancel(s.lifetime)
	x.cancel = cancel
	go x.run(ctx, x.done)
	x.notify()
}

// notify records a write and wakes the goroutine.
func (x *indexer) notify() {
	x.lastWrite.Store(time.Now().UnixNano())
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// finish stops the goroutine and updates the index. The update gets half of the time
// that the store was open, but at least 50 ms and at most 10 s.
func (x *indexer) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cancel == nil {
		return
	}
	x.cancel()
	x.cancel = nil
	<-x.done
	ctx, cancel := context.WithTimeout(x.store.lifetime, min(max(time.Since(x.opened)/2, minFinish), maxFinish))
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
		for more := true; more && x.waitForQuiet(ctx); {
			var err error
			if more, err = x.step(ctx); isBusy(err) {
				x.lastWrite.Store(time.Now().UnixNano())
				more = true
			}
		}
		if x.added.Load() >= indexBatchRows && x.waitForQuiet(ctx) {
			x.added.Store(0)
			_ = x.merge(ctx, mergePages)
		}
	}
}

// waitForQuiet waits until there are no writes for a quiet period. It returns false if
// ctx ends first.
func (x *indexer) waitForQuiet(ctx context.Context) bool {
	for {
		wait := quietPeriod - time.Since(time.Unix(0, x.lastWrite.Load()))
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

// catchUp indexes all events that are not indexed yet.
func (x *indexer) catchUp(ctx context.Context) error {
	for more := true; more; {
		err := x.retryBusy(ctx, func(ctx context.Context) (err error) {
			more, err = x.step(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retryBusy repeats a step while another process writes.
func (x *indexer) retryBusy(ctx context.Context, step func(context.Context) error) error {
	return withTimeout(ctx, x.store.options.LockTimeout, func(ctx context.Context) error {
		return retryBusy(ctx, func() error { return step(ctx) })
	})
}

// step indexes the next batch. more is false when all events are indexed. It extracts
// the texts before the transaction starts.
func (x *indexer) step(ctx context.Context) (more bool, err error) {
	select {
	case x.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-x.turn }()
	b, err := x.nextBatch(ctx)
	if err != nil || len(b.docs) == 0 {
		return false, err
	}
	if err = x.store.writer.do(ctx, &job{op: b, standalone: true}); err == nil {
		x.added.Add(int64(len(b.docs)))
	}
	return err == nil, err
}

// Index implements eventlog.Searcher. It also merges the segments of the index into
// one.
func (s *Store) Index(ctx context.Context, rebuild bool) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	if rebuild {
		if err := s.write(ctx, resetOp{}, false); err != nil {
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

// resetOp empties the index.
type resetOp struct{}

func (resetOp) apply(w *writer) error     { return w.resetIndex() }
func (resetOp) unknown(cause error) error { return cause }

package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// operation is one write. Its methods run on the writer's goroutine.
type operation interface {
	// apply makes the change inside the transaction. It returns a rejection if it
	// changed nothing. Any other error rolls the transaction back.
	apply(w *writer) error
	// unknown returns the error for a commit with an unknown outcome.
	unknown(cause error) error
}

// rejection is the error of an operation that changed nothing.
type rejection struct{ error }

// job is an operation in the queue.
type job struct {
	op         operation
	level      syncLevel // of its commit
	standalone bool      // runs outside a transaction
	done       chan error

	state     jobState      // guarded by writer.mu
	abandoned bool          // the caller returned during the commit; guarded by writer.mu
	retried   bool          // the job was retried after a full disk
	applied   chan struct{} // closed when the batch no longer reads the callers' events
}

type jobState int

const (
	queued jobState = iota
	applying
	committing
)

// do queues j and waits for its result. If ctx ends while j is still queued, do
// returns ctx's error and j never runs.
func (w *writer) do(ctx context.Context, j *job) error {
	j.done = make(chan error, 1)
	if err := w.enqueue(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return w.abandon(j, ctx.Err())
	}
}

func (w *writer) enqueue(j *job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return eventlog.ErrClosed
	}
	w.queue = append(w.queue, j)
	if !w.working {
		w.working = true
		go w.drain()
	}
	return nil
}

// abandon gives up on j. It returns only after the writer has stopped reading j's
// events, because the caller owns them.
func (w *writer) abandon(j *job, cause error) error {
	for {
		state, applied := w.withdraw(j)
		select {
		case err := <-j.done:
			return err
		default:
		}
		switch state {
		case queued:
			return fmt.Errorf("wait for the write lock: %w", cause)
		case committing:
			return j.op.unknown(cause)
		}
		<-applied
	}
}

// withdraw removes j from the queue if j is queued. It returns j's state.
func (w *writer) withdraw(j *job) (jobState, chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.queue {
		if other == j {
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			break
		}
	}
	j.abandoned = j.state == committing
	return j.state, j.applied
}

// takeStandalone removes and returns the first job if the job runs outside a
// transaction.
func (w *writer) takeStandalone() *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 || !w.queue[0].standalone {
		return nil
	}
	j := w.queue[0]
	w.queue = w.queue[1:]
	j.state = committing
	return j
}

// fail answers jobs of a batch that was never applied.
func (w *writer) fail(jobs []*job, err error) {
	for _, j := range jobs {
		j.done <- err
	}
	if len(jobs) > 0 {
		close(jobs[0].applied)
	}
}

func (w *writer) hasJobs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

// needsTransaction reports whether the next job runs inside a transaction.
func (w *writer) needsTransaction() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0 && !w.queue[0].standalone
}

// takeBatch removes and returns the jobs of the next transaction. The batch ends
// before a standalone job, and before a job that needs more durability than the
// current level.
func (w *writer) takeBatch() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	applied := make(chan struct{})
	for ; n < len(w.queue); n++ {
		j := w.queue[n]
		if j.standalone || j.level < w.level {
			break
		}
		j.state, j.applied = applying, applied
	}
	jobs := w.queue[:n:n]
	w.queue = w.queue[n:]
	if len(w.queue) == 0 {
		w.queue = nil
	}
	return jobs
}

// requeue puts jobs back to the front of the queue. It drops abandoned jobs, because
// the writer must not read their events any more.
func (w *writer) requeue(jobs []*job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs = slices.DeleteFunc(jobs, func(j *job) bool { return j.abandoned })
	for _, j := range jobs {
		if w.closed {
			j.done <- eventlog.ErrClosed
		}
		j.state = queued
	}
	if !w.closed {
		w.queue = append(jobs, w.queue...)
	}
}

package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// operation is one write. Its methods run on the writer's goroutine.
type operation interface {
	// apply makes the change inside the transaction. A refusal that has changed
	// nothing is a refused error; any other error rolls everything back.
	apply(w *writer) error
	// unknown is the error for a commit that may or may not stand.
	unknown(cause error) error
}

// refused is the error of an operation that has changed nothing.
type refused struct{ error }

// job is an operation in the queue.
type job struct {
	op      operation
	durable bool
	alone   bool // runs outside a transaction
	done    chan error

	state   jobState      // guarded by writer.mu
	left    bool          // its caller went away while it was committed; so too
	tried   bool          // once, and found the disk full
	applied chan struct{} // of its batch: closed once no event is read any more
}

type jobState int

const (
	queued jobState = iota
	applying
	committing
)

// do queues j and waits for it. When ctx ends first, the answer is ctx's error
// if j was still queued: it will not run.
func (w *writer) do(ctx context.Context, j *job) error {
	j.done = make(chan error, 1)
	if err := w.enqueue(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return w.leave(j, ctx.Err())
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
		go w.work()
	}
	return nil
}

// leave gives up on j. It returns only when the writer no longer reads j's
// events, which are the caller's.
func (w *writer) leave(j *job, cause error) error {
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

// withdraw takes j out of the queue if it is there.
func (w *writer) withdraw(j *job) (jobState, chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.queue {
		if other == j {
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			break
		}
	}
	j.left = j.state == committing
	return j.state, j.applied
}

// takeAlone takes the first job if it runs outside a transaction.
func (w *writer) takeAlone() *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 || !w.queue[0].alone {
		return nil
	}
	j := w.queue[0]
	w.queue = w.queue[1:]
	j.state = committing
	return j
}

// fail answers jobs that were taken and not applied.
func (w *writer) fail(jobs []*job, err error) {
	for _, j := range jobs {
		j.done <- err
	}
	if len(jobs) > 0 {
		close(jobs[0].applied)
	}
}

func (w *writer) wanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

// transactionWanted reports whether the next job runs inside a transaction.
func (w *writer) transactionWanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0 && !w.queue[0].alone
}

// take takes what goes into the next transaction, in order: all that is
// queued, up to a job that runs alone or demands more durability.
func (w *writer) take() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	applied := make(chan struct{})
	for ; n < len(w.queue); n++ {
		j := w.queue[n]
		if j.alone || j.durable && w.level != Always {
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

// requeue puts jobs back in front of the queue, but for those whose callers
// have left: their events are not the writer's any more.
func (w *writer) requeue(jobs []*job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs = slices.DeleteFunc(jobs, func(j *job) bool { return j.left })
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

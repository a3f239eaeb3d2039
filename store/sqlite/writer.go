package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// writer owns the one connection that writes, and its queue.
//
// While the queue is not empty, one goroutine drains it. The goroutine takes the
// database's write lock, applies all queued jobs in one transaction and commits once.
// Only this goroutine uses conn and keys.
type writer struct {
	path    string
	place   place
	conn    *conn
	policy  syncLevel
	level   syncLevel     // current sync level of conn
	limit   time.Duration // longest wait for other processes; 0 is no limit
	keys    map[string]int64
	suspect bool // conn failed, and a new connection may work

	mu              sync.Mutex
	queue           []*job
	working         bool
	closed          bool
	unsyncedCommits bool // a power failure may undo acknowledged appends
	idle            sync.Cond
	stop            chan struct{}
}

func openWriter(ctx context.Context, path string, options Options) (*writer, error) {
	at, err := placeOf(path)
	if err != nil {
		return nil, err
	}
	c, err := dialWriter(ctx, path, options)
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, place: at, conn: c, policy: options.level(), level: options.level(), limit: options.LockTimeout,
		keys: map[string]int64{}, stop: make(chan struct{}),
	}
	w.idle.L = &w.mu
	return w, nil
}

// drain runs batches until the queue is empty.
func (w *writer) drain() {
	for w.pending() {
		// Callers that the last commit woke can join the next batch.
		runtime.Gosched()
		w.runBatch()
	}
}

// pending reports whether there are jobs. If not, the goroutine must end.
func (w *writer) pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		return true
	}
	w.working = false
	w.idle.Broadcast()
	return false
}

// runBatch runs a standalone job, or as many jobs as fit into one transaction.
func (w *writer) runBatch() {
	if j := w.takeStandalone(); j != nil {
		j.done <- w.explain(j.op.apply(w))
		return
	}
	switch err := w.begin(); {
	case errors.Is(err, errNoWaiter):
		return
	case err != nil:
		w.fail(w.takeBatch(), fmt.Errorf("begin: %w", w.explain(err)))
		return
	}
	jobs := w.takeBatch()
	if len(jobs) == 0 {
		w.rollback()
		return
	}
	if jobs = w.applyAll(jobs); len(jobs) > 0 {
		w.commit(jobs)
	}
}

// begin waits for the write lock as long as a job needs it.
func (w *writer) begin() error {
	if err := w.setLevel(); err != nil {
		return err
	}
	var b backoff
	for began := time.Now(); ; {
		err := w.tryBegin()
		if !isBusy(err) {
			return err
		}
		if w.limit > 0 && time.Since(began) >= w.limit {
			return lockedFor(w.limit)
		}
		select {
		case <-w.stop:
			return eventlog.ErrClosed
		case <-time.After(b.next()):
		}
		if !w.needsTransaction() {
			return errNoWaiter
		}
	}
}

func (w *writer) tryBegin() error {
	if err := w.reconnect(); err != nil {
		return err
	}
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	w.place.opened()
	err := w.place.check()
	if err == nil {
		err = w.checkVersion()
	}
	if err != nil {
		w.rollback()
	}
	return err
}

// checkVersion refuses a database that a newer program has changed since it was opened.
func (w *writer) checkVersion() error {
	row := make([]driver.Value, 1)
	if _, err := w.conn.first(row, "PRAGMA user_version"); err != nil {
		return err
	}
	if version, _ := row[0].(int64); version > schemaVersion {
		return otherSchema(version)
	}
	return nil
}

// errNoWaiter means that all callers that waited for the write lock have left.
var errNoWaiter = errors.New("no job waits for the write lock")

// setLevel sets the sync level of the first job. A commit at level always syncs the whole
// write-ahead log, including earlier unsynced commits.
func (w *writer) setLevel() error {
	w.mu.Lock()
	level := w.policy
	if len(w.queue) > 0 {
		level = w.queue[0].level
	}
	w.mu.Unlock()
	if level == w.level {
		return nil
	}
	if err := w.conn.run(level.pragma()); err != nil {
		return err
	}
	w.level = level
	return nil
}

// applyAll applies the jobs in the open transaction and returns the jobs to commit. It
// answers rejected jobs. If a job fails, it rolls back, answers the failed job and
// requeues the others.
func (w *writer) applyAll(jobs []*job) []*job {
	defer close(jobs[0].applied)
	good := jobs[:0:0]
	for i, j := range jobs {
		err := j.op.apply(w)
		var rejected rejection
		switch {
		case err == nil:
			good = append(good, j)
		case errors.As(err, &rejected):
			j.done <- rejected.error
		default:
			w.rollback()
			w.handleRollback(j, append(good, jobs[i+1:]...), err)
			return nil
		}
	}
	w.mu.Lock()
	for _, j := range good {
		j.state = committing
	}
	w.mu.Unlock()
	if len(good) == 0 {
		w.rollback()
	}
	return good
}

func (w *writer) commit(jobs []*job) {
	_, err := w.conn.exec("COMMIT")
	if err == nil && w.policy == never && w.level == always {
		err = w.checkpoint()
	} else if isCode(err, codeFull) {
		// SQLite did not write the whole commit frame, so the transaction does not count.
		w.rollback()
		w.handleRollback(nil, jobs, err)
		return
	}
	if err == nil {
		err = w.place.check() // moved during the transaction: the events may be lost
	} else {
		w.rollback()
	}
	w.mu.Lock()
	w.unsyncedCommits = w.level != always || err != nil && w.unsyncedCommits
	w.mu.Unlock()
	err = w.explain(err)
	for _, j := range jobs {
		if err != nil {
			j.done <- j.op.unknown(err)
		} else {
			j.done <- nil
		}
	}
}

// checkpoint copies the write-ahead log into the database file and syncs the file.
// With NoSync earlier checkpoints were not synced, so a durable commit needs
// one.
func (w *writer) checkpoint() error {
	deadline := time.Now().Add(time.Second)
	var b backoff
	for {
		row, err := w.conn.values("PRAGMA wal_checkpoint(PASSIVE)", 3)
		if err != nil && !isBusy(err) {
			return fmt.Errorf("checkpoint the write-ahead log: %w", err)
		}
		if err == nil && row[1] == row[2] {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("checkpoint the write-ahead log: a reader still uses the log")
		}
		time.Sleep(b.next())
	}
}

// rollback ends the transaction, unless SQLite has ended it already, and clears the
// key cache.
func (w *writer) rollback() {
	clear(w.keys)
	// Outside a transaction ROLLBACK fails, which is harmless.
	_, _ = w.conn.exec("ROLLBACK")
}

// flush makes all acknowledged appends durable.
func (w *writer) flush(ctx context.Context) error {
	w.mu.Lock()
	loose := w.unsyncedCommits
	w.mu.Unlock()
	if !loose {
		return nil
	}
	if err := w.do(ctx, &job{op: emptyCommit{}, level: always}); err != nil {
		return fmt.Errorf("sync on closing: %w", err)
	}
	return nil
}

// emptyCommit changes nothing. Its commit syncs all earlier commits.
type emptyCommit struct{}

func (emptyCommit) apply(w *writer) error {
	return w.conn.run(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
}

func (emptyCommit) unknown(cause error) error { return cause }

// close fails queued jobs with ErrClosed, waits for the running batch and closes the
// connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	for _, j := range w.queue {
		j.done <- eventlog.ErrClosed
	}
	w.queue = nil
	close(w.stop)
	for w.working {
		w.idle.Wait()
	}
	w.mu.Unlock()
	return w.conn.close()
}

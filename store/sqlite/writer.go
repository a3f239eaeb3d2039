package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// writer owns the one connection that writes, and the queue in front of it.
//
// While the queue is not empty one goroutine works on it: it takes the
// database's write lock, then everything that is queued, writes that in one
// transaction and commits once. Only this goroutine touches conn and keys.
type writer struct {
	path    string
	conn    *conn
	policy  SyncPolicy
	level   SyncPolicy    // what conn is set to at present
	limit   time.Duration // of waiting for other processes; none if 0
	keys    map[string]int64
	suspect bool // conn failed in a way that a new one may not

	mu      sync.Mutex
	queue   []*job
	working bool
	closed  bool
	loose   bool // appends were acknowledged that a power failure may take
	rest    sync.Cond
	stop    chan struct{}
}

func openWriter(ctx context.Context, path string, options Options) (*writer, error) {
	c, err := dialWriter(ctx, path, options)
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, conn: c, policy: options.Sync, level: options.Sync, limit: options.LockTimeout,
		keys: map[string]int64{}, stop: make(chan struct{}),
	}
	w.rest.L = &w.mu
	return w, nil
}

// work empties the queue.
func (w *writer) work() {
	for w.pending() {
		// Those whom the last commit woke join the next one.
		runtime.Gosched()
		w.round()
	}
}

// pending reports whether there is work; if not, the goroutine is to end.
func (w *writer) pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		return true
	}
	w.working = false
	w.rest.Broadcast()
	return false
}

// round does what is queued, or as much of it as goes together.
func (w *writer) round() {
	if j := w.takeAlone(); j != nil {
		j.done <- w.explain(j.op.apply(w))
		return
	}
	switch err := w.begin(); {
	case errors.Is(err, errNobody):
		return
	case err != nil:
		w.fail(w.take(), fmt.Errorf("begin: %w", w.explain(err)))
		return
	}
	jobs := w.take()
	if len(jobs) == 0 {
		w.rollback()
		return
	}
	if jobs = w.applyAll(jobs); len(jobs) > 0 {
		w.commit(jobs)
	}
}

// begin waits for the write lock, as long as anyone is queued for it.
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
		if !w.transactionWanted() {
			return errNobody
		}
	}
}

func (w *writer) tryBegin() error {
	if err := w.reconnect(); err != nil {
		return err
	}
	_, err := w.conn.exec("BEGIN IMMEDIATE")
	return err
}

// errNobody: all who waited for the write lock have left.
var errNobody = errors.New("nobody is waiting")

// setLevel raises the sync level for the next transaction if the first job
// demands it, and lowers it again afterwards. A commit at FULL syncs the whole
// write-ahead log, and so what earlier transactions left unsynced in it.
func (w *writer) setLevel() error {
	if w.policy == Always {
		return nil
	}
	w.mu.Lock()
	level := w.policy
	if len(w.queue) > 0 && w.queue[0].durable {
		level = Always
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

// applyAll applies the jobs in the open transaction, answers those that are
// refused, and returns the others. When one fails in the middle everything is
// rolled back: that one is answered, and the others are queued again.
func (w *writer) applyAll(jobs []*job) []*job {
	defer close(jobs[0].applied)
	good := jobs[:0:0]
	for i, j := range jobs {
		err := j.op.apply(w)
		var no refused
		switch {
		case err == nil:
			good = append(good, j)
		case errors.As(err, &no):
			j.done <- no.error
		default:
			w.rollback()
			w.setBack(j, append(good, jobs[i+1:]...), err)
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
	if err == nil && w.policy == Never && w.level == Always {
		err = w.fold()
	} else if isCode(err, codeFull) {
		// The frame that makes the transaction one was not written whole.
		w.rollback()
		w.setBack(nil, jobs, err)
		return
	}
	if err != nil {
		w.rollback()
	}
	w.mu.Lock()
	w.loose = w.level != Always || err != nil && w.loose
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

// fold copies the write-ahead log into the database file and syncs it. Under
// Never earlier folds did not, so that a durable commit needs it.
func (w *writer) fold() error {
	deadline := time.Now().Add(time.Second)
	var b backoff
	for {
		row, err := w.conn.values("PRAGMA wal_checkpoint(PASSIVE)", 3)
		if err != nil && !isBusy(err) {
			return fmt.Errorf("fold the write-ahead log: %w", err)
		}
		if err == nil && row[1] == row[2] {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("fold the write-ahead log: a reader is in the way")
		}
		time.Sleep(b.next())
	}
}

// rollback ends the transaction, if SQLite has not done so already, and
// forgets what was learned in it.
func (w *writer) rollback() {
	clear(w.keys)
	// Outside a transaction this is an error that says nothing new.
	_, _ = w.conn.exec("ROLLBACK")
}

// flush makes everything acknowledged durable.
func (w *writer) flush(ctx context.Context) error {
	w.mu.Lock()
	loose := w.loose
	w.mu.Unlock()
	if !loose {
		return nil
	}
	if err := w.do(ctx, &job{op: touch{}, durable: true}); err != nil {
		return fmt.Errorf("sync on closing: %w", err)
	}
	return nil
}

// touch changes nothing, but its commit is one: it syncs those before it.
type touch struct{}

func (touch) apply(w *writer) error {
	return w.conn.run(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
}

func (touch) unknown(cause error) error { return cause }

// close refuses what is queued, waits for what is in flight, and closes the
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
		w.rest.Wait()
	}
	w.mu.Unlock()
	return w.conn.close()
}

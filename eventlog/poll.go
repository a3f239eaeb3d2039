package eventlog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// The interval of the poller is short after a change, and grows while nothing changes.
const (
	pollFast = 2 * time.Millisecond
	pollSlow = 100 * time.Millisecond
)

// poller asks the store for the versions of the watched sessions, to find appends of
// other processes. It is one goroutine per log, which runs while there are watchers.
type poller struct {
	log *Log

	mu      sync.Mutex
	watched []*pollTarget
	stop    context.CancelFunc // nil while the goroutine does not run
	closed  bool               // the goroutine must not start again
	running sync.WaitGroup
}

// pollTarget is one watched session.
type pollTarget struct {
	hot     *hotSession
	users   int
	version uint64
	err     error
	// local is the number of local appends before the version. unread reports that the
	// version has changed and that the watchers have not read the store since.
	local  int
	unread bool
}

// join watches a session until the caller calls leave.
func (p *poller) join(h *hotSession) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.watched, func(w *pollTarget) bool { return w.hot == h })
	if i < 0 {
		i = len(p.watched)
		p.watched = append(p.watched, &pollTarget{hot: h})
	}
	w := p.watched[i]
	w.users++
	if p.stop == nil && !p.closed {
		ctx, stop := context.WithCancel(context.Background())
		p.stop = stop
		p.running.Go(func() { p.run(ctx) })
	}
	return func() { p.leave(w) }
}

func (p *poller) leave(w *pollTarget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.users--; w.users > 0 {
		return
	}
	p.watched = slices.DeleteFunc(p.watched, func(other *pollTarget) bool { return other == w })
	if len(p.watched) == 0 && p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// close ends the goroutine. A watcher that joins later does not start it again.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	p.mu.Unlock()
	p.running.Wait()
}

// run finds appends of other processes until ctx ends.
func (p *poller) run(ctx context.Context) {
	notifier, notifies := As[Notifier](p.log.store)
	versions, bulk := As[BulkVersioner](p.log.store)
	if notifies && bulk {
		p.listen(ctx, notifier, versions)
		return
	}
	interval := pollFast
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		interval = min(2*interval, pollSlow)
		if p.pollOnce(ctx) {
			interval = pollFast
		}
		timer.Reset(interval)
	}
}

// pollOnce asks for the version of every watched session. changed is true if a session
// may have changed.
func (p *poller) pollOnce(ctx context.Context) (changed bool) {
	versioner, ok := As[Versioner](p.log.store)
	p.mu.Lock()
	watched := slices.Clone(p.watched)
	p.mu.Unlock()
	for _, w := range watched {
		if ctx.Err() != nil {
			return false
		}
		if !ok {
			w.hot.watch.wakeAll(false)
			continue
		}
		version, err := versioner.Version(ctx, w.hot.id)
		if err != nil && ctx.Err() != nil {
			return false
		}
		if w.hasChanged(version, err) {
			changed = true
		}
	}
	return changed
}

// hasChanged compares the version with the version before, and wakes the watchers if
// other processes may have appended. While this process appends, the watchers read the
// ring instead: if another process appends in between, the ring has a gap. The first
// comparison without local appends wakes them.
func (w *pollTarget) hasChanged(version uint64, err error) bool {
	failed := !errors.Is(err, w.err)
	if version == w.version && !failed && !w.unread {
		return false
	}
	w.version, w.err = version, err
	w.changed(failed)
	return true
}

// changed wakes the watchers of a session that has changed, unless this process has
// appended since the last call. With force it wakes them in any case.
func (w *pollTarget) changed(force bool) {
	local := w.hot.watch.appends()
	w.unread = local != w.local && !force
	w.local = local
	if !w.unread {
		w.hot.watch.wakeAll(false)
	}
}

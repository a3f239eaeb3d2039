package jsonl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// unsyncedSet has the ids of sessions with acknowledged but unsynced appends. Their
// files may be closed.
type unsyncedSet struct {
	mu       sync.Mutex
	sessions map[string]struct{}
	started  bool
	syncer   sync.WaitGroup
}

func (d *unsyncedSet) has(session string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.sessions[session]
	return ok
}

func (d *unsyncedSet) remove(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session)
}

func (d *unsyncedSet) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.sessions))
}

// syncLater registers a session with an unsynced append. With SyncEvery it starts the
// background goroutine on the first call.
func (s *Store) syncLater(session string) {
	d := &s.unsynced
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[session] = struct{}{}
	if s.opts.SyncEvery > 0 && !s.opts.NoSync && !d.started {
		d.started = true
		d.syncer.Go(s.syncForever)
	}
}

func (s *Store) syncForever() {
	tick := time.NewTicker(s.opts.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.syncUnsynced() // a failure poisons its session: the next append reports it
		case <-s.closing:
			return
		}
	}
}

// syncUnsynced syncs every registered session.
func (s *Store) syncUnsynced() error {
	var errs []error
	for _, session := range s.unsynced.all() {
		errs = append(errs, s.syncSession(session))
	}
	return errors.Join(errs...)
}

func (s *Store) syncSession(session string) error {
	h, err := s.cache.acquire(s, session, true)
	if err != nil {
		return err
	}
	h.turn <- struct{}{}
	defer s.releaseTurn(h)
	if h.poison != nil {
		s.unsynced.remove(session)
		return fmt.Errorf("sync session %q: %w", session, h.poison)
	}
	if err := h.syncEarlier(); err != nil {
		return fmt.Errorf("sync session %q: %w", session, err)
	}
	return nil
}

// syncEarlier is syncAll for a file that may have been closed or removed since the
// append.
func (h *handle) syncEarlier() error {
	if h.file == nil {
		err := h.open(false)
		if errors.Is(err, errAbsent) {
			h.unsynced = false
			h.store.unsynced.remove(h.session)
			return nil
		}
		if err != nil {
			h.poison = fmt.Errorf("sync earlier appends: %w", err)
			return err
		}
	}
	return h.syncAll()
}

// syncAll syncs the file. If that fails, acknowledged appends may be lost, because the
// kernel reports a failed write only once: the handle is poisoned.
func (h *handle) syncAll() error {
	if err := h.sync(); err != nil {
		h.poison = fmt.Errorf("sync earlier appends: %w", err)
		return h.poison
	}
	h.onDisk = h.size
	return nil
}

// Sync implements eventlog.Syncer. It takes no flock: it syncs the file as it is when
// Sync is called. If the session does not exist, it makes that durable and returns
// ErrNotFound.
func (s *Store) Sync(ctx context.Context, session string) error {
	h, err := s.beginWrite(ctx, "sync session", session)
	if err != nil {
		return err
	}
	defer s.endWrite(h)
	if h.isSynced() {
		return nil
	}
	file, err := s.fs.Open(h.name, os.O_RDWR|os.O_APPEND)
	if isAbsent(err) {
		return fmt.Errorf("sync session %q: %w", session, cmp.Or(s.syncRoot(), eventlog.ErrNotFound))
	}
	if err != nil {
		return fmt.Errorf("sync session %q: %w", session, err)
	}
	defer file.Close()
	if err := errors.Join(file.Sync(), s.fs.SyncDir(".")); err != nil {
		h.poison = fmt.Errorf("sync earlier appends: %w", err)
		return fmt.Errorf("sync session %q: %w", session, err)
	}
	h.unsynced = false
	s.unsynced.remove(session)
	return nil
}

// isSynced reports whether the session's file and its name are durable, and no other
// process has changed the file since this handle synced it.
func (h *handle) isSynced() bool {
	if h.file == nil || !h.tailKnown || !h.dirSync || h.unsynced || h.unsyncedCut || h.onDisk != h.size {
		return false
	}
	info, err := h.store.fs.Stat(h.name)
	if err != nil || info.Inode != h.inode {
		return false
	}
	h.info = info
	same, err := h.unchanged()
	return same && err == nil
}

// syncRoot makes the names in the directory durable, if the directory exists.
func (s *Store) syncRoot() error {
	err := s.fs.SyncDir(".")
	if isAbsent(err) {
		return nil
	}
	return err
}

// OrdersAppends implements eventlog.Syncer: each session is synced by itself.
func (s *Store) OrdersAppends() bool { return false }

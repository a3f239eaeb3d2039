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

// dirty knows the sessions with appends that were acknowledged but not synced,
// whether or not their files are still open.
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

// syncLater notes an append that is to be synced later, and starts whoever
// does that.
func (s *Store) syncLater(session string) {
	d := &s.dirty
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[session] = struct{}{}
	if s.opts.Sync == Periodic && !d.started {
		d.started = true
		d.syncer.Go(s.syncForever)
	}
}

func (s *Store) syncForever() {
	tick := time.NewTicker(s.opts.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.syncDirty() // a failure poisons its session, whose next append reports it
		case <-s.closing:
			return
		}
	}
}

// syncDirty syncs every session that needs it.
func (s *Store) syncDirty() error {
	var errs []error
	for _, session := range s.dirty.all() {
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
	defer s.endWrite(h)
	if h.poison != nil {
		s.dirty.remove(session)
		return fmt.Errorf("sync session %q: %w", session, h.poison)
	}
	if err := h.syncEarlier(); err != nil {
		return fmt.Errorf("sync session %q: %w", session, err)
	}
	return nil
}

// syncEarlier is syncAll of a file that may have been closed, or removed, since
// the append.
func (h *handle) syncEarlier() error {
	if h.file == nil {
		err := h.open(false)
		if errors.Is(err, errAbsent) {
			h.unsynced = false
			h.store.dirty.remove(h.session)
			return nil
		}
		if err != nil {
			h.poison = fmt.Errorf("sync earlier appends: %w", err)
			return err
		}
	}
	return h.syncAll()
}

// syncAll syncs what was acknowledged. When that fails, some of it may be lost:
// the kernel reports a failed write once and forgets it.
func (h *handle) syncAll() error {
	if err := h.sync(); err != nil {
		h.poison = fmt.Errorf("sync earlier appends: %w", err)
		return h.poison
	}
	h.onDisk = h.size
	return nil
}

// Sync implements eventlog.Syncer. It needs no lock: what others append
// meanwhile is theirs to sync. That a session is missing is made durable too.
func (s *Store) Sync(ctx context.Context, session string) error {
	h, err := s.beginWrite(ctx, "sync session", session)
	if err != nil {
		return err
	}
	defer s.endWrite(h)
	if h.onDiskWhole() {
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
	s.dirty.remove(session)
	return nil
}

// onDiskWhole reports whether the file is the one, and ends as it did, when this
// handle last synced all of it and its name.
func (h *handle) onDiskWhole() bool {
	if h.file == nil || !h.known || !h.dirSync || h.unsynced || h.unsyncedCut || h.onDisk != h.size {
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

// syncRoot makes the names in the directory durable, if it is there.
func (s *Store) syncRoot() error {
	err := s.fs.SyncDir(".")
	if isAbsent(err) {
		return nil
	}
	return err
}

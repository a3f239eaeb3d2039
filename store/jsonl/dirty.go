package jsonl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// dirty knows the sessions with appends that were acknowledged but not synced,
// whether or not their files are still open.
type dirty struct {
	mu       sync.Mutex
	sessions map[string]struct{}
	started  bool
	syncer   sync.WaitGroup
}

func (d *dirty) has(session string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.sessions[session]
	return ok
}

func (d *dirty) remove(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session)
}

func (d *dirty) all() []string {
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
	if s.opts.Sync == Interval && !d.started {
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
	defer s.end(h)
	if err := h.syncEarlier(); err != nil {
		h.poison = fmt.Errorf("sync earlier appends: %w", err)
		return fmt.Errorf("sync session %q: %w", session, err)
	}
	return nil
}

// syncEarlier syncs a file that may have been closed, or removed, since the
// append.
func (h *handle) syncEarlier() error {
	if h.poison != nil {
		h.store.dirty.remove(h.session)
		return h.poison
	}
	if h.file == nil {
		err := h.open(false)
		if errors.Is(err, errAbsent) {
			h.unsynced = false
			h.store.dirty.remove(h.session)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return h.sync()
}

package jsonl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
)

var errAbsent = errors.New("no such file")

// handle is the only writer of a session in this process. It has the open file and
// caches the position of the tail. The holder of turn owns all fields except view
// (guarded by viewMu) and the atomic ones.
type handle struct {
	store *Store
	name  string
	turn  chan struct{} // a mutex of capacity 1; see enter

	source
	inode       uint64
	isNew       bool // this handle created the file, which has no line yet
	dirSync     bool // the file name is durable
	unsynced    bool // acknowledged appends are unsynced
	unsyncedCut bool // the file was truncated; that may be unsynced

	// The state of the file at the last scan; valid if tailKnown.
	tailKnown  bool
	info       Info
	size       int64
	onDisk     int64 // bytes that this handle has synced
	head       event.Head
	lastAt     int64
	lastCRC    [crcLen]byte // checksum of the last line
	pendingCut *event.Cut   // the next append must name it

	buf      []byte
	probeCRC [crcLen]byte
	poison   error // why the file could not be restored; refuses all appends

	viewMu sync.Mutex
	view   view

	users     atomic.Int32 // see cache.acquire
	lastUse   atomic.Int64 // cache.epoch at the last use
	uncounted bool         // poisoned, and not in cache.count; guarded by cache.mu
}

// The checksum of a canonical line is at a fixed offset.
const crcOffset, crcLen = int64(len(`{"crc":"`)), 8

// view is the part of a file that readers of this process may read. The bytes from
// visible to pending are an append that is not acknowledged yet.
type view struct {
	inode            uint64
	visible, pending int64
}

func newHandle(s *Store, session string) *handle {
	name := fileOf(session)
	return &handle{
		store: s, name: name, turn: make(chan struct{}, 1),
		source:   source{session: session, path: s.path(name)},
		unsynced: s.unsynced.has(session),
	}
}

// enter waits until no other goroutine of this process writes to the session.
func (h *handle) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.store.closing:
		return eventlog.ErrClosed
	}
}

func (h *handle) leave() { <-h.turn }

// lock opens the session's file, creates it if create is true, and takes the flock. It
// opens the file again if another process has replaced it. It returns errAbsent if
// there is no file.
func (h *handle) lock(ctx context.Context, create bool) error {
	for {
		if h.file == nil {
			if err := h.open(create); err != nil {
				return err
			}
			if h.file == nil {
				continue // another process created the file: open it
			}
		}
		if err := h.waitLock(ctx); err != nil {
			return err
		}
		info, err := h.store.fs.Stat(h.name)
		if err == nil && info.Inode == h.inode {
			h.info = info
			return nil
		}
		if isAbsent(err) {
			err = nil
		}
		if err := errors.Join(err, h.drop()); err != nil {
			return fmt.Errorf("inspect %s: %w", h.path, err)
		}
	}
}

func (h *handle) open(create bool) error {
	file, err := h.store.fs.Open(h.name, os.O_RDWR|os.O_APPEND)
	if isAbsent(err) {
		if !create {
			return errAbsent
		}
		return h.create()
	}
	if err != nil {
		return fmt.Errorf("open session %q: %w", h.session, err)
	}
	return h.setFile(file, false)
}

func (h *handle) create() error {
	if err := h.store.fs.MakeRoot(); err != nil {
		return fmt.Errorf("make store directory: %w", err)
	}
	file, err := h.store.fs.Open(h.name, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, os.ErrExist) {
		return nil // another process created the file
	}
	if err != nil {
		return fmt.Errorf("create session %q: %w", h.session, err)
	}
	return h.setFile(file, true)
}

// setFile makes file the open file. As long as it is open, no other file can have its
// inode number.
func (h *handle) setFile(file File, created bool) error {
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("inspect %s: %w", h.path, err), file.Close())
	}
	h.file, h.inode, h.isNew = file, info.Inode, created
	return nil
}

// waitLock takes the exclusive flock. It waits for writers of other processes.
func (h *handle) waitLock(ctx context.Context) error {
	if ok, err := h.file.TryLock(true); ok {
		return nil
	} else if err != nil {
		return fmt.Errorf("lock session %q: %w", h.session, err)
	}
	if err := h.store.awaitLock(ctx, h.file, true); err != nil {
		return fmt.Errorf("lock session %q: %w", h.session, err)
	}
	return nil
}

// awaitLock waits for a file's lock until ctx ends, the store is closed or the lock
// timeout passes.
func (s *Store) awaitLock(ctx context.Context, file File, exclusive bool) error {
	lock := s.waitingFile(file)
	return flock.Wait(ctx, func() (bool, error) { return lock.TryLock(exclusive) })
}

// unlock releases the flock. It removes a file that was created for an append that
// failed.
func (h *handle) unlock() {
	if h.file == nil {
		return
	}
	if h.isNew && h.size == 0 {
		_ = h.store.fs.Remove(h.name) // an empty file is not a session
		_ = h.drop()
		return
	}
	if h.file.Unlock() != nil {
		_ = h.drop() // closing releases the lock
	}
}

// drop closes the file and resets the cached state.
func (h *handle) drop() error {
	if h.file == nil {
		return nil
	}
	err := h.file.Close()
	h.file = nil
	h.isNew, h.dirSync, h.tailKnown = false, false, false
	h.size, h.onDisk, h.head, h.pendingCut, h.buf = 0, 0, event.Head{}, nil, nil
	if h.poison == nil {
		h.setView(view{})
	}
	return err
}

// setView sets the part of the file that readers may read.
func (h *handle) setView(v view) {
	h.viewMu.Lock()
	h.view = v
	h.viewMu.Unlock()
}

// checkPoison returns an error if the session's file could not be restored after a
// failed append.
func (h *handle) checkPoison(verb string) error {
	if h.poison == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w until the store is reopened: %w", verb, h.session, eventlog.ErrReadOnly, h.poison)
}

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

// handle is the one writer of a session in this process: the open file, and
// what is known of its end. Everything but view and links belongs to whoever
// holds turn.
type handle struct {
	store *Store
	name  string
	turn  chan struct{}

	source
	inode    uint64
	created  bool // the file is ours and has no line yet
	dirSync  bool // the file's name is known to be on disk
	unsynced bool // appends were acknowledged without a sync
	unsyncedCut   bool // a torn tail was cut off, and that may not be on disk

	// What is known of the file; known is false until it was surveyed.
	known  bool
	info   Info
	size   int64
	onDisk int64 // how much of it this handle has synced
	head   event.Head
	lastAt int64
	lastCRC   [crcLen]byte // bytes of the last line that hold its checksum
	pendingCut    *event.Cut    // owed by the next append

	buf    []byte
	probeCRC  [crcLen]byte
	poison error

	viewMu sync.Mutex
	view    view

	users atomic.Int32 // see cache
	used  atomic.Int64 // the cache's epoch when it was used last
}

// The checksum of a canonical line stands at a fixed place.
const crcOffset, crcLen = int64(len(`{"crc":"`)), 8

// view is the part of a file that readers of this process may see. Between
// visible and pending stands an append that is not acknowledged.
type view struct {
	inode            uint64
	visible, pending int64
}

func newHandle(s *Store, session string) *handle {
	name := escape(session) + extension
	return &handle{
		store: s, name: name, turn: make(chan struct{}, 1),
		source:   source{session: session, path: s.path(name)},
		unsynced: s.dirty.has(session),
	}
}

// enter waits for this process's other writers of the session.
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

// lock opens the file, and creates it if asked to, and takes its lock. The
// locked file is the one that has the session's name. errAbsent is no file.
func (h *handle) lock(ctx context.Context, create bool) error {
	for {
		if h.file == nil {
			if err := h.open(create); err != nil {
				return err
			}
			if h.file == nil {
				continue // another process has created it just now
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
		return nil // another process was faster: open it
	}
	if err != nil {
		return fmt.Errorf("create session %q: %w", h.session, err)
	}
	return h.setFile(file, true)
}

// hold makes file the one that is open. While it is, no other file has its
// inode.
func (h *handle) setFile(file File, created bool) error {
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("inspect %s: %w", h.path, err), file.Close())
	}
	h.file, h.inode, h.created = file, info.Inode, created
	return nil
}

// wait takes the flock, which writers of other processes may hold.
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

// await waits for a file's lock until ctx ends or the store is closed.
func (s *Store) awaitLock(ctx context.Context, file File, exclusive bool) error {
	lock := s.whileOpen(file)
	return flock.Wait(ctx, func() (bool, error) { return lock.TryLock(exclusive) })
}

// unlock gives the flock back. A file that was made for an append which was
// not written is removed again.
func (h *handle) unlock() {
	if h.file == nil {
		return
	}
	if h.created && h.size == 0 {
		_ = h.store.fs.Remove(h.name) // an empty file is no session either
		_ = h.drop()
		return
	}
	if h.file.Unlock() != nil {
		_ = h.drop() // closing gives the lock back in any case
	}
}

// drop closes the file and forgets what was known of it.
func (h *handle) drop() error {
	if h.file == nil {
		return nil
	}
	err := h.file.Close()
	h.file = nil
	h.created, h.dirSync, h.known = false, false, false
	h.size, h.onDisk, h.head, h.pendingCut, h.buf = 0, 0, event.Head{}, nil, nil
	if h.poison == nil {
		h.setView(view{})
	}
	return err
}

// show sets what readers may see.
func (h *handle) setView(v view) {
	h.viewMu.Lock()
	h.view = v
	h.viewMu.Unlock()
}

// poisoned refuses a session whose file could not be restored.
func (h *handle) poisoned(verb string) error {
	if h.poison == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w until the store is reopened: %w", verb, h.session, eventlog.ErrReadOnly, h.poison)
}

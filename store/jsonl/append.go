package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// maxHandleBuffer bounds the write buffer that a handle keeps between appends. Larger
// buffers are shared by all handles.
const maxHandleBuffer = 64 << 10

var largeBuffers sync.Pool

// Append implements eventlog.Store. It compares the head and writes all lines with one
// write, under the flock of the session's file. A torn tail is truncated first (see
// recoverTail); until an event names the cut, Append returns a ConflictError with Cut
// set.
func (s *Store) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	h, err := s.beginWrite(ctx, "append to session", session)
	if err != nil {
		return err
	}
	defer s.endWrite(h)
	if len(events) == 0 {
		return nil
	}
	if err := h.lock(ctx, expect.IsZero()); err != nil {
		if errors.Is(err, errAbsent) {
			return &eventlog.ConflictError{Session: session, Expected: expect}
		}
		return err
	}
	defer h.unlock()
	if _, err := h.recoverTail(); err != nil {
		return err
	}
	if err := h.compare(expect, events); err != nil {
		return err
	}
	return h.append(events, s.needsSync(ctx, durable))
}

// needsSync reports whether an append is synced before it returns.
func (s *Store) needsSync(ctx context.Context, durable bool) bool {
	return !engine.Unsynced(ctx) && (durable || !s.opts.NoSync && s.opts.SyncEvery <= 0)
}

// beginWrite begins a call that changes a session. It returns the session's handle,
// locked against other writers of this process. After success the caller must call
// endWrite.
func (s *Store) beginWrite(ctx context.Context, verb, session string) (*handle, error) {
	if err := s.beginChange(verb, session); err != nil {
		return nil, err
	}
	h, err := s.takeTurn(ctx, verb, session)
	if err != nil {
		_ = s.endCall()
	}
	return h, err
}

// takeTurn returns the session's handle when no other goroutine writes to the session.
func (s *Store) takeTurn(ctx context.Context, verb, session string) (*handle, error) {
	if session == "" {
		return nil, fmt.Errorf("%s: %w: empty", verb, event.ErrInvalidSession)
	}
	h, err := s.cache.acquire(s, session, false)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", verb, session, err)
	}
	if err := h.enter(ctx); err != nil {
		s.cache.release(h)
		return nil, fmt.Errorf("%s %q: %w", verb, session, err)
	}
	if err := h.checkPoison(verb); err != nil {
		s.releaseTurn(h)
		return nil, err
	}
	return h, nil
}

// endWrite ends the call of beginWrite. The session may have changed.
func (s *Store) endWrite(h *handle) {
	session := h.session
	s.releaseTurn(h)
	s.changes.Publish(session)
	_ = s.endCall()
}

// releaseTurn unlocks and releases h. It closes the file of a poisoned handle.
func (s *Store) releaseTurn(h *handle) {
	if h.poison != nil {
		_ = h.drop()
	}
	h.leave()
	s.cache.release(h)
}

// compare returns a ConflictError if the session's head differs from expect, or if a
// cut is pending and events do not name it.
func (h *handle) compare(expect event.Head, events []event.Event) error {
	unnamed := h.pendingCut != nil && !namesCut(events, *h.pendingCut)
	if expect == h.head && !unnamed {
		return nil
	}
	conflict := &eventlog.ConflictError{Session: h.session, Expected: expect, Actual: h.head}
	if unnamed {
		cut := *h.pendingCut
		conflict.Cut = &cut
	}
	return conflict
}

// namesCut reports whether the first event names cut.
func namesCut(events []event.Event, cut event.Cut) bool {
	if len(events) == 0 {
		return false
	}
	named, ok := events[0].Cut()
	return ok && named == cut
}

// append writes the events' lines at the end of the file. If sync is false, the file is
// synced later.
func (h *handle) append(events []event.Event, sync bool) error {
	h.buf = appendLines(h.buf[:0], events)
	if len(h.buf) > maxAppend {
		h.buf = nil
		return fmt.Errorf("append to session %q: %w: over %d bytes at once", h.session, event.ErrInvalidSize, maxAppend)
	}
	if err := h.limitUnsynced(); err != nil {
		return err
	}
	h.setView(view{inode: h.info.Inode, visible: h.size, pending: h.size + int64(len(h.buf))})
	n, err := h.file.Write(h.buf)
	if err == nil && n < len(h.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return h.undo(err)
	}
	if err := h.syncAppend(sync); err != nil {
		return h.undoUnsynced(err)
	}
	h.advance(&events[len(events)-1])
	return nil
}

func appendLines(dst []byte, events []event.Event) []byte {
	size := 0
	for i := range events {
		size += len(events[i].Line()) + 1
	}
	if size > max(cap(dst), maxHandleBuffer) {
		if spare, ok := largeBuffers.Get().(*[]byte); ok {
			dst = (*spare)[:0]
		}
	}
	dst = slices.Grow(dst, size)
	for i := range events {
		dst = append(append(dst, events[i].Line()...), '\n')
	}
	return dst
}

// limitUnsynced syncs earlier appends if more than maxAppend bytes would be unsynced.
// Recovery scans no more than that.
func (h *handle) limitUnsynced() error {
	if h.size+int64(len(h.buf))-h.onDisk <= maxAppend {
		return nil
	}
	if err := h.syncAll(); err != nil {
		return fmt.Errorf("append to session %q: %w", h.session, err)
	}
	return nil
}

// syncAppend syncs the file, or registers the session to be synced later.
func (h *handle) syncAppend(sync bool) error {
	if !sync {
		if !h.unsynced {
			h.unsynced = true
			h.store.syncLater(h.session)
		}
		return nil
	}
	if err := h.sync(); err != nil {
		return err
	}
	h.onDisk = h.size + int64(len(h.buf))
	return nil
}

// sync syncs the file, and on the first call also the directory, so that the file name
// is durable.
func (h *handle) sync() error {
	if err := h.file.Sync(); err != nil {
		return err
	}
	if !h.dirSync {
		if err := h.store.fs.SyncDir("."); err != nil {
			return err
		}
		h.dirSync = true
	}
	if h.unsynced {
		h.unsynced = false
		h.store.unsynced.remove(h.session)
	}
	return nil
}

// advance updates the handle after a write: last is the new head.
func (h *handle) advance(last *event.Event) {
	line := last.Line()
	h.size += int64(len(h.buf))
	h.lastAt = h.size - int64(len(line)) - 1
	copy(h.lastCRC[:], line[crcOffset:])
	h.head = last.Head()
	h.pendingCut, h.isNew = nil, false
	h.setView(view{inode: h.info.Inode, visible: h.size, pending: h.size})
	if cap(h.buf) > maxHandleBuffer {
		spare := h.buf
		largeBuffers.Put(&spare)
		h.buf = nil
	}
}

// undo truncates the file after a failed write. Parts of the write may be complete
// appends: without the truncation a crash could bring them back.
func (h *handle) undo(cause error) error {
	if err := h.truncateAppend(); err != nil {
		return h.unknownOutcome(cause, err)
	}
	return fmt.Errorf("append to session %q: %w", h.session, cause)
}

// truncateAppend truncates the file to the last acknowledged append and syncs it.
func (h *handle) truncateAppend() error {
	if err := h.file.Truncate(h.size); err != nil {
		return err
	}
	if err := h.file.Sync(); err != nil {
		return err
	}
	h.setView(view{inode: h.info.Inode, visible: h.size, pending: h.size})
	return nil
}

// undoUnsynced truncates an append whose sync failed. The outcome is unknown in any
// case. If earlier acknowledged appends are unsynced too, they may be lost as well,
// because the kernel reports a failed write only once. Then the handle is poisoned.
func (h *handle) undoUnsynced(cause error) error {
	if h.unsynced {
		return h.unknownOutcome(cause, errors.New("earlier appends were not synced"))
	}
	return h.unknownOutcome(cause, h.truncateAppend())
}

// unknownOutcome returns an UnknownOutcomeError. If restoring is not nil, the tail
// could not be restored: the handle is poisoned, appends fail until the store is
// reopened, and readers of this process see only acknowledged events.
func (h *handle) unknownOutcome(cause, restoring error) error {
	if restoring != nil {
		cause = errors.Join(cause, fmt.Errorf("truncate the append: %w", restoring))
		h.poison = cause
		h.setView(view{inode: h.info.Inode, visible: h.size, pending: math.MaxInt64})
	}
	return &eventlog.UnknownOutcomeError{Session: h.session, Head: h.head, Cause: cause}
}

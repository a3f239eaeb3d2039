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
)

// keptBuffer bounds the buffer that a session keeps between appends. Larger ones
// are for all.
const maxHandleBuffer = 64 << 10

var largeBuffers sync.Pool

// Append implements eventlog.Store: one write of all lines, under the
// session's lock.
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
	return h.append(events, durable)
}

// begin gives the caller the session's turn, until end.
func (s *Store) beginWrite(ctx context.Context, verb, session string) (*handle, error) {
	if err := s.writable(verb, session); err != nil {
		return nil, err
	}
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
	if err := h.poisoned(verb); err != nil {
		s.endWrite(h)
		return nil, err
	}
	return h, nil
}

// end gives the turn back; the file of a poisoned handle is closed.
func (s *Store) endWrite(h *handle) {
	if h.poison != nil {
		_ = h.drop()
	}
	h.leave()
	s.cache.release(h)
}

// compare decides whether events may follow what is there.
func (h *handle) compare(expect event.Head, events []event.Event) error {
	owed := h.pendingCut != nil && !names(events, *h.pendingCut)
	if expect == h.head && !owed {
		return nil
	}
	conflict := &eventlog.ConflictError{Session: h.session, Expected: expect, Actual: h.head}
	if owed {
		cut := *h.pendingCut
		conflict.Cut = &cut
	}
	return conflict
}

// names reports whether the first of the events names a cut.
func names(events []event.Event, cut event.Cut) bool {
	if len(events) == 0 {
		return false
	}
	named, ok := events[0].Cut()
	return ok && named == cut
}

// append writes the lines behind the last one.
func (h *handle) append(events []event.Event, durable bool) error {
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
	if err := h.syncAppend(durable); err != nil {
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

// bound syncs earlier appends before so many bytes wait that recovery would not
// reach back to the first of them.
func (h *handle) limitUnsynced() error {
	if h.size+int64(len(h.buf))-h.onDisk <= maxAppend {
		return nil
	}
	if err := h.syncAll(); err != nil {
		return fmt.Errorf("append to session %q: %w", h.session, err)
	}
	return nil
}

// settle makes the append as durable as it is asked to be.
func (h *handle) syncAppend(durable bool) error {
	if !durable && h.store.opts.Sync != Always {
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

// sync makes the file durable, and its name at the first call.
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
		h.store.dirty.remove(h.session)
	}
	return nil
}

// advance makes the last line that was written the head.
func (h *handle) advance(last *event.Event) {
	line := last.Line()
	h.size += int64(len(h.buf))
	h.lastAt = h.size - int64(len(line)) - 1
	copy(h.lastCRC[:], line[crcOffset:])
	h.head = last.Head()
	h.pendingCut, h.created = nil, false
	h.setView(view{inode: h.info.Inode, visible: h.size, pending: h.size})
	if cap(h.buf) > maxHandleBuffer {
		spare := h.buf
		largeBuffers.Put(&spare)
		h.buf = nil
	}
}

// undo takes a write back that failed, so that nothing was written. What of it
// had reached the disk may be whole appends, and must not come back.
func (h *handle) undo(cause error) error {
	if err := h.truncateAppend(); err != nil {
		return h.unknownOutcome(cause, err)
	}
	return fmt.Errorf("append to session %q: %w", h.session, cause)
}

// shrink cuts off what stands behind the last append, durably.
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

// retract takes an append back that could not be synced. What became of it
// on disk is unknown in any case. Where lines that were acknowledged without
// a sync stand before it, they may be lost as well: the kernel reports a
// failed write once and forgets it.
func (h *handle) undoUnsynced(cause error) error {
	if h.unsynced {
		return h.unknownOutcome(cause, errors.New("earlier appends were not synced"))
	}
	return h.unknownOutcome(cause, h.truncateAppend())
}

// unknown reports an open outcome. If the tail could not be restored either,
// nothing more is appended until the store is reopened, and readers of this
// process see nothing behind what was acknowledged.
func (h *handle) unknownOutcome(cause, restoring error) error {
	if restoring != nil {
		cause = errors.Join(cause, fmt.Errorf("restore the tail: %w", restoring))
		h.poison = cause
		h.setView(view{inode: h.info.Inode, visible: h.size, pending: math.MaxInt64})
	}
	return &eventlog.UnknownOutcomeError{Session: h.session, Head: h.head, Cause: cause}
}

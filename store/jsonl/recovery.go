package jsonl

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
)

// recoverTail brings the handle up to date with the locked file: it reads appends of
// other processes, saves a torn tail and truncates it. It returns how many bytes it
// truncated. If no other process wrote, it reads 8 bytes only.
func (h *handle) recoverTail() (cut int64, err error) {
	if err := h.syncTruncation(); err != nil {
		return 0, err
	}
	same, err := h.unchanged()
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", h.path, err)
	}
	if same {
		return 0, nil
	}
	t, err := h.scanNewTail()
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", h.path, err)
	}
	if t.damage != nil {
		h.tailKnown = false
		return 0, t.damage
	}
	if cut = h.info.Size - t.end; cut > 0 {
		if err := h.truncateTail(t.end); err != nil {
			h.tailKnown = false
			return 0, fmt.Errorf("truncate torn tail of %s: %w", h.path, err)
		}
	}
	if err := h.setTail(t); err != nil {
		return cut, err
	}
	if h.pendingCut != nil {
		h.unsyncedCut = true // another process may have died before it synced
	}
	return cut, h.syncTruncation()
}

// syncTruncation syncs an earlier truncation before the next write. Otherwise a crash
// could mix blocks of the torn tail with blocks of the new append.
func (h *handle) syncTruncation() error {
	if !h.unsyncedCut {
		return nil
	}
	if err := h.file.Sync(); err != nil {
		return fmt.Errorf("truncate torn tail of %s: %w", h.path, err)
	}
	h.unsyncedCut = false
	return nil
}

// unchanged reports whether the file ends as the handle remembers it. If the remembered
// last line is gone, it clears tailKnown; if lines were only added, tailKnown stays
// true.
func (h *handle) unchanged() (bool, error) {
	if !h.tailKnown {
		return false, nil
	}
	if h.size > 0 {
		n, err := readFull(h.file, h.probeCRC[:], h.lastAt+crcOffset)
		if err != nil {
			return false, err
		}
		if n < crcLen || h.probeCRC != h.lastCRC {
			h.tailKnown = false
		}
	}
	return h.tailKnown && h.info.Size == h.size, nil
}

// scanNewTail scans the lines after the remembered size, or the whole end of the file
// if nothing is remembered.
func (h *handle) scanNewTail() (tail, error) {
	if h.tailKnown && h.info.Size >= h.size {
		return h.scanTail(h.info.Size, h.size, h.head.Seq)
	}
	return h.scanTail(h.info.Size, 0, 0)
}

// setTail makes t the remembered state. If a torn tail was saved at t.end, it sets
// pendingCut.
func (h *handle) setTail(t tail) error {
	h.head, h.lastAt = event.Head{}, t.lastAt
	h.pendingCut = nil
	if t.end > 0 {
		h.head = t.last.Head()
		copy(h.lastCRC[:], t.last.Line()[crcOffset:])
	}
	h.size, h.tailKnown = t.end, true
	h.onDisk = min(h.onDisk, h.size)
	h.setView(view{inode: h.info.Inode, visible: t.end, pending: t.end})
	saved, err := h.store.readAll(h.savedTail(t.end))
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		h.tailKnown = false
		return fmt.Errorf("read torn tail: %w", err)
	}
	h.pendingCut = &event.Cut{Bytes: int64(len(saved)), SHA256: sha256.Sum256(saved)}
	return nil
}

// truncateTail saves the bytes after end durably, then truncates the file.
// syncTruncation makes the truncation durable.
func (h *handle) truncateTail(end int64) error {
	bad := make([]byte, h.info.Size-end)
	n, err := readFull(h.file, bad, end)
	if err != nil {
		return err
	}
	if err := h.saveTail(bad[:n], end); err != nil {
		return err
	}
	if err := h.file.Truncate(end); err != nil {
		return err
	}
	h.unsyncedCut = true
	return nil
}

// saveTail writes bad to the file of the torn tail. If that file exists and ends with
// bad, an earlier recovery was interrupted after saving: nothing is written. Otherwise
// an earlier torn tail began at the same offset: bad is appended to it.
func (h *handle) saveTail(bad []byte, end int64) error {
	h.store.saved.forget()
	name := h.savedTail(end)
	old, err := h.store.readAll(name)
	if err != nil && !isAbsent(err) {
		return err
	}
	if err == nil && bytes.HasSuffix(old, bad) {
		return h.store.fs.SyncDir(".")
	}
	return h.store.replace(name, append(old, bad...))
}

// savedTail returns the file name of a torn tail that begins at end.
func (h *handle) savedTail(end int64) string {
	return strings.TrimSuffix(h.name, extension) + tornInfix + strconv.FormatInt(end, 10)
}

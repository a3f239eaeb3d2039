package jsonl

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
)

// recover is refresh, and says how many bytes it cut off.
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
	t, err := h.scanChanges()
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", h.path, err)
	}
	if t.damage != nil {
		h.known = false
		return 0, t.damage
	}
	if cut = h.info.Size - t.end; cut > 0 {
		if err := h.truncateTail(t.end); err != nil {
			h.known = false
			return 0, fmt.Errorf("cut torn tail of %s: %w", h.path, err)
		}
	}
	if err := h.setTail(t); err != nil {
		return cut, err
	}
	if h.pendingCut != nil {
		h.unsyncedCut = true // perhaps by a process that was killed before it synced
	}
	return cut, h.syncTruncation()
}

// settleCut makes an earlier cut durable before anything is written over what
// was there: of the two, blocks could be mixed.
func (h *handle) syncTruncation() error {
	if !h.unsyncedCut {
		return nil
	}
	if err := h.file.Sync(); err != nil {
		return fmt.Errorf("cut torn tail of %s: %w", h.path, err)
	}
	h.unsyncedCut = false
	return nil
}

// unchanged reports whether the file ends as it did when this handle last had
// the lock. What stands before may still be told from it.
func (h *handle) unchanged() (bool, error) {
	if !h.known {
		return false, nil
	}
	if h.size > 0 {
		n, err := readFull(h.file, h.probeCRC[:], h.lastAt+crcOffset)
		if err != nil {
			return false, err
		}
		if n < crcLen || h.probeCRC != h.lastCRC {
			h.known = false
		}
	}
	return h.known && h.info.Size == h.size, nil
}

// examine surveys the file from what is known on.
func (h *handle) scanChanges() (tail, error) {
	if h.known && h.info.Size >= h.size {
		return h.scanTail(h.info.Size, h.size, h.head.Seq)
	}
	return h.scanTail(h.info.Size, 0, 0)
}

// learn takes a tail for what is known, and looks for a cut that is owed.
func (h *handle) setTail(t tail) error {
	h.head, h.lastAt = event.Head{}, t.lastAt
	h.pendingCut = nil
	if t.end > 0 {
		h.head = t.last.Head()
		copy(h.lastCRC[:], t.last.Line()[crcOffset:])
	}
	h.size, h.known = t.end, true
	h.onDisk = min(h.onDisk, h.size)
	h.setView(view{inode: h.info.Inode, visible: t.end, pending: t.end})
	kept, err := h.store.readAll(h.savedTail(t.end))
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		h.known = false
		return fmt.Errorf("read torn tail: %w", err)
	}
	h.pendingCut = &event.Cut{Bytes: int64(len(kept)), SHA256: sha256.Sum256(kept)}
	return nil
}

// cutTail saves what stands behind end, durably, and then cuts it off, which
// settleCut makes durable.
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

// save writes a torn tail to its file. One that is there already was saved
// before a crash, and ends with these bytes, or was cut off at this very place
// earlier: then both are kept, in order.
func (h *handle) saveTail(bad []byte, end int64) error {
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

// torn is the name of a torn tail.
func (h *handle) savedTail(end int64) string {
	return strings.TrimSuffix(h.name, extension) + tornInfix + strconv.FormatInt(end, 10)
}

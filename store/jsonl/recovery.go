package jsonl

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
)

// refresh makes what is known of the locked file true: as a rule it is, since
// nobody else wrote. What others appended is read, and what an unfinished write
// left behind is cut off.
func (h *handle) refresh() error {
	_, err := h.recover()
	return err
}

// recover is refresh, and says how many bytes it cut off.
func (h *handle) recover() (cut int64, err error) {
	if err := h.settleCut(); err != nil {
		return 0, err
	}
	same, err := h.unchanged()
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", h.path, err)
	}
	if same {
		return 0, nil
	}
	t, err := h.examine()
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", h.path, err)
	}
	if t.damage != nil {
		h.known = false
		return 0, t.damage
	}
	if cut = h.info.Size - t.end; cut > 0 {
		if err := h.cutTail(t.end); err != nil {
			h.known = false
			return 0, fmt.Errorf("cut torn tail of %s: %w", h.path, err)
		}
	}
	if err := h.learn(t); err != nil {
		return cut, err
	}
	if h.cut != nil {
		h.shrunk = true // perhaps by a process that was killed before it synced
	}
	return cut, h.settleCut()
}

// settleCut makes an earlier cut durable before anything is written over what
// was there: of the two, blocks could be mixed.
func (h *handle) settleCut() error {
	if !h.shrunk {
		return nil
	}
	if err := h.file.Sync(); err != nil {
		return fmt.Errorf("cut torn tail of %s: %w", h.path, err)
	}
	h.shrunk = false
	return nil
}

// unchanged reports whether the file ends as it did when this handle last had
// the lock. What stands before may still be told from it.
func (h *handle) unchanged() (bool, error) {
	if !h.known {
		return false, nil
	}
	if h.size > 0 {
		n, err := readFull(h.file, h.probe[:], h.lastAt+markAt)
		if err != nil {
			return false, err
		}
		if n < markLen || h.probe != h.mark {
			h.known = false
		}
	}
	return h.known && h.info.Size == h.size, nil
}

// examine surveys the file from what is known on.
func (h *handle) examine() (tail, error) {
	if h.known && h.info.Size >= h.size {
		return h.survey(h.info.Size, h.size, h.head.Seq)
	}
	return h.survey(h.info.Size, 0, 0)
}

// learn takes a tail for what is known, and looks for a cut that is owed.
func (h *handle) learn(t tail) error {
	h.head, h.lastAt = event.Head{}, t.lastAt
	h.cut = nil
	if t.end > 0 {
		h.head = t.last.Head()
		copy(h.mark[:], t.last.Line()[markAt:])
	}
	h.size, h.known = t.end, true
	h.onDisk = min(h.onDisk, h.size)
	h.show(view{inode: h.info.Inode, visible: t.end, pending: t.end})
	kept, err := h.store.readAll(h.torn(t.end))
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		h.known = false
		return fmt.Errorf("read torn tail: %w", err)
	}
	h.cut = &event.Cut{Bytes: int64(len(kept)), SHA256: sha256.Sum256(kept)}
	return nil
}

// cutTail saves what stands behind end, durably, and then cuts it off, which
// settleCut makes durable.
func (h *handle) cutTail(end int64) error {
	bad := make([]byte, h.info.Size-end)
	n, err := readFull(h.file, bad, end)
	if err != nil {
		return err
	}
	if err := h.save(bad[:n], end); err != nil {
		return err
	}
	if err := h.file.Truncate(end); err != nil {
		return err
	}
	h.shrunk = true
	return nil
}

// save writes a torn tail to its file. One that is there already was saved
// before a crash, and ends with these bytes, or was cut off at this very place
// earlier: then both are kept, in order.
func (h *handle) save(bad []byte, end int64) error {
	name := h.torn(end)
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
func (h *handle) torn(end int64) string {
	return strings.TrimSuffix(h.name, extension) + tornInfix + strconv.FormatInt(end, 10)
}

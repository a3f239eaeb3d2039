package jsonl

import "sync"

// maxHeld is the size of the largest file that a read with LineReader reads at once. Its
// bytes are then read once for the search for holes, for the tail and for the lines.
const maxHeld = 1 << 20

// heldFiles are the buffers of held files, of type *[]byte.
var heldFiles = sync.Pool{New: func() any { return new([]byte) }}

// heldFile is a file whose first bytes are in memory.
type heldFile struct {
	File
	bytes []byte
}

// ReadAt implements io.ReaderAt.
func (f *heldFile) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) <= int64(len(f.bytes)) {
		return copy(b, f.bytes[at:]), nil
	}
	return f.File.ReadAt(b, at)
}

// hold reads the whole file into *r.holding. It leaves out a file that this process
// appends to: the appends may have changed the end of the file since.
func (r *reader) hold() error {
	if _, written := r.store.cache.view(r.session); written || r.info.Size > maxHeld {
		return nil
	}
	if int64(cap(*r.holding)) < r.info.Size {
		*r.holding = make([]byte, r.info.Size)
	}
	held := (*r.holding)[:r.info.Size]
	n, err := readFull(r.file, held, 0)
	if err != nil {
		return err
	}
	r.held = held[:n]
	r.file = &heldFile{r.file, r.held}
	return nil
}

// heldLines returns the lines of a held file; ok is false if it is not held up to end.
func (r *reader) heldLines(end int64) (l backwardLines, ok bool) {
	if r.held == nil || end > int64(len(r.held)) {
		return l, false
	}
	bytes := r.held[:end:end]
	return backwardLines{file: r.file, end: end, buf: bytes, ends: newlines(nil, bytes)}, true
}

package jsonl

import (
	"bytes"
	"sync"
)

// holeFree records the files that this process has scanned for holes without finding
// one. Only a loss of power makes holes, and no process survives it. So one scan per
// file and process is enough.
type holeFree struct {
	mu     sync.Mutex
	inodes map[uint64]struct{}
}

// maxHoleFree bounds the number of recorded files.
const maxHoleFree = 1 << 16

func (s *holeFree) has(inode uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.inodes[inode]
	return ok
}

func (s *holeFree) add(inode uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inodes == nil || len(s.inodes) >= maxHoleFree {
		s.inodes = map[uint64]struct{}{}
	}
	s.inodes[inode] = struct{}{}
}

// tailBeforeHole scans the last bytes of the file for holes. If there is one, it
// returns the tail that ends before it. Complete appends may follow a hole, but were
// not acknowledged as durable; readers must not see them.
func (r *reader) tailBeforeHole() (t tail, found bool, err error) {
	if r.store.holeFree.has(r.info.Inode) {
		return t, false, nil
	}
	hasHole, err := r.hasNUL(max(0, r.info.Size-window), r.info.Size)
	if err != nil {
		return t, false, err
	}
	if !hasHole {
		r.store.holeFree.add(r.info.Inode)
		return t, false, nil
	}
	t, err = r.scanTail(r.info.Size, 0, 0)
	return t, t.damage == nil, err
}

var chunks = sync.Pool{New: func() any { return new([largestChunk]byte) }}

// hasNUL reports whether the bytes from from to to include a NUL. A line never has one.
func (s *source) hasNUL(from, to int64) (bool, error) {
	chunk := chunks.Get().(*[largestChunk]byte)
	defer chunks.Put(chunk)
	for from < to {
		n, err := readFull(s.file, chunk[:min(to-from, largestChunk)], from)
		if err != nil {
			return false, err
		}
		if n == 0 {
			break // the file was truncated
		}
		if bytes.IndexByte(chunk[:n], 0) >= 0 {
			return true, nil
		}
		from += int64(n)
	}
	return false, nil
}

// block is the size that a disk writes completely or not at all.
const block = 512

// isHole reports whether the bad line at v.at has a hole: a run of NULs that begins at
// the start of the line or of a block, and ends at the end of a block or of the file.
// Other NULs are damage.
func (v *tailScanner) isHole(bad []byte) bool {
	at := v.base + int64(v.at)
	for end := 0; ; {
		i := bytes.IndexByte(bad[end:], 0)
		if i < 0 {
			return false
		}
		i += end
		for end = i; end < len(bad) && bad[end] == 0; end++ {
		}
		starts := i == 0 || (at+int64(i))%block == 0
		ends := v.at+end == len(v.buf) || (at+int64(end))%block == 0
		if starts && ends {
			return true
		}
	}
}

package jsonl

import (
	"bytes"
	"sync"
)

// solid remembers the files in which this process has looked for holes and
// found none. A loss of power makes holes, and no process survives one: so one
// look at a file is enough, whatever is appended later.
type holeFree struct {
	mu     sync.Mutex
	inodes map[uint64]struct{}
}

// maxSolid bounds how many files are remembered.
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

// beforeHole finds the tail that ends before a hole, as far back as unfinished
// writes can reach. Complete appends may follow a hole, of the same write or of
// others that were not synced, and must not be shown.
func (r *reader) tailBeforeHole() (t tail, found bool, err error) {
	if r.store.holeFree.has(r.info.Inode) {
		return t, false, nil
	}
	hollow, err := r.hasNUL(max(0, r.info.Size-window), r.info.Size)
	if err != nil {
		return t, false, err
	}
	if !hollow {
		r.store.holeFree.add(r.info.Inode)
		return t, false, nil
	}
	t, err = r.scanTail(r.info.Size, 0, 0)
	return t, t.damage == nil, err
}

var chunks = sync.Pool{New: func() any { return new([largestChunk]byte) }}

// hasNUL looks for a NUL byte, which no line has.
func (s *source) hasNUL(from, to int64) (bool, error) {
	chunk := chunks.Get().(*[largestChunk]byte)
	defer chunks.Put(chunk)
	for from < to {
		n, err := readFull(s.file, chunk[:min(to-from, largestChunk)], from)
		if err != nil {
			return false, err
		}
		if n == 0 {
			break // the file was cut meanwhile
		}
		if bytes.IndexByte(chunk[:n], 0) >= 0 {
			return true, nil
		}
		from += int64(n)
	}
	return false, nil
}

// block is what reaches a disk whole or not at all.
const block = 512

// holed reports whether the bad line at v.at lacks blocks that were never
// written: a run of NULs from the start of the line or of a block up to the end
// of a block or of the file. Other NULs are damage.
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

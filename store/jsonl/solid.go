package jsonl

import (
	"bytes"
	"sync"
)

// solid remembers the files in which this process has looked for holes and
// found none. A loss of power makes holes, and no process survives one: so one
// look at a file is enough, whatever is appended later.
type solid struct {
	mu     sync.Mutex
	inodes map[uint64]struct{}
}

// maxSolid bounds how many files are remembered.
const maxSolid = 1 << 16

func (s *solid) has(inode uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.inodes[inode]
	return ok
}

func (s *solid) add(inode uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inodes == nil || len(s.inodes) >= maxSolid {
		s.inodes = map[uint64]struct{}{}
	}
	s.inodes[inode] = struct{}{}
}

// beforeHole finds the tail that ends before a hole, as far back as unfinished
// writes can reach. Complete appends may follow a hole, of the same write or of
// others that were not synced, and must not be shown.
func (r *reader) beforeHole() (t tail, found bool, err error) {
	if r.store.solid.has(r.info.Inode) {
		return t, false, nil
	}
	hollow, err := r.hasNUL(max(0, r.info.Size-window), r.info.Size)
	if err != nil {
		return t, false, err
	}
	if !hollow {
		r.store.solid.add(r.info.Inode)
		return t, false, nil
	}
	t, err = r.survey(r.info.Size, 0, 0)
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

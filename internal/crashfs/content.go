package crashfs

import "slices"

// block is the size in bytes that a disk writes completely or not at all.
const block = 512

// content is the bytes of a file. Written bytes are never changed in place, so copies
// may share them.
type content struct {
	data    []byte // as processes read them
	synced  []byte // as they are on disk
	changes []edit // since the last sync
	// lost are the blocks that a failed sync dropped: processes read them, but no later
	// sync writes them.
	lost map[int]bool
}

// edit is a write of data at an offset. Without data it is a truncation to at.
type edit struct {
	at   int64
	data []byte
}

func (c *content) write(at int64, b []byte) {
	if len(b) == 0 {
		return
	}
	e := edit{at, slices.Clone(b)}
	c.data = e.apply(c.data)
	c.changes = append(c.changes, e)
	for i := at / block; i <= (at+int64(len(b))-1)/block; i++ {
		delete(c.lost, int(i))
	}
}

func (c *content) truncate(size int64) {
	e := edit{at: size}
	c.data = e.apply(c.data)
	c.changes = append(c.changes, e)
	for i := range c.lost {
		if int64(i)*block >= size {
			delete(c.lost, i)
		}
	}
}

// apply returns the bytes after the edit. It does not modify data.
func (e *edit) apply(data []byte) []byte {
	size := int64(len(data))
	if e.data == nil {
		if e.at <= size {
			return data[:e.at:e.at]
		}
		return append(data, make([]byte, e.at-size)...)
	}
	if e.at >= size {
		return append(append(data, make([]byte, e.at-size)...), e.data...)
	}
	data = slices.Clone(data)
	n := copy(data[e.at:], e.data)
	return append(data, e.data[n:]...)
}

// sync writes the bytes to disk, except lost blocks.
func (c *content) sync() {
	c.synced = c.withLost(c.data)
	c.changes = nil
}

// withLost returns data, with the on-disk bytes in lost blocks.
func (c *content) withLost(data []byte) []byte {
	data = data[:len(data):len(data)]
	if len(c.lost) == 0 {
		return data
	}
	data = slices.Clone(data)
	for i := range c.lost {
		copyBlock(data, i, block, c.synced)
	}
	return data
}

// copyBlock copies block i of src to dst, as far as dst reaches. Bytes after the end of
// src are NULs.
func copyBlock(dst []byte, i, size int, src []byte) {
	from, to := i*size, min((i+1)*size, len(dst))
	if from >= to {
		return
	}
	n := 0
	if from < len(src) {
		n = copy(dst[from:to], src[from:])
	}
	clear(dst[from+n : to])
}

// syncPartly is a failed sync: it writes some blocks and loses the others.
func (c *content) syncPartly(l *chooser) {
	if c.lost == nil {
		c.lost = map[int]bool{}
	}
	for i := range blocks(int64(len(c.data)), block) {
		if c.dirty(i, block) && l.flip() {
			c.lost[i] = true
		}
	}
	c.sync()
}

// dirty reports whether a block has changed since the last sync.
func (c *content) dirty(i, size int) bool {
	from, to := int64(i)*int64(size), int64(i+1)*int64(size)
	return slices.ContainsFunc(c.changes, func(e edit) bool {
		return e.at < to && (e.data == nil || e.at+int64(len(e.data)) > from)
	})
}

func blocks(bytes int64, size int) int { return int((bytes + int64(size) - 1) / int64(size)) }

// afterCrash returns the content after a loss of power.
func (c *content) afterCrash(l *chooser) []byte {
	if len(c.changes) == 0 {
		return c.synced
	}
	size := l.blockSize()
	moments := c.history()
	longest := 0
	for _, data := range moments {
		longest = max(longest, len(data))
	}
	left := make([]byte, longest)
	of, end := l.moments(len(moments), blocks(int64(longest), size), func(i int) bool { return c.dirty(i, size) })
	for i := range blocks(int64(longest), size) {
		copyBlock(left, i, size, moments[of(i)])
	}
	for i := range c.lost {
		copyBlock(left, i, block, c.synced)
	}
	return left[:len(moments[end])]
}

// history returns the bytes at the last sync and after each later change.
func (c *content) history() [][]byte {
	moments := [][]byte{c.synced}
	data := c.synced[:len(c.synced):len(c.synced)]
	for i := range c.changes {
		data = c.changes[i].apply(data)
		moments = append(moments, data)
	}
	return moments
}

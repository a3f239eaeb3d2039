package crashfs

import "slices"

// block is what a disk writes whole or not at all.
const block = 512

// content is the bytes of a file. Bytes once written are never overwritten in
// place, so that copies may share them.
type content struct {
	data    []byte // as processes see them
	synced  []byte // as they are on disk
	changes []edit // since
	// lost are the blocks whose bytes a failed sync gave up: they are seen, but
	// no later sync writes them.
	lost map[int]bool
}

// edit is a write of data at an offset, or, without data, a truncation there.
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

// apply gives the bytes after the edit, and leaves those before as they are.
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

// sync puts the bytes on disk, but for those that were given up.
func (c *content) sync() {
	c.synced = c.onDisk(c.data)
	c.changes = nil
}

// onDisk is data with what is on disk in the place of lost blocks.
func (c *content) onDisk(data []byte) []byte {
	data = data[:len(data):len(data)]
	if len(c.lost) == 0 {
		return data
	}
	data = slices.Clone(data)
	for i := range c.lost {
		put(data, i, block, c.synced)
	}
	return data
}

// put makes a block of dst that of src, as far as dst reaches; behind the end
// of src it is NULs.
func put(dst []byte, i, size int, src []byte) {
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

// fail is a sync that fails: some blocks were written, the others are given up.
func (c *content) fail(l *lottery) {
	if c.lost == nil {
		c.lost = map[int]bool{}
	}
	for i := range blocks(int64(len(c.data)), block) {
		if c.dirty(i, block) && l.coin() {
			c.lost[i] = true
		}
	}
	c.sync()
}

// dirty reports whether a block was changed since the last sync.
func (c *content) dirty(i, size int) bool {
	from, to := int64(i)*int64(size), int64(i+1)*int64(size)
	return slices.ContainsFunc(c.changes, func(e edit) bool {
		return e.at < to && (e.data == nil || e.at+int64(len(e.data)) > from)
	})
}

func blocks(bytes int64, size int) int { return int((bytes + int64(size) - 1) / int64(size)) }

// surviving is the content after a loss of power.
func (c *content) surviving(l *lottery) []byte {
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
		put(left, i, size, moments[of(i)])
	}
	for i := range c.lost {
		put(left, i, block, c.synced)
	}
	return left[:len(moments[end])]
}

// history is the bytes at the last sync and after each change since.
func (c *content) history() [][]byte {
	moments := [][]byte{c.synced}
	data := c.synced[:len(c.synced):len(c.synced)]
	for i := range c.changes {
		data = c.changes[i].apply(data)
		moments = append(moments, data)
	}
	return moments
}

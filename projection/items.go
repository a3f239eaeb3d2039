package projection

import (
	"encoding/binary"
	"iter"
	"slices"
)

// itemList is a list of items that grows at its end. A copy of it is as cheap as a copy
// of a short list: it shares the older chunks.
type itemList struct {
	older  []chunk
	before int // the number of items in the older chunks
	newest []item
}

// chunk is a part of a list that does not change. packed has the items if all their payloads
// are in the log.
type chunk struct {
	n      int
	items  []item
	packed []byte
}

// packedList makes a list of items in packed chunks, where they can be packed.
func packedList(items []item) (l itemList) {
	for _, it := range items {
		l.add(it)
	}
	return l
}

// chunkLen is the number of items in a chunk that is full. The chunk of a decoded list may
// be longer.
const chunkLen = 64

func newChunk(items []item) chunk {
	if packed, ok := pack(items); ok {
		return chunk{n: len(items), packed: packed}
	}
	return chunk{n: len(items), items: items}
}

// packedItem is about the size of a packed item, which is a fifth of an item.
const packedItem = 14

// pack encodes items. ok is false if an item has a payload, or covers a range.
func pack(items []item) (packed []byte, ok bool) {
	if slices.ContainsFunc(items, func(it item) bool { return it.data != nil || it.redacted || !it.event() }) {
		return nil, false
	}
	b := make([]byte, 0, len(items)*packedItem)
	seq := int64(0)
	for i := range items {
		it := &items[i]
		b = append(b, byte(it.kind))
		b = binary.AppendVarint(b, it.seq-seq)
		b = binary.AppendUvarint(b, uint64(it.size))
		b = binary.LittleEndian.AppendUint64(b, it.sum)
		seq = it.seq
	}
	return slices.Clip(b), true
}

// all returns the items of the chunk. Do not modify them.
func (c *chunk) all() []item {
	if c.packed == nil {
		return c.items
	}
	items, b, seq := make([]item, c.n), c.packed, int64(0)
	for i := range items {
		after, n := binary.Varint(b[1:])
		size, m := binary.Uvarint(b[1+n:])
		seq += after
		items[i] = item{kind: itemKind(b[0]), seq: seq, size: uint32(size), sum: binary.LittleEndian.Uint64(b[1+n+m:])}
		b = b[1+n+m+8:]
	}
	return items
}

// listOf makes a list of items, and keeps the slice.
func listOf(items []item) itemList { return itemList{newest: slices.Clip(items)} }

func (l *itemList) len() int { return l.before + len(l.newest) }

func (l *itemList) add(it item) {
	if n := len(l.newest); n >= chunkLen && n == cap(l.newest) {
		l.older, l.before = append(l.older, newChunk(l.newest)), l.before+n
		l.newest = make([]item, 0, chunkLen)
	}
	l.newest = append(l.newest, it)
}

// clone copies the list. Adding to the list, or to the copy, does not change the other.
func (l *itemList) clone() itemList {
	return itemList{slices.Clip(l.older), l.before, slices.Clip(l.newest)}
}

// last returns the newest item; nil if there is none.
func (l *itemList) last() *item {
	if n := len(l.newest); n > 0 { // the newest chunk is empty only if the list is
		return &l.newest[n-1]
	}
	return nil
}

// all returns the items as one slice. Do not modify it.
func (l *itemList) all() []item { return l.from(0) }

// from returns the items from index n on, as one slice. Do not modify it.
func (l *itemList) from(n int) []item { return l.slice(n, l.len()) }

// slice returns the items from one index up to another one, as one slice. Do not modify
// it.
func (l *itemList) slice(from, to int) []item {
	if from >= l.before {
		return l.newest[from-l.before : to-l.before]
	}
	items := make([]item, 0, to-from)
	for chunk := range l.chunks(from, to) {
		items = append(items, chunk...)
	}
	return items
}

// chunks yields the items from one index up to another one, in slices.
func (l *itemList) chunks(from, to int) iter.Seq[[]item] {
	return func(yield func([]item) bool) {
		at := 0
		for i := 0; i <= len(l.older) && at < to; i++ {
			n := len(l.newest)
			if i < len(l.older) {
				n = l.older[i].n
			}
			if first, end := max(from-at, 0), min(to-at, n); first < end && !yield(l.chunk(i)[first:end]) {
				return
			}
			at += n
		}
	}
}

// chunk returns the items of chunk i; the newest one comes after the older ones.
func (l *itemList) chunk(i int) []item {
	if i < len(l.older) {
		return l.older[i].all()
	}
	return l.newest
}

// each yields the items, oldest first.
func (l *itemList) each() iter.Seq[*item] { return l.within(0, l.len()) }

// within yields the items from one index up to another one.
func (l *itemList) within(from, to int) iter.Seq[*item] {
	return func(yield func(*item) bool) {
		for chunk := range l.chunks(from, to) {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// backward yields the items, newest first.
func (l *itemList) backward() iter.Seq[*item] {
	return func(yield func(*item) bool) {
		for i := len(l.older); i >= 0; i-- {
			items := l.chunk(i)
			for j := len(items) - 1; j >= 0; j-- {
				if !yield(&items[j]) {
					return
				}
			}
		}
	}
}

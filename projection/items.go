package projection

import (
	"iter"
	"slices"
)

// itemList is a list of items that grows at its end. A copy of it is as cheap as a copy
// of a short list: it shares the older chunks.
type itemList struct {
	older  [][]item
	before int // the number of items in the older chunks
	newest []item
}

// chunkLen is the number of items in a chunk that is full. The chunk of a decoded list may
// be longer.
const chunkLen = 64

// listOf makes a list of items, and keeps the slice.
func listOf(items []item) itemList { return itemList{newest: slices.Clip(items)} }

func (l *itemList) len() int { return l.before + len(l.newest) }

func (l *itemList) add(it item) {
	if n := len(l.newest); n >= chunkLen && n == cap(l.newest) {
		l.older, l.before = append(l.older, l.newest), l.before+n
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
			chunk := l.newest
			if i < len(l.older) {
				chunk = l.older[i]
			}
			first, end := max(from-at, 0), min(to-at, len(chunk))
			if first < end && !yield(chunk[first:end]) {
				return
			}
			at += len(chunk)
		}
	}
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
			chunk := l.newest
			if i < len(l.older) {
				chunk = l.older[i]
			}
			for j := len(chunk) - 1; j >= 0; j-- {
				if !yield(&chunk[j]) {
					return
				}
			}
		}
	}
}

package projection

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
)

// leave leaves the payload in the log. The item keeps the size and a hash of it.
func (it *item) leave() {
	it.size, it.sum = uint32(len(it.data)), sumOf(it)
	it.data = nil
}

var sumSeed = maphash.MakeSeed()

func sumOf(it *item) uint64 { return maphash.Bytes(sumSeed, it.data) }

// bytes is the size of the payload, which is in the item or in the log.
func (it *item) bytes() int { return len(it.data) + int(it.size) }

// isPrefix reports whether the item is a context of placement prefix, or a context that
// cannot be read.
func (it *item) isPrefix() bool {
	if it.kind != contextItem {
		return false
	}
	placement, ok, err := rawjson.Lookup(it.data, "placement")
	if !ok {
		return err != nil
	}
	text, _ := rawjson.Text(placement)
	return text == string(event.AsPrefix)
}

// storedItems has a window of a list of items, with the payloads that are in the log.
type storedItems struct {
	// read gives items their payloads.
	read  func(items []item) error
	first int // the index of the first of items in the list
	items []item
}

// load returns n items of the list from index at on, with their payloads. It reads whole
// windows, which may reach into the next blocks.
func (s *storedItems) load(list *itemList, at, n, window int) ([]item, error) {
	if at < s.first || at+n > s.first+len(s.items) {
		items := slices.Clone(fewBytes(list.slice(at, min(at+window, list.len()))))
		if at >= s.first {
			copy(items, s.items[min(at-s.first, len(s.items)):])
		}
		s.items = nil // the other payloads are garbage
		if err := s.read(items); err != nil {
			return nil, err
		}
		s.first, s.items = at, items
	}
	return s.items[at-s.first:][:n], nil
}

// readPayloads reads the payloads that items left in the log. If an event was redacted
// meanwhile, its item becomes a redacted item.
func readPayloads(ctx context.Context, log *eventlog.Log, session string, items []item) error {
	left := inLog(items)
	for e, err := range readPath(ctx, log, session, pathOf(left), bareTransient) {
		if err == nil && e.Data == nil { // spilled, or redacted
			e, err = log.Event(ctx, session, e.Seq)
		}
		if err != nil {
			return fmt.Errorf("render session %q: %w", session, err)
		}
		for len(left) > 0 && left[0].seq == e.Seq {
			if !left[0].take(e.Effective()) {
				return replaced(session, e.Seq)
			}
			left = left[1:]
		}
	}
	if len(left) > 0 {
		return replaced(session, left[0].seq)
	}
	return nil
}

func replaced(session string, seq int64) error {
	return fmt.Errorf("render event %d: session %q was replaced during the read: %w", seq, session, eventlog.ErrNotFound)
}

func bareTransient(from, to int64) eventlog.Range {
	return eventlog.Between(from, to).Bare().Transient()
}

// inLog returns the items whose payloads are in the log, ordered by seq. The items have
// another order if a compaction moved some.
func inLog(items []item) (left []*item) {
	for i := range items {
		if items[i].size > 0 {
			left = append(left, &items[i])
		}
	}
	slices.SortStableFunc(left, func(a, b *item) int { return cmp.Compare(a.seq, b.seq) })
	return left
}

// pathOf returns the seqs of items that are ordered by seq.
func pathOf(items []*item) (p event.Path) {
	for _, it := range items {
		if n := len(p); n > 0 && it.seq <= p[n-1].To+1 {
			p[n-1].To = it.seq
		} else {
			p = append(p, event.Stretch{From: it.seq, To: it.seq})
		}
	}
	return p
}

// take gives the item the payload of event e. It reports false if e is not the event that the
// item was made of.
func (it *item) take(e *event.Event) bool {
	read := item{kind: it.kind, seq: it.seq, data: e.Data}
	switch {
	case it.kind == messageItem && e.Type.Name() != event.MessageAdded, it.kind == contextItem && e.Type.Name() != event.ContextAdded:
		return false
	case e.Redacted():
		read.redacted, read.data = true, e.Kept()
	case len(e.Data) != int(it.size) || sumOf(&read) != it.sum:
		return false
	}
	read.data = read.data.Clone()
	*it = read
	return true
}

// readPath yields the events of a path. It reads stretches with small gaps between them at
// once. between makes the range of a read.
func readPath(ctx context.Context, log *eventlog.Log, session string, path event.Path, between func(from, to int64) eventlog.Range) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for len(path) > 0 {
			n := path.Near()
			near := path[:n]
			for e, err := range log.Read(ctx, session, between(near[0].From, near[n-1].To)) {
				if err == nil && e.Seq > near[0].To {
					near = near[1:]
				}
				if err == nil && e.Seq < near[0].From {
					continue
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
			path = path[n:]
		}
	}
}

package projection

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// windowMargin is the number of items before and after a window that are rendered with it.
const windowMargin = 512

// Window renders some messages of a history that was loaded with Options.Lean, and reads their
// payloads from the log: the messages and contexts from the number from up to the number to, as
// Len counts them. A window has the entries of Messages, unless a call and its result, or two
// pieces of a group, are more than 512 items or 8 MiB apart.
func (h *HistoryState) Window(ctx context.Context, log *eventlog.Log, session string, from, to int, o ...RenderOptions) ([]Entry, error) {
	if from < 0 || to < from || to > h.Len() {
		return nil, fmt.Errorf("render session %q: there are no messages %d to %d of %d", session, from, to, h.Len())
	}
	w := h.window(from, to)
	items := w.state.items.newest
	if err := readPayloads(ctx, log, session, items); err != nil {
		return nil, err
	}
	r := newRendering(&w.state, optionsOf(o))
	r.begun = w.before > 0
	r.frozen.shows = func(at int) bool { return at >= w.from && at < w.to }
	if err := r.all(); err != nil {
		return nil, err
	}
	return r.frozen.entries, nil
}

// window is a part of a history. Its messages from from up to to are wanted.
type window struct {
	state    HistoryState
	from, to int
	before   int // items of the history before those of state
}

func (h *HistoryState) window(from, to int) (w window) {
	first, end, block := h.wanted(from, to)
	begin, last := h.margin(first, end)
	w.before = begin
	var items []item
	add := func(it *item) { items = append(items, *it) }
	at := begin
	for it := range h.items.within(begin, last) {
		if begin == 0 || at >= block || !it.isPrefix() { // the prefix is part of the first window
			if at < first {
				w.from = len(items) + 1
			}
			if at < end {
				w.to = len(items) + 1
			}
			add(it)
		}
		at++
	}
	if begin == 0 && last < block {
		for it := range h.items.within(last, block) {
			if it.isPrefix() {
				add(it)
			}
		}
	}
	if end == h.items.len() {
		w.to = len(items) + 1 // with the working set of a history without messages
	}
	w.state = HistoryState{items: listOf(items), cleared: h.cleared, since: h.since}
	if begin == 0 {
		w.state.files = h.files
	}
	w.state.executions = h.executions.within(h.items.seqs(begin, last, h.items.len()))
	return w
}

// wanted returns the indices of the items of messages, and the end of the first block.
func (h *HistoryState) wanted(from, to int) (first, end, block int) {
	block = h.items.len()
	if h.freezes == 0 {
		return from, to, block
	}
	at, n, frozen := 0, 0, false
	first, end = block, block
	for it := range h.items.each() {
		switch {
		case it.kind != freezeItem:
			if n == from {
				first = at
			}
			if n++; n == to+1 {
				end = at
			}
		case !frozen:
			block, frozen = at, true
		}
		at++
	}
	if to == from {
		end = first
	}
	return first, end, block
}

// margin widens a window by windowMargin items, or windowBytes, on each side.
func (h *HistoryState) margin(first, end int) (begin, last int) {
	begin = max(0, first-windowMargin)
	size := 0
	for it := range h.items.within(begin, first) {
		size += it.bytes()
	}
	for it := range h.items.within(begin, first) {
		if size <= windowBytes {
			break
		}
		size -= it.bytes()
		begin++
	}
	last = end
	size = 0
	for it := range h.items.within(end, min(h.items.len(), end+windowMargin)) {
		if size += it.bytes(); size > windowBytes {
			break
		}
		last++
	}
	return begin, last
}

// seqs returns the seqs between which executions belong to items; 0 is no bound.
func (l *itemList) seqs(begin, end, n int) (s event.Stretch) {
	if begin == 0 && end == n {
		return s
	}
	for it := range l.within(begin, end) {
		if it.event() {
			if s.From == 0 || it.seq < s.From {
				s.From = it.seq
			}
			s.To = max(s.To, it.seq)
		}
	}
	if begin == 0 {
		s.From = 0
	}
	if end == n {
		s.To = 0
	}
	return s
}

// within returns the executions between two seqs; 0 is no bound.
func (x *executions) within(s event.Stretch) (part executions) {
	pick := func(list []item) (some []item) {
		for i := range list {
			if seq := list[i].seq; seq >= s.From && (s.To == 0 || seq <= s.To) {
				some = append(some, list[i])
			}
		}
		return some
	}
	return executions{rendered: pick(x.rendered), open: pick(x.unanswered())}
}

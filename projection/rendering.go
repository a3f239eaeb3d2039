package projection

import "maps"

// Rendering renders a history that grows, for a caller that renders it before each
// request. It keeps the messages before the newest step_started, which later events do
// not change, and decodes each of them once. The zero value is ready for use. It is for
// one goroutine.
type Rendering struct {
	history *HistoryState
	since   int64 // of history: the newest compaction
	options RenderOptions
	// frozen are the entries of the first items and executions of the history.
	frozen            layout
	items, executions int
	begun             bool // the first block is frozen
	stored            *storedItems
}

// fewCalls is the room for results that the rendering makes for calls without one.
const fewCalls = 4

// Messages is HistoryState.Messages. The messages share memory with later results: do not
// modify them.
func (r *Rendering) Messages(h *HistoryState, o ...RenderOptions) ([]Entry, error) {
	options := optionsOf(o)
	if r.history != h || r.since != h.since || r.options != options {
		*r = *newRendering(h, options)
	}
	end, err := r.freeze(h)
	if err != nil {
		*r = Rendering{}
		return nil, err
	}
	l := r.frozen
	l.entries = append(make([]Entry, 0, len(l.entries)+h.items.len()-end+fewCalls), l.entries...)
	if err := r.open(&l, h, end); err != nil {
		return nil, err
	}
	return l.entries, nil
}

func newRendering(h *HistoryState, o RenderOptions) *Rendering {
	return &Rendering{history: h, since: h.since, options: o,
		frozen: layout{options: o, window: decodeWindow, cleared: h.cleared, answered: map[string]string{}}}
}

// all lays out the whole history.
func (r *Rendering) all() error {
	end, err := r.freeze(r.history)
	if err != nil {
		return err
	}
	return r.open(&r.frozen, r.history, end)
}

// open lays out the items after the newest step_started, from index from on.
func (r *Rendering) open(l *layout, h *HistoryState, from int) error {
	end := h.items.len()
	if r.begun && from == end {
		return nil
	}
	l.ends = true
	_, err := l.block(r.rangeOf(h, from, end), h.executions.unanswered(), r.files(h))
	return err
}

// freeze lays out the blocks that a step_started ended since the last call. It returns
// the index of the first item after them.
func (r *Rendering) freeze(h *HistoryState) (end int, err error) {
	at := r.items
	for it := range h.items.within(r.items, h.items.len()) {
		if at++; it.kind != freezeItem {
			continue
		}
		executions := h.executions.rendered[r.executions:]
		n := executedBefore(executions, it.seq)
		answered, err := r.frozen.block(r.rangeOf(h, r.items, at-1), executions[:n], r.files(h))
		if err != nil {
			return 0, err
		}
		maps.Copy(r.frozen.answered, answered)
		r.items, r.executions, r.begun = at, r.executions+n, true
	}
	return r.items, nil
}

// rangeOf returns the items of h from one index up to another one.
func (r *Rendering) rangeOf(h *HistoryState, from, to int) itemRange {
	return itemRange{&h.items, from, to, r.stored}
}

// files is the working set for the first block, nil for the other ones.
func (r *Rendering) files(h *HistoryState) *workingSet {
	if r.begun {
		return nil
	}
	return &h.files
}

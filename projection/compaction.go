package projection

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// compaction is a Compaction whose literal messages stay JSON.
type compaction struct {
	event.Compaction
	Entries []compactionEntry `json:"entries"`

	seq      int64
	redacted bool
}

type compactionEntry struct {
	Seq     int64          `json:"seq"`
	Message jsontext.Value `json:"message"`
}

// compacted folds a compaction_triggered.
func (h *HistoryState) compacted(e *event.Event) error {
	c := compaction{seq: e.Seq, redacted: e.Redacted()}
	data := e.Data
	if c.redacted {
		data = e.Kept()
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%w: %w", event.ErrInvalidPayload, err)
	}
	return h.compact(&c)
}

// compact replaces the items that c covers by the entries of c, and sets the cleared
// results. It removes the freezes: the next request has other bytes anyway.
func (h *HistoryState) compact(c *compaction) error {
	h.chain, h.usage, h.since = chain{}, nil, c.seq
	h.thaw()
	h.clear(c)
	entries, err := c.insertions()
	if err != nil || !c.replaces() {
		return err
	}
	h.replaceCovered(c, entries)
	h.executions.remove(c)
	h.files = newWorkingSet(c.ReadFiles, c.ModifiedFiles)
	h.forget()
	return nil
}

// thaw removes the freezes. It copies the list: a clone of the state shares it.
func (h *HistoryState) thaw() {
	if h.freezes > 0 {
		h.freezes = 0
		h.items = listOf(slices.DeleteFunc(slices.Clone(h.items.all()), func(it item) bool { return it.kind == freezeItem }))
		h.executions.thaw()
	}
}

// clear marks the results that render without content.
func (h *HistoryState) clear(c *compaction) {
	if len(c.Cleared) == 0 {
		return
	}
	h.cleared = maps.Clone(h.cleared)
	if h.cleared == nil {
		h.cleared = map[string]int64{}
	}
	for _, id := range c.Cleared {
		h.cleared[id] = c.seq
	}
}

// replaces reports whether c does more than clear results.
func (c *compaction) replaces() bool {
	return c.Replace || c.Covers != (event.Stretch{}) || len(c.Entries) > 0 || len(c.Cleared) == 0
}

// covers reports whether c removes the item.
func (c *compaction) covers(it *item) bool {
	if c.Replace {
		return true
	}
	from, to := it.seq, it.seq
	if !it.event() {
		from, to = it.covers.From, it.covers.To
	}
	return c.Covers.From > 0 && c.Covers.From <= from && to <= c.Covers.To
}

// insertion is an item in the place of the items that a compaction covers.
type insertion struct {
	item
	// moved reports that the entry refers to event seq: its item moves here.
	moved bool
}

// insertions returns the entries of c.
func (c *compaction) insertions() (entries []insertion, err error) {
	covered := c.Covers
	switch {
	case c.Replace:
		covered = event.Stretch{From: 1, To: c.seq}
	case covered == (event.Stretch{}):
		covered = event.Stretch{From: c.seq, To: c.seq}
	}
	literal := func(data jsontext.Value, redacted bool) {
		entries = append(entries, insertion{item: item{kind: literalItem, redacted: redacted, seq: c.seq, data: data, covers: covered}})
	}
	if c.redacted {
		literal(jsontext.Value(`{"role":"user"}`), true)
	}
	for _, entry := range c.Entries {
		if entry.Message == nil {
			entries = append(entries, insertion{item: item{seq: entry.Seq}, moved: true})
			continue
		}
		literal(entry.Message, false)
	}
	if len(c.Entries) == 0 && c.Summary != "" {
		data, err := json.Marshal(event.Message{Role: event.User, Parts: []event.Part{event.Text(c.Summary)}})
		if err != nil {
			return nil, err
		}
		literal(data, false)
	}
	return entries, nil
}

// replaceCovered removes the items that c covers and inserts the entries at the place
// of the first one. An event that an entry refers to moves there. An entry is ignored
// if its event is not in the history.
func (h *HistoryState) replaceCovered(c *compaction, entries []insertion) {
	inserted := h.resolve(entries)
	moved := map[int64]bool{}
	for _, it := range inserted {
		if it.event() {
			moved[it.seq] = true
		}
	}
	items := make([]item, 0, h.items.len()+len(inserted))
	at := -1
	for it := range h.items.each() {
		covered := c.covers(it)
		if at < 0 && (covered || c.Covers.To > 0 && it.seq > c.Covers.To && it.event()) {
			at = len(items)
		}
		if !covered && (!it.event() || !moved[it.seq]) {
			items = append(items, *it)
		}
	}
	if at < 0 {
		at = len(items)
	}
	items = slices.Insert(items, at, inserted...)
	if h.room != nil {
		h.items = packedList(items)
	} else {
		h.items = listOf(items)
	}
}

// resolve replaces the entries that refer to events by the items of these events,
// each once.
func (h *HistoryState) resolve(entries []insertion) (resolved []item) {
	events := h.referredItems(entries)
	for _, r := range entries {
		it := r.item
		if r.moved {
			var known bool
			if it, known = events[r.seq]; !known {
				continue
			}
			delete(events, r.seq)
		}
		resolved = append(resolved, it)
	}
	return resolved
}

// referredItems returns the items of the events that entries refer to, by seq.
func (h *HistoryState) referredItems(entries []insertion) map[int64]item {
	wanted := map[int64]bool{}
	for _, r := range entries {
		if r.moved {
			wanted[r.seq] = true
		}
	}
	events := make(map[int64]item, len(wanted))
	if len(wanted) == 0 {
		return events
	}
	for it := range h.items.each() {
		if it.event() && wanted[it.seq] {
			events[it.seq] = *it
		}
	}
	return events
}

// forget removes cleared calls without an older item in the history.
func (h *HistoryState) forget() {
	oldest := int64(0)
	for _, list := range [][]item{h.items.all(), h.executions.rendered, h.executions.unanswered()} {
		for i := range list {
			if s := list[i].seq; oldest == 0 || s < oldest {
				oldest = s
			}
		}
	}
	h.cleared = maps.Clone(h.cleared)
	maps.DeleteFunc(h.cleared, func(_ string, before int64) bool { return oldest == 0 || oldest >= before })
	if len(h.cleared) == 0 {
		h.cleared = nil
	}
}

package projection

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// compaction is a Compaction whose literal messages are left as they stand.
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

// compact puts what c holds in the place of what it covers. It thaws what was
// frozen: the bytes of the next request differ anyhow.
func (h *HistoryState) compact(c *compaction) error {
	h.chain, h.usage, h.since = chain{}, nil, c.seq
	h.thaw()
	h.clear(c)
	entries, err := c.literals()
	if err != nil || !c.replaces() {
		return err
	}
	h.place(c, entries)
	h.executions = slices.DeleteFunc(slices.Clone(h.executions), func(x item) bool { return c.covers(&x) })
	h.files = newWorkingSet(c.ReadFiles, c.ModifiedFiles)
	h.forget()
	return nil
}

// thaw drops the freezes, of which a state that shares the list keeps its own.
func (h *HistoryState) thaw() {
	if h.frozen() > 0 {
		h.items = slices.DeleteFunc(slices.Clone(h.items), func(it item) bool { return it.kind == freezeItem })
	}
}

// clear notes whose results are shown no more.
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

// KeepTurns is a compaction that puts a summary in the place of all messages before
// the last n turns. A turn begins with a user message that has more than tool
// results. Contexts and the messages of the system and the developer stay.
// ErrEmptyCompaction means that there is no message before those turns, or no summary.
//
// Compact appends it. It is refused with ErrSplitPair if one of the covered calls is
// pending.
func (h *HistoryState) KeepTurns(n int, summary string) (event.Compaction, error) {
	start, err := h.turnStart(n)
	if err != nil {
		return event.Compaction{}, err
	}
	c := event.Compaction{Strategy: "keep_turns", Covers: event.Covers{From: 1, To: start - 1}, Summary: summary}
	covered := 0
	for i := range h.items {
		it := &h.items[i]
		if start <= 1 || !it.event() || it.kind == freezeItem || !(&compaction{Compaction: c}).covers(it) {
			continue
		}
		instructs, err := it.instructs()
		if err != nil {
			return event.Compaction{}, err
		}
		if instructs {
			c.Entries = append(c.Entries, event.CompactionEntry{Seq: it.seq})
		} else {
			covered++
		}
	}
	if covered == 0 || summary == "" {
		return event.Compaction{}, &CompactionError{Err: ErrEmptyCompaction}
	}
	m := event.Message{Role: event.User, Parts: []event.Part{event.Text(summary)}}
	c.Entries = append(c.Entries, event.CompactionEntry{Message: &m})
	return c, nil
}

// instructs reports whether the item is a context or a message of the system or the
// developer.
func (it *item) instructs() (bool, error) {
	if it.kind.plain() == contextItem {
		return true, nil
	}
	o, err := it.outline()
	return o.Role == event.System || o.Role == event.Developer, err
}

// turnStart is the seq of the message that begins the nth last turn; for n = 0 it is
// after the last message. It is 0 if there are fewer turns.
func (h *HistoryState) turnStart(n int) (start int64, err error) {
	if n <= 0 && len(h.items) > 0 {
		return h.items[len(h.items)-1].seq + 1, nil
	}
	for _, it := range slices.Backward(h.items) {
		if it.kind.plain() != saidItem {
			continue
		}
		o, err := it.outline()
		if err != nil {
			return 0, err
		}
		asks := o.Asks()
		if start > 0 && !asks {
			if n--; n == 0 {
				return start, nil
			}
			start = 0
		}
		if asks {
			start = it.seq
		}
	}
	if n > 1 {
		start = 0
	}
	return start, nil
}

// replaces reports whether c does more than clearing results.
func (c *compaction) replaces() bool {
	return c.Replace || c.Covers != (event.Covers{}) || len(c.Entries) > 0 || len(c.Cleared) == 0
}

// covers reports whether it disappears.
func (c *compaction) covers(it *item) bool {
	if c.Replace {
		return true
	}
	from, to := it.seq, it.seq
	if !it.event() {
		from, to = it.stands.From, it.stands.To
	}
	return c.Covers.From > 0 && c.Covers.From <= from && to <= c.Covers.To
}

// literals are the entries of c as items; those that refer to events have no
// payload yet.
func (c *compaction) literals() (entries []item, err error) {
	stands := c.Covers
	switch {
	case c.Replace:
		stands = event.Covers{From: 1, To: c.seq}
	case stands == (event.Covers{}):
		stands = event.Covers{From: c.seq, To: c.seq}
	}
	literal := func(kind itemKind, data jsontext.Value) {
		entries = append(entries, item{kind: kind, seq: c.seq, data: data, stands: stands})
	}
	if c.redacted {
		literal(literalItem.redacted(), jsontext.Value(`{"role":"user"}`))
	}
	for _, entry := range c.Entries {
		if entry.Message == nil {
			entries = append(entries, item{seq: entry.Seq})
			continue
		}
		literal(literalItem, entry.Message)
	}
	if len(c.Entries) == 0 && c.Summary != "" {
		data, err := json.Marshal(event.Message{Role: event.User, Parts: []event.Part{event.Text(c.Summary)}})
		if err != nil {
			return nil, err
		}
		literal(literalItem, data)
	}
	return entries, nil
}

// place removes what c covers and puts the entries where the first of it stood.
// An event that an entry refers to moves there; one that is not part of the
// history any more is left out.
func (h *HistoryState) place(c *compaction, entries []item) {
	entries = h.resolve(entries)
	moved := map[int64]bool{}
	for _, it := range entries {
		if it.event() {
			moved[it.seq] = true
		}
	}
	kept := make([]item, 0, len(h.items)+len(entries))
	at := -1
	for i := range h.items {
		it := &h.items[i]
		covered := c.covers(it)
		if at < 0 && (covered || c.Covers.To > 0 && it.seq > c.Covers.To && it.event()) {
			at = len(kept)
		}
		if !covered && (!it.event() || !moved[it.seq]) {
			kept = append(kept, *it)
		}
	}
	if at < 0 {
		at = len(kept)
	}
	h.items = slices.Insert(kept, at, entries...)
}

// resolve finds the events that entries refer to, each once.
func (h *HistoryState) resolve(entries []item) (resolved []item) {
	events := h.referred(entries)
	for _, it := range entries {
		if it.kind == 0 {
			seq := it.seq
			var known bool
			if it, known = events[seq]; !known {
				continue
			}
			delete(events, seq)
		}
		resolved = append(resolved, it)
	}
	return resolved
}

// referred are the items of the events that entries refer to, by seq.
func (h *HistoryState) referred(entries []item) map[int64]item {
	wanted := map[int64]bool{}
	for _, it := range entries {
		if it.kind == 0 {
			wanted[it.seq] = true
		}
	}
	events := make(map[int64]item, len(wanted))
	if len(wanted) == 0 {
		return events
	}
	for _, it := range h.items {
		if it.event() && wanted[it.seq] {
			events[it.seq] = it
		}
	}
	return events
}

// forget drops what says nothing about any item left.
func (h *HistoryState) forget() {
	oldest := int64(0)
	for _, list := range [][]item{h.items, h.executions} {
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

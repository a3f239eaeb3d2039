package document

import (
	"math"

	"github.com/convlog/convlog/event"
)

// compaction fills in the Covers and the Entries of c. It covers the events from
// the first to the last forgotten item. The entries are the summary, if there is
// one, and the covered events that are not forgotten. The payload is nil if the
// session has none of the items.
func (a *adding) compaction(c event.Compaction, it *Item) (event.Payload, error) {
	f := forgotten{covers: event.Stretch{From: math.MaxInt64}, seqs: map[int64]bool{}}
	for _, name := range it.Forgets {
		a.forget(&f, a.named(name))
	}
	for _, i := range it.Drops {
		a.forget(&f, a.seqs[i])
	}
	if f.covers.To == 0 {
		return nil, nil
	}
	if it.Renews {
		a.forget(&f, a.newestCompaction())
	}
	c.Covers = f.covers
	if visible := a.visible(&f); len(visible) > 0 {
		if c.Summary != "" {
			m := event.Message{Role: event.User, Parts: []event.Part{event.Text(c.Summary)}}
			c.Entries = append(c.Entries, event.CompactionEntry{Message: &m})
		}
		c.Entries = append(c.Entries, visible...)
	}
	return c, nil
}

// forgotten are the events that a compaction forgets, and the range with all of
// them.
type forgotten struct {
	covers event.Stretch
	seqs   map[int64]bool
}

// forget forgets the event at seq. If the event is a compaction, forget also
// forgets the events that the compaction replaced.
func (a *adding) forget(f *forgotten, seq int64) {
	if seq == start {
		return // no item
	}
	f.seqs[seq] = true
	f.covers.From, f.covers.To = min(f.covers.From, seq), max(f.covers.To, seq)
	c, ok := a.s.compactions[seq]
	if !ok || c.Covers.From == 0 {
		return
	}
	f.covers.From = min(f.covers.From, c.Covers.From)
	visible := map[int64]bool{}
	for _, entry := range c.Entries {
		visible[entry.Seq] = true
	}
	for _, shown := range a.s.trail.ShownSince(c.Covers.From) {
		if shown <= c.Covers.To && !visible[shown] {
			f.seqs[shown] = true
		}
	}
}

// newestCompaction is the seq of the newest compaction on the active path; start
// if there is none.
func (a *adding) newestCompaction() (newest int64) {
	newest = start
	for seq := range a.s.compactions {
		if seq > newest && a.s.trail.Holds(seq) {
			newest = seq
		}
	}
	return newest
}

// visible are the covered events that are not forgotten.
func (a *adding) visible(f *forgotten) (entries []event.CompactionEntry) {
	for _, seq := range a.s.trail.ShownSince(f.covers.From) {
		if seq <= f.covers.To && !f.seqs[seq] {
			entries = append(entries, event.CompactionEntry{Seq: seq})
		}
	}
	return entries
}

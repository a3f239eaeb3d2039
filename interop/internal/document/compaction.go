package document

import (
	"math"

	"github.com/convlog/convlog/event"
)

// compaction fills in what c stands for: the events from the first to the last of
// those that are forgotten. In their place stand the summary, if there is one, and
// what of them is still shown. It is nil where the session has none of the items.
func (a *adding) compaction(c event.Compaction, it *Item) (event.Payload, error) {
	f := forgotten{covers: event.Covers{From: math.MaxInt64}, seqs: map[int64]bool{}}
	for _, name := range it.Forgets {
		a.forget(&f, a.named(name).seq)
	}
	if f.covers.To == 0 {
		return nil, nil
	}
	if it.Renews {
		a.forget(&f, a.compacted())
	}
	c.Covers = f.covers
	if kept := a.shown(&f); len(kept) > 0 {
		if c.Summary != "" {
			m := event.Message{Role: event.User, Parts: []event.Part{event.Text(c.Summary)}}
			c.Entries = append(c.Entries, event.CompactionEntry{Message: &m})
		}
		c.Entries = append(c.Entries, kept...)
	}
	return c, nil
}

// forgotten are the events that are forgotten, and the range they are in.
type forgotten struct {
	covers event.Covers
	seqs   map[int64]bool
}

// forget forgets the event at seq; of a compaction, all that it stands for.
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
	kept := map[int64]bool{}
	for _, entry := range c.Entries {
		kept[entry.Seq] = true
	}
	for _, said := range a.s.trail.SaidSince(c.Covers.From) {
		if said <= c.Covers.To && !kept[said] {
			f.seqs[said] = true
		}
	}
}

// compacted is the seq of the newest compaction on the path; start if there is none.
func (a *adding) compacted() (newest int64) {
	newest = start
	for seq := range a.s.compactions {
		if seq > newest && a.s.trail.Holds(seq) {
			newest = seq
		}
	}
	return newest
}

// shown are the events in the range that are not forgotten.
func (a *adding) shown(f *forgotten) (entries []event.CompactionEntry) {
	for _, seq := range a.s.trail.SaidSince(f.covers.From) {
		if seq <= f.covers.To && !f.seqs[seq] {
			entries = append(entries, event.CompactionEntry{Seq: seq})
		}
	}
	return entries
}

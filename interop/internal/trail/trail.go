// Package trail finds the events on the active path of a session that is being
// imported.
package trail

import (
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
)

// Trail is the tree of a session, and the seqs of its talk: messages, context
// entries and compactions. It is used by one goroutine.
type Trail struct {
	tree   event.Tree
	newest int64
	// talk and shown are the seqs of all branches, in order. Shown is the talk without
	// compactions.
	talk, shown []int64
}

// New returns the trail of a session without events.
func New() *Trail { return &Trail{} }

// Grow notes an event that does not move the head.
func (t *Trail) Grow(seq int64, kind event.Type) {
	t.newest = seq
	switch kind.Name() {
	case event.MessageAdded, event.ContextAdded:
		t.talk, t.shown = append(t.talk, seq), append(t.shown, seq)
	case event.CompactionTriggered:
		t.talk = append(t.talk, seq)
	}
}

// Moved notes the head_moved at seq, to event to.
func (t *Trail) Moved(seq, to int64) {
	t.newest = seq
	t.tree = append(t.tree, event.Move{Seq: seq, To: to})
}

// Remember notes any event.
func (t *Trail) Remember(e *event.Event) error {
	t.Grow(e.Seq, e.Type)
	return t.tree.Add(e)
}

// stretches yields the stretches of the path that ends with seq, newest first.
func (t *Trail) stretches(seq int64) iter.Seq[event.Stretch] {
	return func(yield func(event.Stretch) bool) {
		for seq > 0 {
			s, parent := t.tree.Run(seq)
			if !yield(s) {
				return
			}
			seq = parent
		}
	}
}

// Holds reports whether the event at seq is on the active path.
func (t *Trail) Holds(seq int64) bool { return t.tree.Leads(t.newest, seq) }

// Leads reports whether the event at seq is on the path to another one.
func (t *Trail) Leads(to, seq int64) bool { return t.tree.Leads(to, seq) }

// Leaves reports whether the head must move before an event can follow seq: seq is
// not on the active path, or talk follows it there.
func (t *Trail) Leaves(seq int64) bool {
	return !t.Holds(seq) || t.lastTalk(t.newest) > seq
}

// TalkBefore is the newest talk before seq on its path; 0 if there is none.
func (t *Trail) TalkBefore(seq int64) int64 { return t.lastTalk(t.tree.Parent(seq)) }

// lastTalk is the newest talk on the path that ends with seq; 0 if there is none.
func (t *Trail) lastTalk(seq int64) int64 {
	for s := range t.stretches(seq) {
		if talk := within(t.talk, s); len(talk) > 0 {
			return talk[len(talk)-1]
		}
	}
	return 0
}

// ShownSince are the messages and context entries on the active path from seq on;
// none if seq is not on the path.
func (t *Trail) ShownSince(seq int64) []int64 { return t.since(seq, t.shown) }

// TalkSince is the talk on the active path from seq on; none if seq is not on the
// path.
func (t *Trail) TalkSince(seq int64) []int64 { return t.since(seq, t.talk) }

func (t *Trail) since(seq int64, talk []int64) (seqs []int64) {
	if !t.Holds(seq) {
		return nil
	}
	for s := range t.stretches(t.newest) {
		found := within(talk, event.Stretch{From: max(s.From, seq), To: s.To})
		for _, at := range slices.Backward(found) {
			seqs = append(seqs, at)
		}
		if s.From <= seq {
			break
		}
	}
	slices.Reverse(seqs)
	return seqs
}

// within are the seqs in a stretch.
func within(seqs []int64, s event.Stretch) []int64 {
	from, _ := slices.BinarySearch(seqs, s.From)
	to, _ := slices.BinarySearch(seqs, s.To+1)
	return seqs[from:to]
}

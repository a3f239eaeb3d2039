// Package trail follows the paths of a session that is being imported.
package trail

import (
	"slices"
	"sort"

	"github.com/convlog/convlog/event"
)

// Trail knows the paths of a session's log. It is used by one goroutine.
type Trail struct{ legs []leg }

// leg is a stretch of events that follow each other; each but the first begins
// with a head_moved. The last one is active.
type leg struct {
	from, to int64 // seqs of its first and last event
	parent   int64 // what the head moved to, in an earlier leg
	talk     []int64
	said     []int64 // those of talk that the model is shown
}

// New is the trail of a session without events.
func New() *Trail { return &Trail{legs: []leg{{from: 1}}} }

// Grow takes in that the event at seq was appended.
func (t *Trail) Grow(seq int64, kind event.Type) {
	l := &t.legs[len(t.legs)-1]
	l.to = seq
	switch kind.Name() {
	case event.MessageAdded, event.ContextAdded:
		l.talk, l.said = append(l.talk, seq), append(l.said, seq)
	case event.CompactionTriggered:
		l.talk = append(l.talk, seq)
	}
}

// Moved takes in that the head was moved, by the event at seq.
func (t *Trail) Moved(seq, to int64) {
	t.legs = append(t.legs, leg{from: seq, to: seq, parent: to})
}

// Remember takes in an event that the log holds already.
func (t *Trail) Remember(e *event.Event) error {
	if e.Type.Name() != event.HeadMoved {
		t.Grow(e.Seq, e.Type)
		return nil
	}
	to, err := e.Parent()
	if err == nil {
		t.Moved(e.Seq, to)
	}
	return err
}

// home is the leg that holds seq.
func (t *Trail) home(seq int64) int {
	i := sort.Search(len(t.legs), func(i int) bool { return t.legs[i].from > seq })
	return max(i-1, 0)
}

// back yields the legs of the path that ends at seq, from there to the start, and
// up to which seq each is on it.
func (t *Trail) back(seq int64) func(yield func(l *leg, upTo int64) bool) {
	return func(yield func(*leg, int64) bool) {
		i := t.home(seq)
		for yield(&t.legs[i], seq) && i > 0 {
			seq = t.legs[i].parent
			i = t.home(seq)
		}
	}
}

// active is the path that the head is at the end of.
func (t *Trail) active() func(yield func(l *leg, upTo int64) bool) {
	return t.back(t.legs[len(t.legs)-1].to)
}

// Leaves reports whether the head must be moved so that the next event follows
// seq: where seq is not on the path, or talk follows it there.
func (t *Trail) Leaves(seq int64) bool {
	for l, upTo := range t.active() {
		if talk := upToSeq(l.talk, upTo); len(talk) > 0 && talk[len(talk)-1] > seq {
			return true
		}
		if l.from <= seq {
			return seq > upTo
		}
	}
	return false
}

// Holds reports whether the event at seq is on the path that the head is at the
// end of.
func (t *Trail) Holds(seq int64) bool {
	for l, upTo := range t.active() {
		if l.from <= seq {
			return seq <= upTo
		}
	}
	return false
}

// TalkBefore is the newest talk before seq on its path; 0 if there is none.
func (t *Trail) TalkBefore(seq int64) int64 {
	for l, upTo := range t.back(seq) {
		if talk := upToSeq(l.talk, min(upTo, seq-1)); len(talk) > 0 {
			return talk[len(talk)-1]
		}
	}
	return 0
}

// SaidSince are what the model is shown on the path, from seq on; nothing where
// seq is not on the path.
func (t *Trail) SaidSince(seq int64) []int64 {
	return t.since(seq, func(l *leg) []int64 { return l.said })
}

// TalkSince is the talk on the path, from seq on; nothing where seq is not on the
// path.
func (t *Trail) TalkSince(seq int64) []int64 {
	return t.since(seq, func(l *leg) []int64 { return l.talk })
}

func (t *Trail) since(seq int64, of func(*leg) []int64) (seqs []int64) {
	for l, upTo := range t.active() {
		found := upToSeq(of(l), upTo)
		for k := len(found) - 1; k >= 0 && found[k] >= seq; k-- {
			seqs = append(seqs, found[k])
		}
		if l.from <= seq {
			if seq > upTo {
				return nil
			}
			break
		}
	}
	slices.Reverse(seqs)
	return seqs
}

// upToSeq are the seqs, which are in order, up to one.
func upToSeq(seqs []int64, last int64) []int64 {
	return seqs[:sort.Search(len(seqs), func(i int) bool { return seqs[i] > last })]
}

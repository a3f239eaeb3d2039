package transcript

import (
	"slices"

	"github.com/convlog/convlog/event"
)

// turns numbers the turns of a session, on each of its paths.
type turns struct {
	place
	marks []mark
}

// place is where the path is.
type place struct {
	asking bool // the last message asks
	asked  int  // exchanges so far
	// started: there was a turn_started, and turns are numbered by these. open: one
	// is under way. owed: its input has not come yet; next is its index.
	started, open, owed bool
	next                int
}

// mark is the place behind an event at which it changed.
type mark struct {
	seq int64
	place
}

// take looks whether a turn begins with x, the entry behind before.
func (t *turns) take(x, before *Entry) {
	was := t.place
	switch x.Event.Type.Name() {
	case event.HeadMoved:
		if to, err := x.Event.Parent(); err == nil {
			t.place = t.at(to)
		}
	case event.TurnStarted:
		t.begin(x, before)
	case event.TurnCompleted, event.TurnHibernated:
		t.open, t.owed, t.asking = false, false, false
	case event.MessageAdded:
		t.message(x)
	}
	if t.place != was {
		t.marks = append(t.marks, mark{x.Event.Seq, t.place})
	}
}

// begin takes in a turn_started, whose input may stand before it.
func (t *turns) begin(x, before *Entry) {
	start, ok, err := event.Decode[event.TurnStart](&x.Event)
	if !ok || err != nil {
		return
	}
	t.started, t.open, t.owed, t.next = true, true, true, start.Index
	if before != nil && before.Begins {
		before.Turn, t.owed = start.Index, false
	}
}

func (t *turns) message(x *Entry) {
	if x.asks && (t.owed || !t.asking) {
		switch {
		case t.owed:
			x.Begins, x.Turn, t.owed = true, t.next, false
		case !t.started || !t.open:
			x.Begins, x.Turn = true, t.asked
		}
		t.asked++
	}
	t.asking = x.asks
}

// at is the place behind an event.
func (t *turns) at(seq int64) place {
	n, _ := slices.BinarySearchFunc(t.marks, seq+1, func(m mark, seq int64) int {
		if m.seq < seq {
			return -1
		}
		return 1
	})
	if n == 0 {
		return place{}
	}
	return t.marks[n-1].place
}

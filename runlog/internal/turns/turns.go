// Package turns finds the turn of each event of a lineage.
package turns

import (
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// Turn is a turn of a lineage.
type Turn struct {
	ID    ulid.ULID // of its turn_started; zero if a user message begins the turn
	Index int
	Start int64 // the seq of its first event
	// Input is the exchange that became the input of the turn; nil if there is none.
	Input *Turn
}

// Finder finds the turn of each event of a lineage. Next gets all events by seq,
// orphaned ones included.
//
// A turn begins with a turn_started. Without an open turn it begins with a user
// message that has more than tool results, if the message before it is no such
// message: this turn is an exchange. Messages that a program wrote in the user's name
// do not count. A turn_started after this message takes the
// exchange over: the exchange becomes the input of the turn. A rewind to the message
// leaves the turn and keeps the exchange.
type Finder struct {
	position
	// changes are the positions by seq.
	changes []change
}

// position is the turn at an event of the path.
type position struct {
	turn   *Turn // nil outside of any turn
	asking bool  // the last message is a user message with more than tool results
	asked  int   // exchanges on the path so far
}

type change struct {
	seq int64
	position
}

// Turn returns the turn of the last event; nil outside of any turn.
func (f *Finder) Turn() *Turn { return f.turn }

// Next folds an event. ended is true if the event is the last one of its turn.
func (f *Finder) Next(e *event.Event) (ended bool, err error) {
	before := f.position
	switch e.Type.Name() {
	case event.HeadMoved:
		m, _, err := event.Decode[event.HeadMove](e)
		if err != nil {
			return false, err
		}
		f.position = f.at(m.To)
	case event.TurnStarted:
		p, err := event.DecodeKept[event.TurnStart](e)
		if err != nil {
			return false, err
		}
		if f.turn != nil && f.turn.ID.IsZero() && f.asking {
			f.turn = &Turn{ID: e.ID, Index: p.Index, Start: f.turn.Start, Input: f.turn}
		} else {
			f.turn = &Turn{ID: e.ID, Index: p.Index, Start: e.Seq}
		}
	case event.TurnCompleted:
		p, err := event.DecodeKept[event.TurnCompletion](e)
		if err != nil {
			return false, err
		}
		ended = f.turn != nil && (p.TurnID.IsZero() || p.TurnID == f.turn.ID)
	case event.MessageAdded:
		if err := f.message(e); err != nil {
			return false, err
		}
	}
	if f.position != before {
		f.changes = append(f.changes, change{e.Seq, f.position})
	}
	return ended, nil
}

// End closes the turn after its last event.
func (f *Finder) End(seq int64) {
	f.turn, f.asking = nil, false
	f.changes = append(f.changes, change{seq, f.position})
}

func (f *Finder) message(e *event.Event) error {
	m, _, err := event.OutlineOf(e)
	if err != nil || m.Context {
		return err
	}
	asks := m.Asks()
	if asks && !f.asking {
		if f.turn == nil || f.turn.ID.IsZero() {
			f.turn = &Turn{Index: f.asked, Start: e.Seq}
		}
		f.asked++
	}
	f.asking = asks
	return nil
}

// at is the position after event seq.
func (f *Finder) at(seq int64) position {
	n, found := slices.BinarySearchFunc(f.changes, seq, func(m change, seq int64) int {
		if m.seq <= seq {
			return -1
		}
		return 1
	})
	if found || n == 0 {
		return position{}
	}
	return f.changes[n-1].position
}

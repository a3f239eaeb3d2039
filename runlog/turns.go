package runlog

import (
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// foundTurn is a turn of a lineage.
type foundTurn struct {
	id    ulid.ULID // of its turn_started; zero if a message of the user's begins it
	index int
	start int64 // the seq it begins with
	// input is the exchange that a turn_started took over; nil if it took over none.
	input *foundTurn
}

// turnFinder says which turn each event of a lineage belongs to. It is given
// all events by seq, rewound ones too. A rewind to behind such a message leaves
// a turn that took it over, but not the message.
//
// A turn begins with a turn_started, or, where none is open, with a message of
// the user's that says more than tool results and follows none such. A
// turn_started behind such a message takes it over as its input.
type turnFinder struct {
	place
	// marks are the places at which something changed.
	marks []mark
}

// place is where the path is.
type place struct {
	turn   *foundTurn // nil outside of any turn
	asking bool       // the last message asks
	asked  int        // exchanges on the path so far
}

type mark struct {
	seq int64
	place
}

// next takes in an event; f.turn is then the turn that the event belongs to.
// ended says that it is the turn's last.
func (f *turnFinder) next(e *event.Event) (ended bool, err error) {
	before := f.place
	switch e.Type.Name() {
	case event.HeadMoved:
		m, _, err := event.Decode[event.HeadMove](e)
		if err != nil {
			return false, err
		}
		f.place = f.at(m.To)
	case event.TurnStarted:
		p, err := event.DecodeKept[event.TurnStart](e)
		if err != nil {
			return false, err
		}
		if f.turn != nil && f.turn.id.IsZero() && f.asking {
			f.turn = &foundTurn{id: e.ID, index: p.Index, start: f.turn.start, input: f.turn}
		} else {
			f.turn = &foundTurn{id: e.ID, index: p.Index, start: e.Seq}
		}
	case event.TurnCompleted:
		p, err := event.DecodeKept[event.TurnCompletion](e)
		if err != nil {
			return false, err
		}
		ended = f.turn != nil && (p.TurnID.IsZero() || p.TurnID == f.turn.id)
	case event.MessageAdded:
		if err := f.message(e); err != nil {
			return false, err
		}
	}
	if f.place != before {
		f.marks = append(f.marks, mark{e.Seq, f.place})
	}
	return ended, nil
}

// end leaves the turn, behind its last event.
func (f *turnFinder) end(seq int64) {
	f.turn, f.asking = nil, false
	f.marks = append(f.marks, mark{seq, f.place})
}

func (f *turnFinder) message(e *event.Event) error {
	m, _, err := event.OutlineOf(e)
	if err != nil {
		return err
	}
	asks := m.Asks()
	if asks && !f.asking {
		if f.turn == nil || f.turn.id.IsZero() {
			f.turn = &foundTurn{index: f.asked, start: e.Seq}
		}
		f.asked++
	}
	f.asking = asks
	return nil
}

// at is the place behind an event.
func (f *turnFinder) at(seq int64) place {
	n, found := slices.BinarySearchFunc(f.marks, seq, func(m mark, seq int64) int {
		if m.seq <= seq {
			return -1
		}
		return 1
	})
	if found || n == 0 {
		return place{}
	}
	return f.marks[n-1].place
}

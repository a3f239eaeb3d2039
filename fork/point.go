package fork

import (
	"fmt"

	"github.com/oklog/ulid/v2"
)

// Point is a place in a session that a fork may begin behind, or a rewind go
// back to. The zero Point is Head.
type Point struct {
	kind     pointKind
	seq      int64
	event    ulid.ULID
	snapshot string
}

type pointKind int

const (
	atHead pointKind = iota
	atSeq
	atEvent
	atTurn
	beforeTurn
	atSnapshot
)

// Head is the newest event.
func Head() Point { return Point{} }

// AtSeq is the event with a seq of the lineage; 0 is before all events.
func AtSeq(n int64) Point { return Point{kind: atSeq, seq: n} }

// AtEvent is the event with an id, wherever in the lineage it stands. It is
// looked for from the newest event back.
func AtEvent(id ulid.ULID) Point { return Point{kind: atEvent, event: id} }

// AtTurn is the end of turn n, counted from 0: the last event of the append
// that holds its turn_completed. A turn without one ends before the next turn
// begins, or at the head.
//
// Turns are those whose turn_started is on the active path, n its index; of
// several with one index the newest counts. On a path without any turn_started,
// as imports have, a turn begins with each user message (with more in it than
// tool results) that does not itself follow a user message.
func AtTurn(n int) Point { return Point{kind: atTurn, seq: int64(n)} }

// BeforeTurn is the place before turn n, which AtTurn explains: before the first
// event of the append that holds its turn_started, or its user message.
func BeforeTurn(n int) Point { return Point{kind: beforeTurn, seq: int64(n)} }

// AtSnapshot is the last event of the append that holds the snapshot with an
// occurrence id, wherever in the lineage it stands. It is looked for from the
// newest event back.
func AtSnapshot(id string) Point { return Point{kind: atSnapshot, snapshot: id} }

func (p Point) String() string {
	switch p.kind {
	case atSeq:
		return fmt.Sprintf("seq %d", p.seq)
	case atEvent:
		return "event " + p.event.String()
	case atTurn:
		return fmt.Sprintf("the end of turn %d", p.seq)
	case beforeTurn:
		return fmt.Sprintf("the start of turn %d", p.seq)
	case atSnapshot:
		return fmt.Sprintf("snapshot %q", p.snapshot)
	default:
		return "the head"
	}
}

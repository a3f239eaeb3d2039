package answers

import (
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/httpapi"
)

// Difference is the last common event of two paths, and the other events of each.
type Difference struct {
	Ancestor tip  `json:"ancestor"`
	A        side `json:"a"`
	B        side `json:"b"`
}

// tip is the last event of a path.
type tip struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
}

type side struct {
	tip    `json:",inline"`
	Events int64      `json:"events"`
	Seqs   [][2]int64 `json:"seqs"`
}

// NewDifference is the JSON of a difference, without its events.
func NewDifference(d *fork.Difference) Difference {
	return Difference{tip(d.Ancestor), newSide(&d.A), newSide(&d.B)}
}

func newSide(s *fork.Side) side { return side{tip(s.Tip), s.Len(), pairs(s.Path)} }

// SideEvent is an event of one side.
type SideEvent struct {
	Side          string `json:"side"` // a or b
	httpapi.Event `json:",inline"`
}

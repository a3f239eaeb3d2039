package verify

import (
	"slices"

	"github.com/oklog/ulid/v2"
)

// seenIDs finds repeated ids. Most ids increase; these are in an ordered list, and all
// other ids in a map.
type seenIDs struct {
	rising []seenID
	others map[ulid.ULID]int64
}

type seenID struct {
	id  ulid.ULID
	seq int64
}

// add notes the id of an event. If an event has the id already, it returns its seq.
func (s *seenIDs) add(id ulid.ULID, seq int64) (first int64, twice bool) {
	if n := len(s.rising); n == 0 || s.rising[n-1].id.Compare(id) < 0 {
		s.rising = append(s.rising, seenID{id, seq})
		return 0, false
	}
	if first, twice = s.find(id); twice {
		return first, true
	}
	if s.others == nil {
		s.others = map[ulid.ULID]int64{}
	}
	s.others[id] = seq
	return 0, false
}

func (s *seenIDs) find(id ulid.ULID) (seq int64, found bool) {
	i, found := slices.BinarySearchFunc(s.rising, id, func(s seenID, id ulid.ULID) int { return s.id.Compare(id) })
	if found {
		return s.rising[i].seq, true
	}
	seq, found = s.others[id]
	return seq, found
}

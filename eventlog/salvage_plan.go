package eventlog

import (
	"cmp"
	"fmt"
	"slices"
)

// decide chooses the event of each seq, and finds the seqs that have none.
func (s *salvage) decide() error {
	if len(s.lines) == 0 {
		return s.nothing()
	}
	order := s.order()
	s.begin(&s.lines[order[0]])
	s.choose(order)
	s.finish(s.regroup())
	if len(s.chosen) == 0 {
		return s.nothing()
	}
	if err := s.bound(); err != nil {
		return err
	}
	s.fill()
	s.findLate()
	return nil
}

// sound reports whether there is nothing to mend.
func (s *salvage) sound() bool {
	return len(s.ruins)+len(s.ignored)+len(s.lost)+len(s.doubts)+len(s.late) == 0 && !s.loose && !s.glued && s.torn.Bytes == 0
}

// nothing is the error of a session without a line of its own.
func (s *salvage) nothing() error {
	reason := "no line of it can be read"
	for _, i := range s.ignored {
		reason = fmt.Sprintf("its storage holds events of session %q and none of its own", i.Session)
		break
	}
	return &RepairError{Session: s.session, Path: s.path, Reason: reason}
}

// order is the lines sorted by seq, and lines of one seq by place.
func (s *salvage) order() []int32 {
	order := make([]int32, len(s.lines))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.lines[a].seq, s.lines[b].seq) })
	return order
}

// begin decides which seq the session begins with: 1, but for a fork.
func (s *salvage) begin(first *found) {
	s.start = 1
	if fork := s.forks[first.place]; fork != nil && first.seq > 1 {
		s.start, s.fork = first.seq, fork
	}
}

// choose takes, of the lines with one seq, the one that follows from the event
// before, else the first.
func (s *salvage) choose(order []int32) {
	for len(order) > 0 {
		n := 1
		for n < len(order) && s.lines[order[n]].seq == s.lines[order[0]].seq {
			n++
		}
		same := order[:n]
		order = order[n:]
		pick := same[0]
		for _, i := range same {
			if s.follows(&s.lines[i], int(i)) {
				pick = i
				break
			}
		}
		s.doubt(&s.lines[pick], int(pick))
		s.chosen = append(s.chosen, s.lines[pick])
		s.reject(same, pick)
	}
}

// follows reports whether the line, s.lines[i], is chained to the event chosen
// last.
func (s *salvage) follows(line *found, i int) bool {
	prev, ok := s.before(line.seq)
	if !ok {
		return false
	}
	if line.linked {
		return s.lines[i-1].hash == prev
	}
	return s.links[line.place].after(prev) == line.hash
}

// before is the hash of the event before seq, if that is known.
func (s *salvage) before(seq int64) (Hash, bool) {
	if n := len(s.chosen); n > 0 {
		return s.chosen[n-1].hash, s.chosen[n-1].seq == seq-1
	}
	if s.fork != nil {
		return s.fork.Hash, true
	}
	return Hash{}, seq == s.start
}

// doubt notes a chosen line that is not chained to the event before it.
func (s *salvage) doubt(line *found, i int) {
	if _, known := s.before(line.seq); !known || s.follows(line, i) {
		return
	}
	s.doubts = append(s.doubts, Defect{Session: s.session, Seq: line.seq, Path: s.path, Offset: line.offset,
		Rule: "chain", Detail: errChain.Error() + "; it is kept as it stands"})
}

// reject notes the lines of one seq that were not chosen.
func (s *salvage) reject(same []int32, pick int32) {
	for _, i := range same {
		if i == pick {
			continue
		}
		line, reason := &s.lines[i], "another event with a seq that is taken"
		if line.hash == s.lines[pick].hash {
			reason = "stands twice"
		}
		s.ignored = appendIgnored(s.ignored, Ignored{Session: s.session, From: line.seq, To: line.seq,
			Offset: line.offset, Bytes: line.bytes, Reason: reason})
	}
}

// regroup makes the events of appends that lack some appends of their own. It
// returns where the append at the end begins in chosen, if it is not whole.
func (s *salvage) regroup() (open int) {
	begun, more := 0, int32(0) // where the append at hand begins, and how many events it lacks yet
	for i, end := 0, 0; i < len(s.chosen); i = end {
		end = s.countdown(i)
		within := i > 0 && s.within(i, more)
		if !within {
			begun = i
		}
		more = s.chosen[end-1].more
		if within || more > 0 && end < len(s.chosen) {
			s.loosen(i, end)
		}
	}
	if more == 0 {
		return len(s.chosen)
	}
	return begun
}

// countdown is the end of the stretch of chosen from i on that counts down as
// one append does.
func (s *salvage) countdown(i int) int {
	for i++; i < len(s.chosen); i++ {
		prev, line := &s.chosen[i-1], &s.chosen[i]
		if prev.more == 0 || line.seq != prev.seq+1 || line.more != prev.more-1 {
			break
		}
	}
	return i
}

// within reports whether chosen[i] is known to belong to the append of the event
// before it, which had more events to come.
func (s *salvage) within(i int, more int32) bool {
	missing := s.chosen[i].seq - s.chosen[i-1].seq - 1
	return int64(more) > missing && int64(s.chosen[i].more) == int64(more)-missing-1
}

// loosen makes each event of chosen[from:to] an append of its own.
func (s *salvage) loosen(from, to int) {
	for i := from; i < to; i++ {
		if s.chosen[i].more > 0 {
			s.chosen[i].more, s.loose = 0, true
		}
	}
}

// finish decides what is behind the last event: seqs that were lost, for which
// no later line speaks, or the remains of an append that was not finished. It
// begins at chosen[open].
func (s *salvage) finish(open int) {
	newest, end := s.chosen[len(s.chosen)-1], s.known()
	if s.last > newest.seq {
		s.loosen(open, len(s.chosen))
		open = len(s.chosen)
	}
	bad, alien := s.behind(end)
	switch whole := open == len(s.chosen); {
	case s.unended, !whole && len(bad) == 0 && alien == 0:
		s.leaveOut(open, bad)
	case len(bad) > 0:
		s.last += int64(len(bad))
		s.loosen(open, len(s.chosen))
	case !whole:
		s.last += min(int64(newest.more), alien)
		s.loosen(open, len(s.chosen))
	}
}

// known sets last to the highest seq of which a line, readable or not, is
// known, and returns the place of the last such line.
func (s *salvage) known() (end int64) {
	s.last = s.chosen[len(s.chosen)-1].seq
	end = s.lines[len(s.lines)-1].place
	for i := range s.ruins {
		if r := &s.ruins[i]; r.seq > 0 {
			s.last, end = max(s.last, r.seq), max(end, r.place)
		}
	}
	return end
}

// behind lists the unreadable pieces behind a place, and counts the lines of
// other sessions there.
func (s *salvage) behind(place int64) (bad []ruin, alien int64) {
	for _, r := range s.ruins {
		switch {
		case r.place <= place:
		case r.alien:
			alien++
		default:
			bad = append(bad, r)
		}
	}
	return bad, alien
}

// leaveOut takes an append that was not finished for the torn tail it is: what
// was found of it, chosen[open:], and what is bad behind that.
func (s *salvage) leaveOut(open int, bad []ruin) {
	from := s.size
	for _, line := range s.chosen[open:] {
		from = min(from, line.offset)
	}
	for _, r := range bad {
		from = min(from, r.offset)
	}
	s.torn = TornTail{Session: s.session, Path: s.path, Offset: from, Bytes: s.size - from}
	if open == len(s.chosen) {
		return
	}
	if s.chosen = s.chosen[:open]; open > 0 {
		s.last = s.chosen[open-1].seq
	}
}

// bound refuses to write lost events without end because one line claims a seq
// far away.
func (s *salvage) bound() error {
	missing := s.last - s.start + 1 - int64(len(s.chosen))
	room := int64(len(s.ruins))
	for i := range s.ruins {
		room = max(room, s.ruins[i].bytes/leastLine)
	}
	if missing <= max(maxLost, room) {
		return nil
	}
	return &RepairError{Session: s.session, Path: s.path, Reason: fmt.Sprintf(
		"%d events are missing between seq %d and %d, more than what cannot be read may have held", missing, s.start, s.last)}
}

// fill finds what was lost between the chosen events, and before and behind
// them.
func (s *salvage) fill() {
	claimed := map[int64]*ruin{}
	for i := range s.ruins {
		if r := &s.ruins[i]; r.seq > 0 {
			claimed[r.seq] = r
		}
	}
	from, after := s.start, int64(-1)
	for i := range s.chosen {
		line := &s.chosen[i]
		if from < line.seq {
			s.lose(from, line.seq-1, s.between(after, line.place), claimed)
		}
		from, after = line.seq+1, line.place
	}
	if from <= s.last {
		s.lose(from, s.last, s.between(after, s.next), claimed)
	}
}

// between are the pieces at the places between two that claim no seq.
func (s *salvage) between(after, before int64) (pieces []ruin) {
	at, _ := slices.BinarySearchFunc(s.ruins, after+1, func(r ruin, place int64) int { return cmp.Compare(r.place, place) })
	for ; at < len(s.ruins) && s.ruins[at].place < before; at++ {
		if s.ruins[at].seq == 0 {
			pieces = append(pieces, s.ruins[at])
		}
	}
	return pieces
}

// lose notes the seqs from..to as lost: in the pieces that claim them, or else
// in those that stand there, one by one if there are as many.
func (s *salvage) lose(from, to int64, pieces []ruin, claimed map[int64]*ruin) {
	var rest []int64
	for seq := from; seq <= to; seq++ {
		if r := claimed[seq]; r != nil {
			s.loseIn(seq, seq, []ruin{*r})
		} else {
			rest = append(rest, seq)
		}
	}
	if len(rest) == len(pieces) {
		for i, seq := range rest {
			s.loseIn(seq, seq, pieces[i:i+1])
		}
		return
	}
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && rest[n] == rest[n-1]+1 {
			n++
		}
		s.loseIn(rest[0], rest[n-1], pieces)
		rest = rest[n:]
	}
}

// loseIn notes the seqs from..to as lost in the stretch that the pieces span.
func (s *salvage) loseIn(from, to int64, pieces []ruin) {
	lost := LostRange{From: from, To: to, Offset: -1, Reason: "no line with this seq is there"}
	if n := len(pieces); n > 0 {
		first, last := &pieces[0], &pieces[n-1]
		lost.Offset, lost.Reason = first.offset, first.reason
		if lost.Bytes = first.bytes; n > 1 && first.offset >= 0 {
			lost.Bytes = last.offset + last.bytes - first.offset
		}
	}
	at, _ := slices.BinarySearchFunc(s.lost, from, func(r LostRange, seq int64) int { return cmp.Compare(r.From, seq) })
	s.lost = slices.Insert(s.lost, at, lost)
}

// findLate finds the chosen lines that stand before an earlier event's: whoever
// reads the events in order passes them.
func (s *salvage) findLate() {
	s.late = map[int64]bool{}
	furthest := int64(-1)
	for i := range s.chosen {
		place := s.chosen[i].place
		if place < furthest {
			s.late[place] = true
		}
		furthest = max(furthest, place)
	}
}

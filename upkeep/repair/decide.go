package repair

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line"
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

// sound reports whether nothing needs repair.
func (s *salvage) sound() bool {
	return len(s.pieces)+len(s.ignored)+len(s.lost)+len(s.unchained)+len(s.late) == 0 && !s.loose && !s.noNewline && s.torn.Bytes == 0 && s.copied() == 0
}

// nothing is the error of a session without a readable line of its own.
func (s *salvage) nothing() error {
	reason := "no line of it can be read"
	for _, i := range s.ignored {
		reason = fmt.Sprintf("its storage holds events of session %q and none of its own", i.Session)
		break
	}
	return &Error{Session: s.session, Path: s.path, Reason: reason}
}

// order sorts the lines by seq, and lines of one seq by place.
func (s *salvage) order() []int32 {
	order := make([]int32, len(s.lines))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.lines[a].seq, s.lines[b].seq) })
	return order
}

// begin decides the first seq of the session: 1, except for a fork.
func (s *salvage) begin(first *foundLine) {
	s.start = 1
	if fork := s.forks[first.place]; fork != nil && first.seq > 1 {
		s.start, s.fork = first.seq, fork
	}
}

// choose chooses, of the lines with one seq, the line that follows from the event
// before, else the first line.
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
		s.checkChain(&s.lines[pick], int(pick))
		s.chosen = append(s.chosen, s.lines[pick])
		s.reject(same, pick)
	}
}

// follows reports whether a line, s.lines[i], is chained to the event chosen last.
func (s *salvage) follows(l *foundLine, i int) bool {
	prev, ok := s.hashBefore(l.seq)
	if !ok {
		return false
	}
	if l.linked {
		return s.lines[i-1].hash == prev
	}
	return s.links[l.place].After(prev) == l.hash
}

// hashBefore is the hash of the event before seq, if it is known.
func (s *salvage) hashBefore(seq int64) (line.Hash, bool) {
	if n := len(s.chosen); n > 0 {
		return s.chosen[n-1].hash, s.chosen[n-1].seq == seq-1
	}
	if s.fork != nil {
		return line.Hash(s.fork.Hash), true
	}
	return line.Hash{}, seq == s.start
}

// checkChain notes a chosen line that is unchained: it does not follow from the event before.
func (s *salvage) checkChain(l *foundLine, i int) {
	if _, known := s.hashBefore(l.seq); !known || s.follows(l, i) {
		return
	}
	s.unchained = append(s.unchained, eventlog.Defect{Session: s.session, Seq: l.seq, Path: s.path, Offset: l.offset,
		Rule: "chain", Detail: line.ErrChain.Error() + "; it is kept as it is"})
}

// reject notes the lines of one seq that were not chosen.
func (s *salvage) reject(same []int32, pick int32) {
	for _, i := range same {
		if i == pick {
			continue
		}
		l, reason := &s.lines[i], "another event with a seq that is taken"
		if l.hash == s.lines[pick].hash {
			reason = "stored twice"
		}
		s.ignored = appendIgnored(s.ignored, Range{Session: s.session, From: l.seq, To: l.seq,
			Offset: l.offset, Bytes: l.bytes, Reason: reason})
	}
}

// regroup makes each event of an incomplete append an append of its own. It returns
// the index in chosen of the append at the end, if that is incomplete.
func (s *salvage) regroup() (open int) {
	begun, more := 0, int32(0) // where the current append begins, and how many events it lacks
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

// countdown is the end of the run of chosen from i on that counts down as one append
// does.
func (s *salvage) countdown(i int) int {
	for i++; i < len(s.chosen); i++ {
		prev, l := &s.chosen[i-1], &s.chosen[i]
		if prev.more == 0 || l.seq != prev.seq+1 || l.more != prev.more-1 {
			break
		}
	}
	return i
}

// within reports whether chosen[i] belongs to the append of the event before it, which
// lacked more events.
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

// finish decides on the storage after the last event: lost events that no later line
// proves, or an unfinished append. That begins at chosen[open].
func (s *salvage) finish(open int) {
	newest, end := s.chosen[len(s.chosen)-1], s.lastKnown()
	if s.last > newest.seq {
		s.loosen(open, len(s.chosen))
		open = len(s.chosen)
	}
	unreadable, foreign := s.after(end)
	switch whole := open == len(s.chosen); {
	case s.unended, !whole && len(unreadable) == 0 && foreign == 0:
		s.leaveOut(open, unreadable)
	case len(unreadable) > 0:
		s.last += int64(len(unreadable))
		s.loosen(open, len(s.chosen))
	case !whole:
		s.last += min(int64(newest.more), foreign)
		s.loosen(open, len(s.chosen))
	}
}

// lastKnown sets last to the highest seq of any line, readable or not, and returns the
// place of the last such line.
func (s *salvage) lastKnown() (end int64) {
	s.last = s.chosen[len(s.chosen)-1].seq
	end = s.lines[len(s.lines)-1].place
	for i := range s.pieces {
		if r := &s.pieces[i]; r.seq > 0 {
			s.last, end = max(s.last, r.seq), max(end, r.place)
		}
	}
	return end
}

// after lists the unreadable pieces after a place, and counts the foreign
// lines there.
func (s *salvage) after(place int64) (unreadable []piece, foreign int64) {
	for _, r := range s.pieces {
		switch {
		case r.place <= place:
		case r.foreign:
			foreign++
		default:
			unreadable = append(unreadable, r)
		}
	}
	return unreadable, foreign
}

// leaveOut treats an unfinished append as a torn tail: chosen[open:], and the
// unreadable pieces after it.
func (s *salvage) leaveOut(open int, unreadable []piece) {
	from := s.size
	for _, l := range s.chosen[open:] {
		from = min(from, l.offset)
	}
	for _, r := range unreadable {
		from = min(from, r.offset)
	}
	s.torn = eventlog.TornTail{Session: s.session, Path: s.path, Offset: from, Bytes: s.size - from}
	if open == len(s.chosen) {
		return
	}
	if s.chosen = s.chosen[:open]; open > 0 {
		s.last = s.chosen[open-1].seq
	}
}

// bound refuses to write lost events without end because one line claims a distant
// seq.
func (s *salvage) bound() error {
	missing := s.last - s.start + 1 - int64(len(s.chosen))
	room := int64(len(s.pieces))
	for i := range s.pieces {
		room = max(room, s.pieces[i].bytes/leastLine)
	}
	if missing <= max(maxLost, room) {
		return nil
	}
	return &Error{Session: s.session, Path: s.path, Reason: fmt.Sprintf(
		"%d events are missing between seq %d and %d, more than the unreadable bytes may have held", missing, s.start, s.last)}
}

// fill finds the lost events between the chosen ones, before and after them.
func (s *salvage) fill() {
	claimed := map[int64]*piece{}
	for i := range s.pieces {
		if r := &s.pieces[i]; r.seq > 0 {
			claimed[r.seq] = r
		}
	}
	from, after := s.start, int64(-1)
	for i := range s.chosen {
		l := &s.chosen[i]
		if from < l.seq {
			s.lose(from, l.seq-1, s.between(after, l.place), claimed)
		}
		from, after = l.seq+1, l.place
	}
	if from <= s.last {
		s.lose(from, s.last, s.between(after, s.next), claimed)
	}
}

// between are the pieces without a seq between two places.
func (s *salvage) between(after, before int64) (pieces []piece) {
	at, _ := slices.BinarySearchFunc(s.pieces, after+1, func(r piece, place int64) int { return cmp.Compare(r.place, place) })
	for ; at < len(s.pieces) && s.pieces[at].place < before; at++ {
		if s.pieces[at].seq == 0 {
			pieces = append(pieces, s.pieces[at])
		}
	}
	return pieces
}

// lose notes the seqs from..to as lost: in the pieces that claim them, else in the
// pieces at that place, one by one if there are as many.
func (s *salvage) lose(from, to int64, pieces []piece, claimed map[int64]*piece) {
	var rest []int64
	for seq := from; seq <= to; seq++ {
		if r := claimed[seq]; r != nil {
			s.loseIn(seq, seq, []piece{*r})
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

// loseIn notes the seqs from..to as lost within the bytes that the pieces span.
func (s *salvage) loseIn(from, to int64, pieces []piece) {
	lost := Range{Session: s.session, From: from, To: to, Offset: -1, Reason: "no line with this seq is there"}
	if n := len(pieces); n > 0 {
		first, last := &pieces[0], &pieces[n-1]
		lost.Offset, lost.Reason = first.offset, first.reason
		if lost.Bytes = first.bytes; n > 1 && first.offset >= 0 {
			lost.Bytes = last.offset + last.bytes - first.offset
		}
	}
	at, _ := slices.BinarySearchFunc(s.lost, from, func(r Range, seq int64) int { return cmp.Compare(r.From, seq) })
	s.lost = slices.Insert(s.lost, at, lost)
}

// findLate finds the chosen lines that are stored before an earlier event's line: a
// reader that needs the events in order passes them first.
func (s *salvage) findLate() {
	s.late = map[int64]bool{}
	furthest := int64(-1)
	for i := range s.chosen {
		place := s.chosen[i].place
		if s.chosen[i].copied {
			continue
		}
		if place < furthest {
			s.late[place] = true
		}
		furthest = max(furthest, place)
	}
}

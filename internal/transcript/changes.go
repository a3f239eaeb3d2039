package transcript

import (
	"encoding/binary"
	"slices"
)

// changes is the states of the numbering by seq. A change of the state takes about four
// bytes.
type changes struct {
	marks  []mark
	text   []byte // the changes after each mark: differences to the change before
	newest change
	count  int
}

// change is a new state and the seq of its event.
type change struct {
	seq int64
	turnState
}

// mark is a change, and the place in the text of the changes after it.
type mark struct {
	change
	at int
}

// markEvery is the number of changes from one mark to the next.
const markEvery = 64

// add adds a change. Its seq is higher than the seqs before.
func (l *changes) add(c change) {
	if l.count%markEvery == 0 {
		l.marks = append(l.marks, mark{c, len(l.text)})
	} else {
		l.text = binary.AppendVarint(l.text, c.seq-l.newest.seq)
		l.text = binary.AppendVarint(l.text, int64(c.count-l.newest.count))
		l.text = binary.AppendVarint(l.text, int64(c.index-l.newest.index))
		l.text = append(l.text, c.flags())
	}
	l.newest = c
	l.count++
}

// at returns the state after the event at seq.
func (l *changes) at(seq int64) turnState {
	n, _ := slices.BinarySearchFunc(l.marks, seq+1, func(m mark, seq int64) int {
		if m.seq < seq {
			return -1
		}
		return 1
	})
	if n == 0 {
		return turnState{}
	}
	c, end := l.marks[n-1].change, len(l.text)
	if n < len(l.marks) {
		end = l.marks[n].at
	}
	for text := l.text[l.marks[n-1].at:end]; len(text) > 0; {
		next := c
		text = next.read(text)
		if next.seq > seq {
			break
		}
		c = next
	}
	return c.turnState
}

// read reads the change after c into c, and returns the rest of the text.
func (c *change) read(text []byte) []byte {
	var differences [3]int64
	for i := range differences {
		n := 0
		differences[i], n = binary.Varint(text)
		text = text[n:]
	}
	c.seq += differences[0]
	c.count += int(differences[1])
	c.index += int(differences[2])
	c.setFlags(text[0])
	return text[1:]
}

// flags are the booleans of a state.
func (s *turnState) flags() (b byte) {
	for i, set := range []bool{s.inputLast, s.started, s.open, s.needsInput} {
		if set {
			b |= 1 << i
		}
	}
	return b
}

func (s *turnState) setFlags(b byte) {
	s.inputLast, s.started, s.open, s.needsInput = b&1 != 0, b&2 != 0, b&4 != 0, b&8 != 0
}

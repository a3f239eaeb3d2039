package projection

import (
	"cmp"
	"slices"
)

// pathTree is the tree of a lineage: stretches of seqs, each but the first of
// which begins with a head_moved and goes on from a place in an earlier one.
type pathTree struct {
	turns []turn // in the order of seqs
	// needed is for each stretch the last seq of it that somebody needs; 0 is none.
	needed []int64
	// uses is how many needed stretches go on from a seq.
	uses map[int64]int
}

// turn takes in that event at goes on from event to; from the one before it, it
// begins no stretch.
func (t *pathTree) turn(at, to int64) {
	if to != at-1 {
		t.turns = append(t.turns, turn{at: at, to: to})
	}
}

// stretch is the index of the stretch that seq lies in.
func (t *pathTree) stretch(seq int64) int {
	i, found := slices.BinarySearchFunc(t.turns, seq, func(t turn, seq int64) int { return cmp.Compare(t.at, seq) })
	if found {
		i++
	}
	return i
}

// leads reports whether the path that ends at from goes through seq; all of them
// come from 0.
func (t *pathTree) leads(from, seq int64) bool {
	for from > seq {
		i := t.stretch(from)
		if i == 0 || t.turns[i-1].at <= seq {
			return true
		}
		from = t.turns[i-1].to
	}
	return from == seq
}

// begin forgets what is needed.
func (t *pathTree) begin() {
	t.needed, t.uses = make([]int64, len(t.turns)+1), map[int64]int{}
}

// need marks the path that ends at seq. All paths together take as long as there
// are stretches.
func (t *pathTree) need(seq int64) {
	for seq > 0 {
		i := t.stretch(seq)
		known := t.needed[i]
		t.needed[i] = max(known, seq)
		if known > 0 || i == 0 {
			return
		}
		seq = t.turns[i-1].to
		t.uses[seq]++
	}
}

// needs reports whether seq is on a path that is needed, and whether it is the
// first of a stretch, which goes on from to.
func (t *pathTree) needs(seq int64) (needed, turns bool, to int64) {
	i := t.stretch(seq)
	if seq > t.needed[i] {
		return false, false, 0
	}
	if i > 0 && t.turns[i-1].at == seq {
		return true, true, t.turns[i-1].to
	}
	return true, false, 0
}

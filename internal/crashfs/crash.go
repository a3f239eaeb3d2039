package crashfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash is the disk after a loss of power: what was synced, and a share of the
// rest that the seed chooses. All of it is on disk then, and the same seed
// chooses the same.
func (d *Disk) Crash(seed uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &lottery{rand.New(rand.NewPCG(seed, uint64(d.ops)))}
	c := New()
	c.ops = d.ops
	names := d.surviving(l)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := c.makeNode(names[name].dir)
		n.changed = names[name].changed
		if !n.dir {
			n.synced = names[name].surviving(l)
			n.data = n.synced[:len(n.synced):len(n.synced)]
		}
		c.names[name], c.synced[name] = n, n
	}
	return c
}

// lottery draws what a crash leaves. Each draw first picks one of several
// manners: independent coins alone would hardly ever lose a single block, or
// all of them.
type lottery struct{ r *rand.Rand }

func (l *lottery) coin() bool { return l.r.IntN(2) == 0 }

func (l *lottery) blockSize() int {
	if l.coin() {
		return block
	}
	return 8 * block
}

// choice picks some of n things.
func (l *lottery) choice(n int) func(i int) bool {
	k := l.r.IntN(n + 1)
	switch l.r.IntN(5) {
	case 0:
		return func(int) bool { return false }
	case 1:
		return func(int) bool { return true }
	case 2:
		return func(i int) bool { return i < k }
	case 3:
		return func(i int) bool { return i != k }
	}
	return func(int) bool { return l.coin() }
}

// moments picks a moment of n for each block, and one for the size. The first
// moment is the last sync, the last one has everything.
func (l *lottery) moments(n, blocks int, dirty func(i int) bool) (of func(i int) int, size int) {
	last := n - 1
	moment, place := l.r.IntN(n), l.r.IntN(blocks+1)
	switch l.r.IntN(11) {
	case 0: // nothing was written
		return func(int) int { return 0 }, 0
	case 1: // everything
		return func(int) int { return last }, last
	case 2: // everything up to a moment
		return func(int) int { return moment }, moment
	case 3: // the size alone
		return func(int) int { return 0 }, last
	case 4: // all but one block
		lost := l.oneOf(blocks, dirty)
		return func(i int) int { return pick(i == lost, 0, last) }, last
	case 5: // the blocks before a place
		return func(i int) int { return pick(i < place, last, 0) }, last
	case 6: // the blocks behind a place
		return func(i int) int { return pick(i < place, 0, last) }, last
	case 7: // some blocks
		return func(int) int { return pick(l.coin(), 0, last) }, last
	case 8: // some blocks, and another size
		return func(int) int { return pick(l.coin(), 0, last) }, moment
	case 9: // the blocks before a place, and another size
		return func(i int) int { return pick(i < place, last, 0) }, moment
	}
	return func(int) int { return l.r.IntN(n) }, moment
}

// oneOf picks one of the blocks that are dirty.
func (l *lottery) oneOf(blocks int, dirty func(i int) bool) int {
	some := []int{-1}
	for i := range blocks {
		if dirty(i) {
			some = append(some, i)
		}
	}
	return some[l.r.IntN(len(some))]
}

func pick(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

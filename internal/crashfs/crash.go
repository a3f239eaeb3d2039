package crashfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns the disk after a loss of power. It keeps everything that was synced,
// and of the other changes a part that depends only on seed. On the returned disk
// everything is synced.
func (d *Disk) Crash(seed uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &chooser{rand.New(rand.NewPCG(seed, uint64(d.ops)))}
	c := New()
	c.ops = d.ops
	names := d.namesAfterCrash(l)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := c.makeNode(names[name].dir)
		n.changed = names[name].changed
		if !n.dir {
			n.synced = names[name].afterCrash(l)
			n.data = n.synced[:len(n.synced):len(n.synced)]
		}
		c.names[name], c.synced[name] = n, n
	}
	return c
}

// chooser chooses the changes that survive a crash. Each choice first picks a pattern.
// Independent coin flips would almost never lose a single block or all of them.
type chooser struct{ r *rand.Rand }

func (l *chooser) flip() bool { return l.r.IntN(2) == 0 }

func (l *chooser) blockSize() int {
	if l.flip() {
		return block
	}
	return 8 * block
}

// choice picks some of n changes.
func (l *chooser) choice(n int) func(i int) bool {
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
	return func(int) bool { return l.flip() }
}

// moments picks one of n moments for each block, and one for the file size. Moment 0 is
// the last sync, the last moment has all changes.
func (l *chooser) moments(n, blocks int, dirty func(i int) bool) (of func(i int) int, size int) {
	last := n - 1
	moment, place := l.r.IntN(n), l.r.IntN(blocks+1)
	switch l.r.IntN(11) {
	case 0: // nothing
		return func(int) int { return 0 }, 0
	case 1: // everything
		return func(int) int { return last }, last
	case 2: // everything up to a moment
		return func(int) int { return moment }, moment
	case 3: // only the size
		return func(int) int { return 0 }, last
	case 4: // all blocks except one
		lost := l.oneOf(blocks, dirty)
		return func(i int) int { return pick(i == lost, 0, last) }, last
	case 5: // the blocks before a place
		return func(i int) int { return pick(i < place, last, 0) }, last
	case 6: // the blocks after a place
		return func(i int) int { return pick(i < place, 0, last) }, last
	case 7: // some blocks
		return func(int) int { return pick(l.flip(), 0, last) }, last
	case 8: // some blocks, and another size
		return func(int) int { return pick(l.flip(), 0, last) }, moment
	case 9: // the blocks before a place, and another size
		return func(i int) int { return pick(i < place, last, 0) }, moment
	}
	return func(int) int { return l.r.IntN(n) }, moment
}

// oneOf picks one of the dirty blocks.
func (l *chooser) oneOf(blocks int, dirty func(i int) bool) int {
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

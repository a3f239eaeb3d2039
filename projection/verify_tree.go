package projection

import "github.com/convlog/convlog/event"

// neededPaths are the paths of a tree that a replay has to follow: those that end
// with an event which a snapshot covers.
type neededPaths struct {
	tree event.Tree
	// last is the newest needed event of a stretch, by the stretch's first seq.
	last map[int64]int64
	// uses is how many needed stretches continue after an event.
	uses map[int64]int
}

// need adds the path that ends with event seq. All paths together take as long as
// there are stretches.
func (n *neededPaths) need(seq int64) {
	for seq > 0 {
		run, parent := n.tree.Run(seq)
		known := n.last[run.From]
		n.last[run.From] = max(known, seq)
		if known > 0 || parent == 0 {
			return
		}
		seq = parent
		n.uses[seq]++
	}
}

// at reports whether an event is on a needed path, and whether a stretch of it
// begins there, which continues after event parent.
func (n *neededPaths) at(seq int64) (needed, begins bool, parent int64) {
	run, parent := n.tree.Run(seq)
	return seq <= n.last[run.From], seq > 1 && run.From == seq, parent
}

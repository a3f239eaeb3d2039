package codex

import (
	"math"
	"slices"

	"github.com/convlog/convlog/event"
)

// path is what a rollback and a compaction must know of what was said. Its
// events are in order of their seqs; what the head moved away from is among them.
type path struct {
	messages []pathMessage
	turns    []int64 // seqs of turn_started
	moves    []move
}

// note is a message.
type pathMessage struct {
	seq    int64
	role   event.Role
	digest event.Digest
	extra  string
	// cut is, of a prompt, the first event of its turn; 0 for other messages.
	turnStart int64
}

type move struct{ seq, to int64 }

// active are the stretches of the active path, newest first; the newest has no
// end.
func (p *path) activeStretches() (stretches []event.Stretch) {
	head := int64(math.MaxInt64)
	for _, m := range slices.Backward(p.moves) {
		if m.seq > head {
			continue
		}
		stretches = append(stretches, event.Stretch{From: m.seq, To: head})
		head = m.to
	}
	return append(stretches, event.Stretch{From: 1, To: head})
}

// messages are those on the active path.
func (p *path) activeMessages() (active []pathMessage) {
	on := p.activeStretches()
	for _, n := range p.messages {
		if contains(on, n.seq) {
			active = append(active, n)
		}
	}
	return active
}

// begins reports whether a turn begins with its next prompt, and not with what a
// conversation begins with.
func (p *path) promptBeginsTurn(turn int64) bool {
	on := p.activeStretches()
	for _, n := range slices.Backward(p.messages) {
		if n.turnStart > 0 && contains(on, n.seq) {
			return true
		}
	}
	n := len(p.messages)
	return n == 0 || p.messages[n-1].seq < turn
}

// turnCount is how many turns the active path has.
func (p *path) turnCount() (count int) {
	on := p.activeStretches()
	for _, seq := range p.turns {
		if contains(on, seq) {
			count++
		}
	}
	return count
}

func contains(on []event.Stretch, seq int64) bool {
	return slices.ContainsFunc(on, func(s event.Stretch) bool { return s.From <= seq && seq <= s.To })
}

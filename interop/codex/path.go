package codex

import (
	"math"
	"slices"

	"github.com/convlog/convlog/event"
)

// path indexes the messages, turns and head moves of a session, in order of seq. It
// includes the events that are not on the active path.
type path struct {
	messages []pathMessage
	turns    []int64 // seqs of turn_started
	moves    []move
}

// pathMessage is a message in the log.
type pathMessage struct {
	seq    int64
	role   event.Role
	digest event.Digest
	extra  string
	// turnStart is the seq of the first event of a prompt's turn; 0 for other messages.
	turnStart int64
}

type move struct{ seq, to int64 }

// activeStretches returns the seqs on the active path, newest first. The newest stretch
// has no end.
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

// activeMessages returns the messages on the active path.
func (p *path) activeMessages() (active []pathMessage) {
	on := p.activeStretches()
	for _, n := range p.messages {
		if contains(on, n.seq) {
			active = append(active, n)
		}
	}
	return active
}

// promptBeginsTurn reports whether the next prompt is the start of the turn at seq turn.
// The first turn of a session may begin before the context of the conversation.
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

// turnCount is the number of turns on the active path.
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

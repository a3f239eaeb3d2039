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
	tree     event.Tree
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

// keepWritten makes a rollback count the inherited prompts that the file has: the log wrote them,
// and no others. seqs are the seqs of the messages that it wrote; first is the first seq of the
// session's own.
func (p *path) keepWritten(seqs map[string]int64, first int64) {
	wrote := map[int64]bool{}
	for _, seq := range seqs {
		wrote[seq] = true
	}
	for i := range p.messages {
		if n := &p.messages[i]; n.seq < first && !wrote[n.seq] {
			n.turnStart = 0
		}
	}
}

// active is the active path. The newest event may have any seq.
func (p *path) active() event.Path { return p.tree.Path(math.MaxInt64) }

// activeMessages returns the messages on the active path.
func (p *path) activeMessages() (active []pathMessage) {
	on := p.active()
	for _, n := range p.messages {
		if on.Has(n.seq) {
			active = append(active, n)
		}
	}
	return active
}

// promptBeginsTurn reports whether the next prompt is the start of the turn at seq turn.
// The first turn of a session may begin before the context of the conversation.
func (p *path) promptBeginsTurn(turn int64) bool {
	on := p.active()
	for _, n := range slices.Backward(p.messages) {
		if n.turnStart > 0 && on.Has(n.seq) {
			return true
		}
	}
	n := len(p.messages)
	return n == 0 || p.messages[n-1].seq < turn
}

// turnCount is the number of turns on the active path.
func (p *path) turnCount() (count int) {
	on := p.active()
	for _, seq := range p.turns {
		if on.Has(seq) {
			count++
		}
	}
	return count
}

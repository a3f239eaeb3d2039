package fork

import (
	"context"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// shape is the tree of one session's lineage: where the head moved, and which
// events count on a path. A bit an event is all it holds besides the moves.
type shape struct {
	head  int64
	moves []movement // oldest first
	path  bits       // events of path scope
	taken bits       // events of the branches that were taken
}

// movement is a head_moved.
type movement struct {
	seq, to       int64
	label, reason string
	time          time.Time
}

// shapeOf reads a lineage up to the event at head.
func shapeOf(ctx context.Context, log *eventlog.Log, session string, head int64) (*shape, error) {
	s := &shape{head: head, path: newBits(head), taken: newBits(head)}
	for e, err := range log.Read(ctx, session, eventlog.Between(1, head).Bare()) {
		if err != nil {
			return nil, err
		}
		if e.Type.Scope() == event.PathScope {
			s.path.set(e.Seq)
		}
		if e.Type.Name() != event.HeadMoved {
			continue
		}
		m, _, err := event.Decode[event.HeadMove](&e)
		if err == nil {
			_, err = e.Parent()
		}
		if err != nil {
			return nil, err
		}
		s.moves = append(s.moves, movement{e.Seq, m.To, m.Label, m.Reason, e.Timestamp})
	}
	return s, nil
}

// take takes the branch that ends with tip: its events that were not taken
// before, as stretches, oldest first, how many of them count on a path, and the
// event that they follow.
func (s *shape) take(tip int64) (own []event.Stretch, counted, base int64) {
	for tip > 0 && !s.taken.has(tip) {
		from, to := s.stretch(tip)
		first := tip
		for ; first >= from && !s.taken.has(first); first-- {
			s.taken.set(first)
			if s.path.has(first) {
				counted++
			}
		}
		own = append(own, event.Stretch{From: first + 1, To: tip})
		if tip = to; first >= from {
			tip = first
		}
	}
	slices.Reverse(own)
	return own, counted, tip
}

// stretch is where the run of seqs that ends with tip begins, and which event
// the path comes from there.
func (s *shape) stretch(tip int64) (from, to int64) {
	i, found := slices.BinarySearchFunc(s.moves, tip, func(m movement, seq int64) int { return int(m.seq - seq) })
	if found {
		i++
	}
	if i == 0 {
		return 1, 0
	}
	return s.moves[i-1].seq, s.moves[i-1].to
}

// bits are a set of seqs.
type bits []uint64

func newBits(highest int64) bits { return make(bits, highest/64+1) }

func (b bits) set(seq int64)      { b[seq/64] |= 1 << (seq % 64) }
func (b bits) has(seq int64) bool { return b[seq/64]&(1<<(seq%64)) != 0 }

package projection

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sealed"
)

// tailBuffer is how many bytes of events a tail keeps in memory. The load reads a
// longer tail a second time.
const tailBuffer = 8 << 20

// stretchBytes counts for each gap between the events of a tail: the events after a gap
// come from another read, and hold its buffer.
const stretchBytes = 4 << 10

// tail is the events that the choice of snapshots read: the events that the load
// folds on top of the snapshots.
type tail struct {
	blocks   [][]event.Event // newest first; nil after an overflow
	count    int             // of events in blocks
	oldest   int64           // the seq of the event that was added last
	bytes    int
	limit    int // of bytes
	overflow bool
	path     []event.Stretch // of the active path, newest first
	ahead    bool            // decode full blocks in a goroutine
	decoder  *decoder        // nil before the first full block
}

// blockSize is how many events a long tail keeps in one block.
const blockSize = 64

// add keeps an event in memory, up to the limit.
func (t *tail) add(e *event.Event) {
	if t.overflow {
		return
	}
	t.bytes += int(eventBytes(e))
	if t.count > 0 && e.Seq+1 != t.oldest {
		t.bytes += stretchBytes
	}
	t.oldest = e.Seq
	if t.bytes > t.limit {
		t.blocks, t.count, t.overflow = nil, 0, true
		return
	}
	n := len(t.blocks) - 1
	if n < 0 || len(t.blocks[n]) == cap(t.blocks[n]) {
		t.blocks = append(t.blocks, make([]event.Event, 0, min(max(t.count, 4), blockSize)))
		n++
	}
	block := append(t.blocks[n], *e)
	remember(&block[len(block)-1])
	t.blocks[n] = block
	if t.count++; t.ahead && len(block) == blockSize {
		t.decode(block)
	}
}

// decode gives a block to the decoder.
func (t *tail) decode(block []event.Event) {
	if t.decoder == nil {
		t.decoder = newDecoder()
	}
	t.decoder.add(block)
}

// stop ends the decoder. It may be called again.
func (t *tail) stop() {
	if t.decoder != nil {
		t.decoder.end()
		t.decoder = nil
	}
}

// oldestFirst yields the events that are in memory.
func (t *tail) oldestFirst(yield func(*event.Event) bool) {
	for _, block := range slices.Backward(t.blocks) {
		for i := range block {
			if !yield(&block[len(block)-1-i]) {
				return
			}
		}
	}
}

// list returns a copy of the events that are in memory, oldest first, with room for a few
// more.
func (t *tail) list() []event.Event {
	events := make([]event.Event, 0, t.count+blockSize)
	for e := range t.oldestFirst {
		events = append(events, *e)
	}
	return events
}

// remember makes an event of an effect decode its payload once: a load decodes it for
// several folds.
func remember(e *event.Event) {
	if name := e.Type.Name(); name == event.EffectIntended || name == event.EffectCompleted {
		sealed.Remember(e)
	}
}

// addToPath adds an event to the path. The newest event comes first.
func (t *tail) addToPath(seq int64) {
	if n := len(t.path); n > 0 && t.path[n-1].From == seq+1 {
		t.path[n-1].From = seq
	} else {
		t.path = append(t.path, event.Stretch{From: seq, To: seq})
	}
}

// hasOnPath reports whether seq is on the path.
func (t *tail) hasOnPath(seq int64) bool {
	return slices.ContainsFunc(t.path, func(p event.Stretch) bool { return p.From <= seq && seq <= p.To })
}

// onPath is hasOnPath for calls in ascending order of seq: it removes the stretches
// before seq.
func (t *tail) onPath(seq int64) bool {
	for n := len(t.path); n > 0; n-- {
		switch p := t.path[n-1]; {
		case seq > p.To:
			t.path = t.path[:n-1]
		default:
			return seq >= p.From
		}
	}
	return false
}

// foldTail folds the tail on top of the chosen snapshots, oldest event first.
func (l *Loaded) foldTail(ctx context.Context, s *snapshotChoice) error {
	if !s.tail.overflow {
		for e := range s.tail.oldestFirst {
			if err := l.foldEvent(s, e); err != nil {
				return err
			}
		}
		return nil
	}
	for e, err := range readPath(ctx, s.log, l.Session, s.ranges(l.Head.Seq), eventlog.Between) {
		if err != nil {
			return fmt.Errorf("project session %q: %w", l.Session, err)
		}
		l.Explain.read(&e)
		if err := l.foldEvent(s, &e); err != nil {
			return err
		}
	}
	return nil
}

// foldEvent applies an event to each fold whose snapshot does not cover it.
func (l *Loaded) foldEvent(s *snapshotChoice, e *event.Event) error {
	onPath, e := s.tail.onPath(e.Seq), e.Effective()
	scope := e.Type.Scope()
	for i, f := range s.folds {
		if e.Seq <= f.covers || !inScope(f.scope(), scope, onPath) {
			continue
		}
		if err := f.apply(e); err != nil {
			return err
		}
		l.Explain.Parts[i].Folded++
	}
	return nil
}

// ranges returns the ranges of seqs to fold, oldest first. No two overlap.
func (s *snapshotChoice) ranges(head int64) (r event.Path) {
	add := func(from, to int64) {
		if from > to {
			return
		}
		if n := len(r); n > 0 && from <= r[n-1].To+1 {
			r[n-1].To = max(r[n-1].To, to)
			return
		}
		r = append(r, event.Stretch{From: from, To: to})
	}
	path, hasPath := s.lowestCovers(false)
	all, hasAll := s.lowestCovers(true)
	if !hasAll {
		all = head
	}
	if hasPath {
		for n := len(s.tail.path); n > 0; n-- {
			p := s.tail.path[n-1]
			add(max(p.From, path+1), min(p.To, all))
		}
	}
	add(all+1, head)
	return r
}

// lowestCovers is the lowest seq that a snapshot of a fold of session scope, or of
// path scope, covers: all later events are needed. ok is false if no fold has the
// scope.
func (s *snapshotChoice) lowestCovers(session bool) (seq int64, ok bool) {
	for _, f := range s.folds {
		if (f.scope() == event.SessionScope) == session {
			if !ok || f.covers < seq {
				seq = f.covers
			}
			ok = true
		}
	}
	return seq, ok
}

package fork

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Branch is a branch inside one session: the active path, or a branch that a rewind
// orphaned.
type Branch struct {
	// Active says that the branch is the active path.
	Active bool
	// Tip is the seq of the last event. Base is the event it follows, which is on a
	// branch listed earlier; 0 is the empty start.
	Tip, Base int64
	// Own is the branch's events that are on no branch listed earlier.
	Own event.Path
	// Counted is how many events of Own are of path scope. A branch that is not
	// active has orphaned them.
	Counted int64
	// Left is the seq of the head_moved that left the branch; Label, Reason and Time
	// are of that event. They are zero for the active path.
	Left          int64
	Label, Reason string
	Time          time.Time
}

// Orphaned reports whether the event at seq is orphaned on this branch and on no
// branch listed earlier.
func (b *Branch) Orphaned(seq int64) bool { return !b.Active && b.Own.Has(seq) }

// Branches lists the branches of a session's lineage: the active path first, then
// the others, the one that was left last first. Branches without orphaned events,
// for example recovered ones, are not listed. It reads the lineage once.
//
// With own it lists only the branches that the session's own rewinds orphaned: not the
// active path, and not the branches that rewinds of a fork's ancestors orphaned. It then
// reads the session's own events once, and the lineage too if a fork was rewound to an
// event that it shares.
func Branches(ctx context.Context, log *eventlog.Log, session string, own bool) (branches []Branch, err error) {
	head, err := log.Head(ctx, session)
	if err == nil && own {
		branches, err = ownBranches(ctx, log, session, head.Seq)
	} else if err == nil {
		branches, err = allBranches(ctx, log, session, head.Seq)
	}
	if err != nil {
		return nil, fmt.Errorf("branches of session %q: %w", session, err)
	}
	return branches, nil
}

func allBranches(ctx context.Context, log *eventlog.Log, session string, head int64) ([]Branch, error) {
	s, err := scanTo(ctx, log, session, head)
	if err != nil {
		return nil, err
	}
	own, counted, _ := s.visit(head)
	return append([]Branch{{Active: true, Tip: head, Own: own, Counted: counted}}, s.orphaned(1)...), nil
}

func ownBranches(ctx context.Context, log *eventlog.Log, session string, head int64) ([]Branch, error) {
	first, err := firstOwn(ctx, log, session)
	if err != nil {
		return nil, err
	}
	s, err := scanFrom(ctx, log, session, first.Seq, head)
	if err == nil && slices.ContainsFunc(s.moves, func(m move) bool { return m.To < s.shared }) { // else every path has the shared events
		s, err = scanTo(ctx, log, session, head)
	}
	if err != nil {
		return nil, err
	}
	s.visit(head)
	return s.orphaned(first.Seq), nil
}

// orphaned lists the orphaned branches that were left at or after event seq, the one
// that was left last first.
func (s *scan) orphaned(seq int64) (branches []Branch) {
	for _, m := range slices.Backward(s.moves) {
		if m.Seq < seq {
			break
		}
		own, counted, base := s.visit(m.Seq - 1)
		if counted > 0 {
			branches = append(branches, Branch{Tip: m.Seq - 1, Base: base, Own: own, Counted: counted,
				Left: m.Seq, Label: m.Label, Reason: m.Reason, Time: m.Time})
		}
	}
	return branches
}

// newestOrphaned is the tip of the branch that was left last and is still orphaned.
func newestOrphaned(ctx context.Context, log *eventlog.Log, session string, head int64) (int64, error) {
	s, err := scanTo(ctx, log, session, head)
	if err != nil {
		return 0, err
	}
	s.visit(head)
	for _, m := range slices.Backward(s.moves) {
		if _, counted, _ := s.visit(m.Seq - 1); counted > 0 {
			return m.Seq - 1, nil
		}
	}
	return 0, errNothingOrphaned
}

// scan is the part of a lineage that the list of branches needs: its tree, its moves, and
// two bits for each event.
type scan struct {
	shared  int64 // the newest event before the scanned events, which are on each path
	tree    event.Tree
	moves   []move // oldest first
	counted bits   // events of path scope
	visited bits   // events of visited branches
}

// move is a head_moved event.
type move struct {
	Seq int64
	event.HeadMove
	Time time.Time
}

// scanTo reads a lineage up to the event at head.
func scanTo(ctx context.Context, log *eventlog.Log, session string, head int64) (*scan, error) {
	return scanFrom(ctx, log, session, 1, head)
}

// scanFrom reads the events from..head of a lineage.
func scanFrom(ctx context.Context, log *eventlog.Log, session string, from, head int64) (*scan, error) {
	s := &scan{shared: from - 1, counted: newBits(head - from + 1), visited: newBits(head - from + 1)}
	for e, err := range log.Read(ctx, session, eventlog.Between(from, head).Bare()) {
		if err == nil {
			err = s.add(&e)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *scan) add(e *event.Event) error {
	if e.Type.Scope() == event.PathScope {
		s.counted.set(e.Seq - s.shared)
	}
	m, moves, err := event.Decode[event.HeadMove](e)
	if err == nil {
		err = s.tree.Add(e)
	}
	if moves && err == nil {
		s.moves = append(s.moves, move{e.Seq, m, e.Timestamp})
	}
	return err
}

// visit walks the branch that ends with tip back to an event that was visited
// before, which is its base. own are the new events, counted how many of them are
// of path scope.
func (s *scan) visit(tip int64) (own event.Path, counted, base int64) {
	for tip > s.shared && !s.visited.has(tip-s.shared) {
		run, parent := s.tree.Run(tip)
		if run.From <= s.shared {
			run.From, parent = s.shared+1, s.shared
		}
		first := tip
		for ; first >= run.From && !s.visited.has(first-s.shared); first-- {
			s.visited.set(first - s.shared)
			if s.counted.has(first - s.shared) {
				counted++
			}
		}
		own = append(own, event.Stretch{From: first + 1, To: tip})
		if tip = parent; first >= run.From {
			tip = first
		}
	}
	slices.Reverse(own)
	return own, counted, tip
}

// bits is a set of small numbers.
type bits []uint64

func newBits(highest int64) bits { return make(bits, highest/64+1) }

func (b bits) set(n int64)      { b[n/64] |= 1 << (n % 64) }
func (b bits) has(n int64) bool { return b[n/64]&(1<<(n%64)) != 0 }

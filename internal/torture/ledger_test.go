package torture

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// ledger is what the writers of a store said: the truth that the store is held
// against.
type ledger struct {
	seed uint64

	mu    sync.Mutex
	acked map[int][]int64 // by writer: for each step in order, the seq of its last event
	tried map[int]int     // by writer: how many steps were begun
}

func newLedger(seed uint64) *ledger {
	return &ledger{seed: seed, acked: map[int][]int64{}, tried: map[int]int{}}
}

// note takes in what a writer says; steps come in order.
func (l *ledger) note(writer int, verb string, n int, seq int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch next := len(l.acked[writer]); {
	case n != next:
		return fmt.Errorf("writer %d says %s %d where %d is next", writer, verb, n, next)
	case verb == acknowledged:
		l.acked[writer] = append(l.acked[writer], seq)
	default:
		l.tried[writer] = n + 1
	}
	return nil
}

// next is the step that a writer is to try next.
func (l *ledger) next(writer int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked[writer])
}

// within reports whether a writer has begun a step that was not acknowledged.
func (l *ledger) within(writer int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried[writer] > len(l.acked[writer])
}

// events counts the events that were acknowledged.
func (l *ledger) events() (n int) {
	for writer, seqs := range l.snapshot() {
		for i := range seqs {
			n += max(len(stepOf(l.seed, writer, i).events), 1)
		}
	}
	return n
}

func (l *ledger) snapshot() map[int][]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	acked := map[int][]int64{}
	for writer, seqs := range l.acked {
		acked[writer] = slices.Clone(seqs)
	}
	return acked
}

// check holds the store against what was acknowledged before: every step is
// there once, whole, and as it was made, each writer's in its order, and
// nothing else is but steps that were tried. At rest, when no writer lives,
// that is only the one each of them died in.
func (l *ledger) check(ctx context.Context, log *eventlog.Log, atRest bool) error {
	c := census{seed: l.seed, acked: l.snapshot(), found: map[[2]int]int64{}, erased: map[[2]int]bool{}}
	var errs []error
	for info, err := range log.Sessions(ctx) {
		if err == nil {
			err = info.Err
		}
		if err == nil {
			err = c.session(ctx, log, info.ID)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("session %q: %w", info.ID, err))
		}
	}
	errs = append(errs, c.compare())
	if atRest {
		errs = append(errs, l.unheard(&c))
	}
	return errors.Join(errs...)
}

// unheard makes sure that nobody has done more than he said, but for the step
// that he died in.
func (l *ledger) unheard(c *census) error {
	for at := range c.found {
		if n := len(c.acked[at[0]]); at[1] > n {
			return fmt.Errorf("step %d/%d stands, but %d were acknowledged", at[0], at[1], n)
		}
	}
	return nil
}

// census is what a store holds.
type census struct {
	seed   uint64
	acked  map[int][]int64
	found  map[[2]int]int64 // by writer and step: the seq of its last event
	erased map[[2]int]bool  // steps whose first event is redacted
}

// session reads a session's own events, and verifies it.
func (c *census) session(ctx context.Context, log *eventlog.Log, session string) error {
	if session == mortal {
		return sound(ctx, log, session)
	}
	w := walk{seed: c.seed, session: session}
	if err := w.all(log.Read(ctx, session, eventlog.All().Own())); err != nil {
		return err
	}
	for at, seq := range w.whole {
		if _, twice := c.found[at]; twice {
			return fmt.Errorf("step %d/%d stands in two sessions", at[0], at[1])
		}
		c.found[at] = seq
	}
	maps.Copy(c.erased, w.erased)
	return sound(ctx, log, session)
}

func sound(ctx context.Context, log *eventlog.Log, session string) error {
	report, err := verify.Session(ctx, log, session)
	if err != nil {
		return err
	}
	for _, d := range report.Defects {
		err = errors.Join(err, fmt.Errorf("verify: %v", d))
	}
	return err
}

// compare makes sure that what was acknowledged stands where it was said to.
func (c *census) compare() error {
	for writer, seqs := range c.acked {
		for n, seq := range seqs {
			s := stepOf(c.seed, writer, n)
			if s.kind == redact {
				if !c.erased[[2]int{writer, s.target.n}] {
					return fmt.Errorf("step %v is lost: it redacted %v", s, s.target)
				}
				continue
			}
			found, ok := c.found[[2]int{writer, n}]
			if !ok || found != seq {
				return fmt.Errorf("step %v (%s in %q) is lost: it ended at seq %d, found %d", s, s.kind, s.session, seq, found)
			}
		}
	}
	return nil
}

// walk follows a session event by event, oldest first, and holds each against
// the step that it is of.
type walk struct {
	seed    uint64
	session string

	last   event.Head
	more   int         // how many events of the append are still to come
	step   *step       // that the append is of
	at     int         // which of its events was the last
	latest map[int]int // by writer: its newest step here
	whole  map[[2]int]int64
	erased map[[2]int]bool
}

// all follows a sequence to its end.
func (w *walk) all(events iter.Seq2[event.Event, error]) error {
	for e, err := range events {
		if err == nil {
			err = w.next(&e)
		}
		if err != nil {
			return err
		}
	}
	return w.end()
}

// end makes sure that the last append was whole.
func (w *walk) end() error {
	if w.more != 0 {
		return fmt.Errorf("seq %d is the last, but %d of its append are missing", w.last.Seq, w.more)
	}
	return nil
}

func (w *walk) next(e *event.Event) error {
	if err := w.follows(e); err != nil {
		return fmt.Errorf("seq %d (%s %s) after %v: %w", e.Seq, e.Type, e.ID, w.last, err)
	}
	w.last, w.more = e.Head(), e.More()
	return nil
}

func (w *walk) follows(e *event.Event) error {
	if w.last.Seq > 0 && e.Seq != w.last.Seq+1 {
		return errors.New("a gap, or a repetition")
	}
	if w.more > 0 && e.More() != w.more-1 {
		return fmt.Errorf("%d of its append are to follow, where %d were due", e.More(), w.more-1)
	}
	if e.Type == event.Redacted {
		w.step = nil
		return nil
	}
	writer, n, i, ok := placeOf(w.seed, e.ID)
	if !ok {
		return errors.New("an event that nobody has made")
	}
	if err := w.enter(writer, n, i, e.More()); err != nil {
		return err
	}
	if err := w.step.same(i, e, w.session); err != nil {
		return err
	}
	if e.Redacted() && i == 0 {
		put(&w.erased, [2]int{writer, n}, true)
	}
	if e.More() == 0 {
		put(&w.whole, [2]int{writer, n}, e.Seq)
	}
	return nil
}

// enter makes sure that the i-th event of a step is due. A walk may begin in
// the middle of an append.
func (w *walk) enter(writer, n, i, more int) error {
	inside := w.more > 0
	if inside && (w.step == nil || w.step.writer != writer || w.step.n != n || i != w.at+1) {
		return errors.New("another step's event inside an append")
	}
	if !inside {
		if i != 0 && w.last.Seq > 0 {
			return fmt.Errorf("an append that begins with event %d of its step", i)
		}
		if before, ok := w.latest[writer]; ok && before >= n {
			return fmt.Errorf("step %d/%d stands behind %d/%d", writer, n, writer, before)
		}
		w.step = stepOf(w.seed, writer, n)
		put(&w.latest, writer, n)
	}
	w.at = i
	if i+more+1 != len(w.step.events) {
		return fmt.Errorf("event %d of %d, but %d are to follow", i, len(w.step.events), more)
	}
	return nil
}

// same makes sure that an event is the step's i-th, or what redaction has left
// of it.
func (s *step) same(i int, e *event.Event, session string) error {
	want := s.events[i]
	switch {
	case s.session != session:
		return fmt.Errorf("step %v was for session %q", s, s.session)
	case e.Type != want.Type:
		return fmt.Errorf("step %v has %s there", s, want.Type)
	case e.Redacted():
		if i > 0 && e.Type != event.ProjectionSnapshotted {
			return fmt.Errorf("event %d of step %v is redacted, which nobody has asked for", i, s)
		}
		return nil
	case e.Type == event.SessionForked:
		f, _, err := event.Decode[event.Fork](e)
		if err == nil && f.Parent != ownSession(s.writer, s.n) {
			err = fmt.Errorf("step %v forked session %q", s, f.Parent)
		}
		return err
	case string(e.Data) != string(want.Data):
		return fmt.Errorf("event %d of step %v has other data: %.200s", i, s, e.Data)
	}
	return nil
}

// put sets a value of a map that may not be there yet.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

//go:build unix

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

// ledger records the reports of the writers. A check compares the store with it.
type ledger struct {
	seed uint64

	mu    sync.Mutex
	acked map[int][]int64       // by writer: the seq of each step's last event
	tried map[int]int           // by writer: the number of steps begun
	heads map[string]event.Head // of the sessions, as the last check saw them
}

func newLedger(seed uint64) *ledger {
	return &ledger{seed: seed, acked: map[int][]int64{}, tried: map[int]int{}}
}

// record adds a report of a writer. Steps come in order.
func (l *ledger) record(writer int, verb string, n int, seq int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch next := len(l.acked[writer]); {
	case n != next:
		return fmt.Errorf("writer %d reports %s %d, want step %d", writer, verb, n, next)
	case verb == acknowledged:
		l.acked[writer] = append(l.acked[writer], seq)
	default:
		l.tried[writer] = n + 1
	}
	return nil
}

// next returns the number of the writer's next step.
func (l *ledger) next(writer int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked[writer])
}

// inStep reports whether a writer has begun a step that is not acknowledged.
func (l *ledger) inStep(writer int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried[writer] > len(l.acked[writer])
}

// steps returns the number of acknowledged steps.
func (l *ledger) steps() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seqs := range l.acked {
		n += len(seqs)
	}
	return n
}

// events returns the number of acknowledged events.
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

// check compares the store with the steps that were acknowledged before, and with the heads that
// the check before has seen. Each step must be stored once, complete, unchanged and in its writer's
// order. Other steps may
// be stored if a writer has begun them. With atRest no writer is running: then each
// writer has at most one such step.
func (l *ledger) check(ctx context.Context, log *eventlog.Log, atRest bool) error {
	c := contents{seed: l.seed, acked: l.snapshot(), found: map[[2]int]int64{}, erased: map[[2]int]bool{}, heads: l.heads}
	var errs []error
	seen, err := verify.Heads(ctx, log)
	if err != nil {
		return err
	}
	delete(seen.Heads, recreated)
	for session := range l.heads {
		if _, found := seen.Heads[session]; !found {
			errs = append(errs, verifyClean(ctx, log, session, l.heads[session]))
		}
	}
	for info, err := range log.Sessions(ctx) {
		if err == nil {
			err = info.Err
		}
		switch {
		case err != nil:
		case info.ID == "convlog:store": // the notes of erasures belong to no step
			err = verifyClean(ctx, log, info.ID, c.heads[info.ID])
		default:
			err = c.session(ctx, log, info.ID)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("session %q: %w", info.ID, err))
		}
	}
	errs = append(errs, c.compare())
	if atRest {
		errs = append(errs, l.checkAtRest(&c))
	}
	l.heads = seen.Heads
	return errors.Join(errs...)
}

// checkAtRest checks that each writer has stored at most one step more than
// acknowledged.
func (l *ledger) checkAtRest(c *contents) error {
	for at := range c.found {
		if n := len(c.acked[at[0]]); at[1] > n {
			return fmt.Errorf("step %d/%d is stored, but only %d steps were acknowledged", at[0], at[1], n)
		}
	}
	return nil
}

// contents is the content of a store.
type contents struct {
	seed   uint64
	acked  map[int][]int64
	found  map[[2]int]int64      // by writer and step: the seq of its last event
	erased map[[2]int]bool       // steps whose first event is redacted
	heads  map[string]event.Head // of the last check
}

// session reads a session's own events, and verifies the session.
func (c *contents) session(ctx context.Context, log *eventlog.Log, session string) error {
	if session == recreated {
		return verifyClean(ctx, log, session, event.Head{})
	}
	w := checker{seed: c.seed, session: session}
	if err := w.all(log.Read(ctx, session, eventlog.All().Own())); err != nil {
		return err
	}
	for at, seq := range w.whole {
		if _, twice := c.found[at]; twice {
			return fmt.Errorf("step %d/%d is stored in two sessions", at[0], at[1])
		}
		c.found[at] = seq
	}
	maps.Copy(c.erased, w.erased)
	return verifyClean(ctx, log, session, c.heads[session])
}

// verifyClean verifies a session, which had a head once. The zero head is none.
func verifyClean(ctx context.Context, log *eventlog.Log, session string, known event.Head) error {
	var opts verify.Options
	if !known.IsZero() {
		opts.Heads = map[string][]event.Head{session: {known}}
	}
	report, err := verify.Session(ctx, log, session, opts)
	if err != nil {
		return err
	}
	for _, d := range report.Defects {
		err = errors.Join(err, fmt.Errorf("verify: %v", d))
	}
	return err
}

// compare checks that each acknowledged step is at its reported seq.
func (c *contents) compare() error {
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

// checker compares a session's events, oldest first, with the steps that made them.
type checker struct {
	seed    uint64
	session string

	last   event.Head
	more   int         // how many events of the append are missing
	step   *step       // the step of the append
	at     int         // index of the last event in its step
	latest map[int]int // by writer: its newest step in this session
	whole  map[[2]int]int64
	erased map[[2]int]bool
}

// all checks a whole sequence.
func (w *checker) all(events iter.Seq2[event.Event, error]) error {
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

// end checks that the last append is complete.
func (w *checker) end() error {
	if w.more != 0 {
		return fmt.Errorf("seq %d is the last, but %d of its append are missing", w.last.Seq, w.more)
	}
	return nil
}

func (w *checker) next(e *event.Event) error {
	if err := w.follows(e); err != nil {
		return fmt.Errorf("seq %d (%s %s) after %v: %w", e.Seq, e.Type, e.ID, w.last, err)
	}
	w.last, w.more = e.Head(), e.More()
	return nil
}

func (w *checker) follows(e *event.Event) error {
	if w.last.Seq > 0 && e.Seq != w.last.Seq+1 {
		return errors.New("the seq is not the next one")
	}
	if w.more > 0 && e.More() != w.more-1 {
		return fmt.Errorf("%d events of its append follow, want %d", e.More(), w.more-1)
	}
	if e.Type == event.Redacted {
		w.step = nil
		return nil
	}
	writer, n, i, ok := placeOf(w.seed, e.ID)
	if !ok {
		return errors.New("the event belongs to no step")
	}
	if err := w.enter(writer, n, i, e.More()); err != nil {
		return err
	}
	if err := w.step.same(i, e, w.session); err != nil {
		return err
	}
	if e.Redacted() && i == 0 {
		setKey(&w.erased, [2]int{writer, n}, true)
	}
	if e.More() == 0 {
		setKey(&w.whole, [2]int{writer, n}, e.Seq)
	}
	return nil
}

// enter checks that the i-th event of a step may come next. A checker may begin in the
// middle of an append.
func (w *checker) enter(writer, n, i, more int) error {
	inside := w.more > 0
	if inside && (w.step == nil || w.step.writer != writer || w.step.n != n || i != w.at+1) {
		return errors.New("an event of another step inside an append")
	}
	if !inside {
		if i != 0 && w.last.Seq > 0 {
			return fmt.Errorf("an append that begins with event %d of its step", i)
		}
		if before, ok := w.latest[writer]; ok && before >= n {
			return fmt.Errorf("step %d/%d comes after %d/%d", writer, n, writer, before)
		}
		w.step = stepOf(w.seed, writer, n)
		setKey(&w.latest, writer, n)
	}
	w.at = i
	if i+more+1 != len(w.step.events) {
		return fmt.Errorf("event %d of %d, but %d follow", i, len(w.step.events), more)
	}
	return nil
}

// same checks that e is the step's i-th event, possibly redacted.
func (s *step) same(i int, e *event.Event, session string) error {
	want := s.events[i]
	switch {
	case s.session != session:
		return fmt.Errorf("step %v was for session %q", s, s.session)
	case e.Type != want.Type:
		return fmt.Errorf("step %v has %s there", s, want.Type)
	case e.Redacted():
		if i > 0 && e.Type != event.ProjectionSnapshotted {
			return fmt.Errorf("event %d of step %v is redacted, but no step redacts it", i, s)
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

// setKey sets a key of a map that may be nil.
func setKey[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

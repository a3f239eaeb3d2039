//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// everything is the session's own events, oldest first.
var everything = eventlog.All().Own()

// reader reads sessions in every way and compares the events with the steps that made
// them. A session must never become shorter.
type reader struct {
	log        *eventlog.Log
	seed       uint64
	random     *rand.Rand
	heads      map[string]event.Head
	generation generation // of the recreated session, at the last read
}

func newReader(log *eventlog.Log, seed, number uint64) *reader {
	return &reader{log: log, seed: seed, random: rand.New(rand.NewPCG(seed, number)), heads: map[string]event.Head{}}
}

// readJob reads and watches the shared and the recreated session until ctx ends.
func readJob(ctx context.Context, b backend, j job) error {
	log := b.log(j.Dir)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, run := range []func() error{
		func() error { return newReader(log, j.Seed, uint64(j.Writer)).run(ctx) },
		func() error { return watchShared(ctx, log, j.Seed, func(seq int64) { report("seen", 0, seq) }) },
		func() error { return watchRecreated(ctx, log) },
	} {
		wg.Go(func() {
			if errs[i] = run(); errs[i] != nil {
				cancel()
			}
		})
	}
	report("reading", 0, 0)
	wg.Wait()
	return errors.Join(append(errs, log.Close())...)
}

// run reads until ctx ends.
func (r *reader) run(ctx context.Context) error {
	for ctx.Err() == nil {
		way := ways[r.random.IntN(len(ways))]
		if err := way.read(r, ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return nil
}

// ways are the ways to read.
var ways = []struct {
	name string
	read func(r *reader, ctx context.Context) error
}{
	{"forward", (*reader).forward},
	{"backward", (*reader).backward},
	{"from a seq", (*reader).from},
	{"the last", (*reader).last},
	{"until an event", (*reader).until},
	{"the active path", (*reader).path},
	{"a fork", (*reader).fork},
	{"the recreated session", (*reader).readRecreated},
}

// forward reads the shared session, which must not be shorter than before.
func (r *reader) forward(ctx context.Context) error {
	w := checker{seed: r.seed, session: shared}
	if err := ignoreMissing(w.all(r.log.Read(ctx, shared, everything))); err != nil {
		return err
	}
	return r.checkLength(shared, w.last)
}

func ignoreMissing(err error) error {
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	return err
}

// checkLength checks that a session has not become shorter.
func (r *reader) checkLength(session string, head event.Head) error {
	if before := r.heads[session]; head.Seq < before.Seq {
		return fmt.Errorf("session %q ends at %v, after it had ended at %v", session, head, before)
	}
	r.heads[session] = head
	return nil
}

// backward reads the shared session from the end.
func (r *reader) backward(ctx context.Context) error {
	events, err := collect(r.log.Read(ctx, shared, everything.Backward()))
	if err != nil {
		return ignoreMissing(err)
	}
	return r.checkReversed(events, 1)
}

// checkReversed checks events that were read newest first.
func (r *reader) checkReversed(events []event.Event, from int64) error {
	slices.Reverse(events)
	if len(events) > 0 && events[0].Seq != from {
		return fmt.Errorf("it begins with seq %d, not %d", events[0].Seq, from)
	}
	w := checker{seed: r.seed, session: shared}
	if err := w.all(values(events)); err != nil || len(events) == 0 {
		return err
	}
	return r.checkLength(shared, w.last)
}

func (r *reader) from(ctx context.Context) error {
	from := 1 + r.random.Int64N(max(r.heads[shared].Seq, 1))
	w := checker{seed: r.seed, session: shared}
	first := true
	for e, err := range r.log.Read(ctx, shared, eventlog.From(from)) {
		if err == nil && first && e.Seq != from {
			err = fmt.Errorf("it begins with seq %d, not %d", e.Seq, from)
		}
		if err == nil {
			err = w.next(&e)
		}
		if err != nil {
			return ignoreMissing(err)
		}
		first = false
	}
	if err := w.end(); err != nil || first {
		return err
	}
	return r.checkLength(shared, w.last)
}

func (r *reader) last(ctx context.Context) error {
	n := 1 + r.random.IntN(100)
	events, err := collect(r.log.Read(ctx, shared, eventlog.Last(n)))
	if err != nil {
		return ignoreMissing(err)
	}
	newest := events[len(events)-1].Seq
	if int64(len(events)) != min(int64(n), newest) {
		return fmt.Errorf("%d events of %d, want the last %d", len(events), newest, n)
	}
	slices.Reverse(events)
	return r.checkReversed(events, newest-int64(len(events))+1)
}

// until reads up to an existing event, in both directions.
func (r *reader) until(ctx context.Context) error {
	head := r.heads[shared].Seq
	if head == 0 {
		return nil
	}
	e, err := r.log.Event(ctx, shared, 1+r.random.Int64N(head))
	if err != nil {
		return err
	}
	events, err := collect(r.log.Read(ctx, shared, eventlog.All().Until(e.ID)))
	if err != nil {
		return err
	}
	if last := events[len(events)-1]; last.Hash() != e.Hash() || int64(len(events)) != e.Seq {
		return fmt.Errorf("%d events up to seq %d, want %d", len(events), last.Seq, e.Seq)
	}
	if events, err = collect(r.log.Read(ctx, shared, eventlog.All().Until(e.ID).Backward())); err != nil {
		return err
	}
	return r.checkReversed(events, e.Seq)
}

// path reads the active path of a session with head moves.
func (r *reader) path(ctx context.Context) error {
	session := ownSession(r.random.IntN(groupSize), r.random.IntN(3)*stepsPerSession)
	events, err := collect(r.log.Read(ctx, session, eventlog.All().OnPath()))
	if err != nil {
		return ignoreMissing(err)
	}
	before := int64(0)
	for _, e := range events {
		parent := e.Seq - 1
		if m, ok, err := event.Decode[event.HeadMove](&e); err != nil {
			return err
		} else if ok {
			parent = m.To
		}
		if parent != before {
			return fmt.Errorf("seq %d of %q follows %d on the path, but its parent is %d", e.Seq, session, before, parent)
		}
		before = e.Seq
	}
	return r.checkLength(session, events[len(events)-1].Head())
}

// fork reads a fork with its parent's events.
func (r *reader) fork(ctx context.Context) error {
	for info, err := range r.log.Sessions(ctx) {
		if info.ID == recreated {
			continue // it may be damaged at the moment
		}
		if err = errors.Join(err, info.Err); err != nil {
			return err
		}
		if info.First.Type != event.SessionForked || r.random.IntN(3) > 0 {
			continue
		}
		events, err := collect(r.log.Read(ctx, info.ID, eventlog.All()))
		if err != nil {
			return err
		}
		for i, e := range events {
			if e.Seq != int64(i)+1 {
				return fmt.Errorf("seq %d of fork %q is at place %d", e.Seq, info.ID, i+1)
			}
		}
		return nil
	}
	return nil
}

// readRecreated reads the recreated session.
func (r *reader) readRecreated(ctx context.Context) error {
	life := generation{}
	for e, err := range r.log.Read(ctx, recreated, eventlog.All()) {
		if err == nil {
			err = life.next(&e)
		}
		if isLoss(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if before := r.generation; life.n == before.n && life.at < before.at || life.n < before.n {
		return fmt.Errorf("event %d of generation %d is the last, but event %d of generation %d was read before", life.at, life.n, before.at, before.n)
	}
	r.generation = life
	return life.end()
}

func collect(events iter.Seq2[event.Event, error]) (all []event.Event, err error) {
	for e, err := range events {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

// values returns the events as a sequence.
func values(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

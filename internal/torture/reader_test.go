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

// reader reads sessions in every way there is, and holds what it gets against
// the steps that made it. It remembers how far each session had come.
type reader struct {
	log    *eventlog.Log
	seed   uint64
	random *rand.Rand
	heads  map[string]event.Head
	life   life // of the mortal session, as it was last seen
}

func newReader(log *eventlog.Log, seed, number uint64) *reader {
	return &reader{log: log, seed: seed, random: rand.New(rand.NewPCG(seed, number)), heads: map[string]event.Head{}}
}

// readJob reads until it is told to stop: the session of all writers, in every
// way, and the mortal one.
func readJob(ctx context.Context, b backend, j job) error {
	log := b.log(j.Dir)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, run := range []func() error{
		func() error { return newReader(log, j.Seed, uint64(j.Writer)).run(ctx) },
		func() error { return watchShared(ctx, log, j.Seed, func(seq int64) { say("seen", 0, seq) }) },
		func() error { return watchMortal(ctx, log) },
	} {
		wg.Go(func() {
			if errs[i] = run(); errs[i] != nil {
				cancel()
			}
		})
	}
	say("reading", 0, 0)
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
	{"a session that comes and goes", (*reader).mortal},
}

// forward reads all, which must be no less than before.
func (r *reader) forward(ctx context.Context) error {
	w := walk{seed: r.seed, session: shared}
	if err := ignoreMissing(w.all(r.log.Read(ctx, shared, everything))); err != nil {
		return err
	}
	return r.reached(shared, w.last)
}

func ignoreMissing(err error) error {
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	return err
}

// reached makes sure that a session never gets shorter.
func (r *reader) reached(session string, head event.Head) error {
	if before := r.heads[session]; head.Seq < before.Seq {
		return fmt.Errorf("session %q ends at %v, after it had ended at %v", session, head, before)
	}
	r.heads[session] = head
	return nil
}

// backward reads all from the end.
func (r *reader) backward(ctx context.Context) error {
	events, err := collect(r.log.Read(ctx, shared, everything.Backward()))
	if err != nil {
		return ignoreMissing(err)
	}
	return r.whole(events, 1)
}

// whole walks events that were read newest first.
func (r *reader) whole(events []event.Event, from int64) error {
	slices.Reverse(events)
	if len(events) > 0 && events[0].Seq != from {
		return fmt.Errorf("it begins with seq %d, not %d", events[0].Seq, from)
	}
	w := walk{seed: r.seed, session: shared}
	if err := w.all(values(events)); err != nil || len(events) == 0 {
		return err
	}
	return r.reached(shared, w.last)
}

func (r *reader) from(ctx context.Context) error {
	from := 1 + r.random.Int64N(max(r.heads[shared].Seq, 1))
	w := walk{seed: r.seed, session: shared}
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
	return r.reached(shared, w.last)
}

func (r *reader) last(ctx context.Context) error {
	n := 1 + r.random.IntN(100)
	events, err := collect(r.log.Read(ctx, shared, eventlog.Last(n)))
	if err != nil {
		return ignoreMissing(err)
	}
	newest := events[len(events)-1].Seq
	if int64(len(events)) != min(int64(n), newest) {
		return fmt.Errorf("%d events of %d, where %d were asked for", len(events), newest, n)
	}
	slices.Reverse(events)
	return r.whole(events, newest-int64(len(events))+1)
}

// until reads to an event that is there, from either end.
func (r *reader) until(ctx context.Context) error {
	head := r.heads[shared].Seq
	if head == 0 {
		return nil
	}
	e, err := r.log.Event(ctx, shared, 1+r.random.Int64N(head))
	if err != nil {
		return err
	}
	events, err := collect(r.log.Read(ctx, shared, eventlog.Until(e.ID)))
	if err != nil {
		return err
	}
	if last := events[len(events)-1]; last.Hash() != e.Hash() || int64(len(events)) != e.Seq {
		return fmt.Errorf("%d events up to seq %d, which are to end with seq %d", len(events), last.Seq, e.Seq)
	}
	if events, err = collect(r.log.Read(ctx, shared, eventlog.Until(e.ID).Backward())); err != nil {
		return err
	}
	return r.whole(events, e.Seq)
}

// path reads the active path of a session where the head moves.
func (r *reader) path(ctx context.Context) error {
	session := ownSession(r.random.IntN(crewSize), r.random.IntN(3)*era)
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
			return fmt.Errorf("seq %d of %q stands on the path behind %d, its parent is %d", e.Seq, session, before, parent)
		}
		before = e.Seq
	}
	return r.reached(session, events[len(events)-1].Head())
}

// fork reads a fork through its parent.
func (r *reader) fork(ctx context.Context) error {
	for info, err := range r.log.Sessions(ctx) {
		if info.ID == mortal {
			continue // it may be damaged just now
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
				return fmt.Errorf("seq %d of fork %q stands at place %d", e.Seq, info.ID, i+1)
			}
		}
		return nil
	}
	return nil
}

// mortal reads a session that is removed, made anew, damaged and repaired.
func (r *reader) mortal(ctx context.Context) error {
	life := life{}
	for e, err := range r.log.Read(ctx, mortal, eventlog.All()) {
		if err == nil {
			err = life.next(&e)
		}
		if vanished(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if before := r.life; life.n == before.n && life.at < before.at || life.n < before.n {
		return fmt.Errorf("event %d of life %d is the last, after event %d of life %d was there", life.at, life.n, before.at, before.n)
	}
	r.life = life
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

// values is a sequence of events without an error.
func values(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

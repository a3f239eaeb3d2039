package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// WithBlobs returns a store with the sessions of lines and the blobs of bodies. Large
// bodies can then be in another place than the lines. Blobs of lines and sessions of bodies
// are not visible. The new store owns both stores: Close closes them.
//
// Each writer of lines must use the same bodies, and no other log may use them: garbage
// collection removes every blob in bodies that no session in lines needs. Erasures take the
// locks of both stores, and remove bytes from both.
//
// The error is ErrUnsupported if bodies has no blobs.
func WithBlobs(lines, bodies Store) (Store, error) {
	if lines == nil || bodies == nil {
		return nil, fmt.Errorf("%w: a store of WithBlobs", event.ErrNilArgument)
	}
	blobs, ok := As[Blobs](bodies)
	if !ok {
		return nil, fmt.Errorf("take blobs from another store: %w", ErrUnsupported)
	}
	s := &splitStore{Store: lines, bodies: bodies}
	if checked, ok := blobs.(engine.CheckedBlobs); ok {
		s.parts = append(s.parts, struct {
			Blobs
			engine.CheckedBlobs
		}{blobs, checked})
	} else {
		s.parts = append(s.parts, struct{ Blobs }{blobs})
	}
	s.combine()
	return s, nil
}

// splitStore is a store of lines and a store of blobs.
type splitStore struct {
	Store  // of the lines
	bodies Store
	parts  []any // the abilities that differ from the abilities of the lines, one each
}

// Unwrap returns the store of the lines. It has all abilities that abilities lacks.
func (s *splitStore) Unwrap() Store { return s.Store }

// abilities is for As.
func (s *splitStore) abilities() []any { return s.parts }

// Append appends to the lines. The log has checked the blobs, under both locks.
func (s *splitStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	return s.Store.Append(engine.WithBlobsElsewhere(ctx), session, expect, events, durable)
}

// combine adds the abilities that concern both stores, if the stores have them.
func (s *splitStore) combine() {
	lock, ok := As[Locker](s.Store)
	second, both := As[Locker](s.bodies)
	switch {
	case ok && both:
		s.parts = append(s.parts, twoLocks{lock, second})
	case both:
		s.parts = append(s.parts, struct{ Locker }{second})
	}
	if eraser, ok := As[Eraser](s.Store); ok {
		s.parts = append(s.parts, twoErasers{eraser, abilitiesOf[Eraser](s.bodies), abilitiesOf[Sweeper](s.bodies)})
	}
	if sweepers := abilitiesOf[Sweeper](s.Store, s.bodies); len(sweepers) > 0 {
		s.parts = append(s.parts, twoSweepers(sweepers))
	}
	if retainers := abilitiesOf[Retainer](s.Store, s.bodies); len(retainers) > 0 {
		s.parts = append(s.parts, twoRetainers(retainers))
	}
	if finders := abilitiesOf[ByteFinder](s.Store, s.bodies); len(finders) > 0 {
		s.parts = append(s.parts, twoFinders(finders))
	}
}

// abilitiesOf returns the ability T of those stores that have it.
func abilitiesOf[T any](stores ...Store) (all []T) {
	for _, s := range stores {
		if ability, ok := As[T](s); ok {
			all = append(all, ability)
		}
	}
	return all
}

// Close closes both stores. The lines are first, because they may need blobs.
func (s *splitStore) Close() error {
	return errors.Join(s.Store.Close(), s.bodies.Close())
}

// twoLocks is the lock of the lines and the lock of the blobs. All holders take them in
// this order.
type twoLocks struct{ lines, bodies Locker }

func (l twoLocks) Lock(ctx context.Context, exclusive bool) (context.Context, func(), error) {
	outer, unlockLines, err := l.lines.Lock(ctx, exclusive)
	if err != nil {
		return nil, nil, err
	}
	locked, unlockBodies, err := l.bodies.Lock(outer, exclusive)
	if err != nil {
		unlockLines()
		return nil, nil, lockLost(outer, err)
	}
	return locked, func() {
		unlockBodies()
		unlockLines()
	}, nil
}

// twoErasers erases lines. The record of the blobs to remove is with the lines.
type twoErasers struct {
	Eraser
	bodies   []Eraser  // one, or none
	sweepers []Sweeper // of the bodies, one or none
}

// Rewrite first removes the leftovers of interrupted writes of bodies: they may contain the
// erased data.
func (e twoErasers) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	for _, one := range e.sweepers {
		for _, err := range one.Sweep(ctx, true) {
			if err != nil {
				return err
			}
		}
	}
	return e.Eraser.Rewrite(ctx, session, expect, replace, add)
}

// Erasing has the work in the files of both stores.
func (e twoErasers) Erasing(ctx context.Context) (Erasing, error) {
	work, err := e.Eraser.Erasing(ctx)
	for _, other := range e.bodies {
		if err != nil {
			break
		}
		var more Erasing
		more, err = other.Erasing(ctx)
		work.Bytes = work.Bytes || more.Bytes
	}
	return work, err
}

// twoSweepers sweeps the lines, then the blobs.
type twoSweepers []Sweeper

func (s twoSweepers) Sweep(ctx context.Context, remove bool) iter.Seq2[FilePlace, error] {
	return joined(s, func(one Sweeper) iter.Seq2[FilePlace, error] { return one.Sweep(ctx, remove) })
}

func (s twoSweepers) Mentioned(ctx context.Context) iter.Seq2[event.Digest, error] {
	return joined(s, func(one Sweeper) iter.Seq2[event.Digest, error] { return one.Mentioned(ctx) })
}

// twoRetainers has the places of the lines, then the places of the blobs.
type twoRetainers []Retainer

func (r twoRetainers) Retained(ctx context.Context) (places []Retained, err error) {
	for _, one := range r {
		more, err := one.Retained(ctx)
		if err != nil {
			return nil, err
		}
		places = append(places, more...)
	}
	return places, nil
}

// twoFinders finds bytes in the lines, then in the blobs.
type twoFinders []ByteFinder

func (f twoFinders) FindBytes(ctx context.Context, needles [][]byte) iter.Seq2[FilePlace, error] {
	return joined(f, func(one ByteFinder) iter.Seq2[FilePlace, error] { return one.FindBytes(ctx, needles) })
}

// joined yields the sequences of several abilities, one after another, up to the first
// error.
func joined[A, T any](all []A, of func(A) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			for v, err := range of(one) {
				if !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
}

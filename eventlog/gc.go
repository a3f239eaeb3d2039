package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// GCOptions configure CollectGarbage. The zero value is right for most.
type GCOptions struct {
	// Grace is how long a blob is left alone after it was written, for the event
	// that is to need it: 24 hours if 0, not at all if negative.
	Grace time.Duration
	// DryRun finds what would go, and removes nothing.
	DryRun bool
}

const defaultGrace = 24 * time.Hour

// Garbage is what CollectGarbage removed.
type Garbage struct {
	// Blobs are the bodies that no event needs, ordered by digest.
	Blobs []BlobInfo
	// Leftovers are what writers left that were killed.
	Leftovers []Leftover
}

// Bytes is how much was freed.
func (g *Garbage) Bytes() (n int64) {
	for i := range g.Blobs {
		n += g.Blobs[i].Bytes
	}
	for i := range g.Leftovers {
		n += g.Leftovers[i].Bytes
	}
	return n
}

var (
	errBlobsUnknown = errors.New("the blobs in use cannot be told")
	errWholeTail    = errors.New("what stands behind the last complete append may hold events")
)

// CollectGarbage removes the blobs that no event needs, once they are older
// than the grace, and what killed writers left. A blob is needed when a line of
// any session lists it, or when a saved torn tail or a kept copy names it; those
// are left alone too. It holds the store lock exclusively, so that no append
// that needs a blob is under way. It may be killed at any moment.
//
// When a session cannot be read whole, the blobs in use cannot be told: the
// error names it (a *CorruptError where it is damaged), no blob is removed, and
// the Garbage has the leftovers, which go all the same.
//
// Memory grows with the number of blobs that are older than the grace.
func (l *Log) CollectGarbage(ctx context.Context, opts GCOptions) (Garbage, error) {
	if err := l.usable(ctx); err != nil {
		return Garbage{}, err
	}
	unlock, err := l.lockStore(ctx, !opts.DryRun)
	if err != nil {
		return Garbage{}, err
	}
	defer unlock()
	c := collection{log: l, opts: opts}
	if err := c.run(ctx); err != nil {
		return c.garbage, fmt.Errorf("collect garbage: %w", err)
	}
	return c.garbage, nil
}

type collection struct {
	log     *Log
	opts    GCOptions
	garbage Garbage
}

func (c *collection) run(ctx context.Context) error {
	sweeper, able := As[Sweeper](c.log.store)
	if able {
		if err := c.sweep(ctx, sweeper); err != nil {
			return err
		}
	}
	blobs, err := c.oldBlobs(ctx)
	if err != nil || len(blobs) == 0 {
		return err
	}
	for d, err := range c.log.neededBlobs(ctx, nil) {
		if err != nil {
			return err
		}
		delete(blobs, d)
	}
	if able && len(blobs) > 0 {
		for d, err := range sweeper.Mentioned(ctx) {
			if err != nil {
				return fmt.Errorf("%w: %w", errBlobsUnknown, err)
			}
			delete(blobs, d)
		}
	}
	return c.remove(ctx, blobs)
}

func (c *collection) sweep(ctx context.Context, s Sweeper) error {
	for leftover, err := range s.Sweep(ctx, !c.opts.DryRun) {
		if err != nil {
			return err
		}
		c.garbage.Leftovers = append(c.garbage.Leftovers, leftover)
	}
	return nil
}

// oldBlobs are the blobs that are older than the grace.
func (c *collection) oldBlobs(ctx context.Context) (map[Digest]BlobInfo, error) {
	store, err := c.log.blobs()
	if errors.Is(err, ErrUnsupported) {
		return nil, nil
	}
	grace := c.opts.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	youngest := c.log.opts.Now().Add(-grace)
	blobs := map[Digest]BlobInfo{}
	for info, err := range store.ListBlobs(ctx) {
		if err != nil {
			return nil, err
		}
		if grace < 0 || info.Written.Before(youngest) {
			blobs[info.Digest] = info
		}
	}
	return blobs, nil
}

func (c *collection) remove(ctx context.Context, blobs map[Digest]BlobInfo) error {
	digests := slices.Sorted(maps.Keys(blobs))
	if !c.opts.DryRun {
		if err := c.log.removeBlobs(ctx, digests); err != nil {
			return err
		}
	}
	for _, d := range digests {
		c.garbage.Blobs = append(c.garbage.Blobs, blobs[d])
	}
	return nil
}

// tailSeq stands for what is behind the last event of a session.
const tailSeq = -1

// neededBlobs yields the blobs that lines of the store list, but for those of
// the events that except picks, if there is an except. A digest may come often.
// An error names the session that cannot be read whole.
func (l *Log) neededBlobs(ctx context.Context, except func(session string, seq int64) bool) iter.Seq2[Digest, error] {
	return func(yield func(Digest, error) bool) {
		for info, err := range l.store.Sessions(ctx) {
			if err = cmp.Or(err, info.Err); err != nil {
				yield("", fmt.Errorf("%w: session %q: %w", errBlobsUnknown, info.ID, err))
				return
			}
			for e, err := range l.store.Read(ctx, info.ID, Span{}) {
				if err != nil {
					yield("", fmt.Errorf("%w: session %q: %w", errBlobsUnknown, info.ID, err))
					return
				}
				if except != nil && except(info.ID, e.Seq) {
					continue
				}
				for _, d := range e.Blobs() {
					if !yield(d, nil) {
						return
					}
				}
			}
		}
		if err := l.wholeTail(ctx, except); err != nil {
			yield("", fmt.Errorf("%w: %w", errBlobsUnknown, err))
		}
	}
}

// wholeTail reports a torn tail that may hold events which were acknowledged,
// or one that cannot be looked at.
func (l *Log) wholeTail(ctx context.Context, except func(session string, seq int64) bool) error {
	for t, err := range l.TornTails(ctx) {
		if err != nil {
			return err
		}
		if t.Whole && (except == nil || !except(t.Session, tailSeq)) {
			damage := &CorruptError{Session: t.Session, Path: t.Path, Offset: t.Offset, Cause: errWholeTail}
			return fmt.Errorf("session %q: %w", t.Session, damage)
		}
	}
	return nil
}

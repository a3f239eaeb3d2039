package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// CollectOptions configure Collect. The zero value suits most.
type CollectOptions struct {
	// Grace is how long a blob is kept after it was written, for the event that will
	// refer to it: 24 hours if 0, no time if negative.
	Grace time.Duration
	// DryRun reports the garbage, and removes nothing.
	DryRun bool
}

const defaultGrace = 24 * time.Hour

// Garbage is the report of Collect.
type Garbage struct {
	// Blobs are the bodies that no event needs, ordered by digest.
	Blobs []eventlog.BlobInfo
	// Leftovers are files or rows of interrupted writes.
	Leftovers []eventlog.FilePlace
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
	errBlobsUnknown = errors.New("the blobs in use are unknown")
	errWholeTail    = errors.New("the bytes after the last complete append may hold events")
)

// Collect removes the blobs that no event needs, once they are older than the grace,
// and the leftovers of interrupted writes. A blob is needed when a line of any
// session lists it, or when a saved torn tail or a backup copy refers to it; those
// stay too. It holds the store lock exclusively, so no append that needs a blob is
// running. It may be killed at any moment. Collect uses the first
// CollectOptions only.
//
// If the store is no eventlog.BlobIndex, Collect reads all sessions. If one of them cannot
// be read whole, the blobs in use are unknown: the error names the session (a
// *eventlog.CorruptError if it is damaged), no blob is removed, and the Garbage has the
// leftovers, which are removed all the same.
//
// Memory grows with the number of blobs that are older than the grace.
func Collect(ctx context.Context, log *eventlog.Log, opts ...CollectOptions) (Garbage, error) {
	c := collection{log: log, engine: engine.Of(log)}
	if len(opts) > 0 {
		c.opts = opts[0]
	}
	if err := log.Ping(ctx); err != nil {
		return Garbage{}, err
	}
	err := c.engine.Locked(ctx, !c.opts.DryRun, func(ctx context.Context) error {
		if !c.opts.DryRun {
			if err := finish(ctx, log); err != nil {
				return err
			}
		}
		return c.run(ctx)
	})
	if err != nil {
		err = fmt.Errorf("collect garbage: %w", err)
	}
	return c.garbage, err
}

type collection struct {
	log     *eventlog.Log
	engine  engine.Engine
	opts    CollectOptions
	garbage Garbage
}

func (c *collection) run(ctx context.Context) error {
	sweeper, able := eventlog.As[eventlog.Sweeper](c.log.Store())
	if able {
		if err := c.sweep(ctx, sweeper); err != nil {
			return err
		}
	}
	blobs, err := c.oldBlobs(ctx)
	if err != nil || len(blobs) == 0 {
		return err
	}
	for d, err := range neededBlobs(ctx, c.log, slices.Sorted(maps.Keys(blobs)), nil) {
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

func (c *collection) sweep(ctx context.Context, s eventlog.Sweeper) error {
	for leftover, err := range s.Sweep(ctx, !c.opts.DryRun) {
		if err != nil {
			return err
		}
		c.garbage.Leftovers = append(c.garbage.Leftovers, leftover)
	}
	return nil
}

// oldBlobs are the blobs that are older than the grace.
func (c *collection) oldBlobs(ctx context.Context) (map[event.Digest]eventlog.BlobInfo, error) {
	store, ok := eventlog.As[eventlog.Blobs](c.log.Store())
	if !ok {
		return nil, nil
	}
	grace := c.opts.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	settings, err := c.engine.Settings(ctx)
	if err != nil {
		return nil, err
	}
	youngest := settings.Now().Add(-grace)
	blobs := map[event.Digest]eventlog.BlobInfo{}
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

func (c *collection) remove(ctx context.Context, blobs map[event.Digest]eventlog.BlobInfo) error {
	digests := slices.Sorted(maps.Keys(blobs))
	if !c.opts.DryRun {
		if err := removeBlobs(ctx, c.log, digests); err != nil {
			return err
		}
	}
	for _, d := range digests {
		c.garbage.Blobs = append(c.garbage.Blobs, blobs[d])
	}
	return nil
}

// tailSeq is the seq that neededBlobs uses for a torn tail.
const tailSeq = -1

// neededBlobs yields each of the blobs that a line of the store lists, except for events
// that except picks. It may yield other blobs too, and a digest may repeat. If the store is
// no eventlog.BlobIndex, neededBlobs reads all sessions, and an error names the session
// that cannot be read whole.
func neededBlobs(ctx context.Context, log *eventlog.Log, blobs []event.Digest, except func(session string, seq int64) bool) iter.Seq2[event.Digest, error] {
	return func(yield func(event.Digest, error) bool) {
		users := listedBlobs(ctx, log)
		if index, ok := eventlog.As[eventlog.BlobIndex](log.Store()); ok {
			users = unlessUnsupported(index.BlobUsers(ctx, blobs), users)
		}
		for u, err := range users {
			if err == nil && except != nil && except(u.Session, u.Seq) {
				continue
			}
			if !yield(u.Digest, err) || err != nil {
				return
			}
		}
		if err := wholeTail(ctx, log, except); err != nil {
			yield("", fmt.Errorf("%w: %w", errBlobsUnknown, err))
		}
	}
}

// unlessUnsupported is indexed, or listed if indexed is eventlog.ErrUnsupported.
func unlessUnsupported(indexed, listed iter.Seq2[eventlog.BlobUser, error]) iter.Seq2[eventlog.BlobUser, error] {
	return func(yield func(eventlog.BlobUser, error) bool) {
		for u, err := range indexed {
			if errors.Is(err, eventlog.ErrUnsupported) {
				listed(yield)
				return
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// listedBlobs yields the users of all blobs. It reads all sessions.
func listedBlobs(ctx context.Context, log *eventlog.Log) iter.Seq2[eventlog.BlobUser, error] {
	return func(yield func(eventlog.BlobUser, error) bool) {
		for info, err := range log.Sessions(ctx) {
			if err = cmp.Or(err, info.Err); err != nil {
				yield(eventlog.BlobUser{}, fmt.Errorf("%w: session %q: %w", errBlobsUnknown, info.ID, err))
				return
			}
			for e, err := range log.Store().Read(ctx, info.ID, eventlog.Span{Transient: true}) {
				if err != nil {
					yield(eventlog.BlobUser{}, fmt.Errorf("%w: session %q: %w", errBlobsUnknown, info.ID, err))
					return
				}
				for _, d := range e.Blobs() {
					if !yield(eventlog.BlobUser{Digest: d, Session: info.ID, Seq: e.Seq}, nil) {
						return
					}
				}
			}
		}
	}
}

// wholeTail reports a torn tail that may hold acknowledged events, or one that
// cannot be read.
func wholeTail(ctx context.Context, log *eventlog.Log, except func(session string, seq int64) bool) error {
	tails, ok := eventlog.As[eventlog.TailKeeper](log.Store())
	if !ok {
		return nil
	}
	for t, err := range tails.TornTails(ctx, "") {
		if err != nil {
			return err
		}
		if t.Whole && (except == nil || !except(t.Session, tailSeq)) {
			damage := &eventlog.CorruptError{Session: t.Session, Path: t.Path, Offset: t.Offset, Cause: errWholeTail}
			return fmt.Errorf("session %q: %w", t.Session, damage)
		}
	}
	return nil
}

// blobSize is the size of a blob; 0 if it is missing.
func blobSize(ctx context.Context, log *eventlog.Log, d event.Digest) (int64, error) {
	blobs, ok := eventlog.As[eventlog.Blobs](log.Store())
	if !ok {
		return 0, fmt.Errorf("blobs: %w", eventlog.ErrUnsupported)
	}
	body, err := blobs.OpenBlob(ctx, d)
	if errors.Is(err, eventlog.ErrBlobNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(io.Discard, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return 0, fmt.Errorf("read blob %s: %w", d, err)
	}
	return size, nil
}

package erase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// ErrUnfinished reports an erasure after which bytes may still be in the store's files:
// another process holds them, or only the owner of the tables may free them. End that
// process, or connect as the owner, and call Finish.
var ErrUnfinished = errors.New("the erased bytes may still be in the files")

// Finish completes an erasure that was interrupted: it removes the blobs that no event
// needs any more, and erases the bytes that are left in the store's files. Redact,
// Match, Remove and Collect do the same before they begin. If another process holds the
// bytes, for example with an open read of the database, the error is ErrUnfinished.
// Without an interrupted erasure, Finish reads a record and takes no lock.
func Finish(ctx context.Context, log *eventlog.Log) error {
	if err := engine.Of(log).Usable(ctx); err != nil {
		return err
	}
	unfinished, err := erasing(ctx, log)
	if err != nil || unfinished.Done() {
		return err
	}
	return engine.Of(log).Locked(ctx, true, func(ctx context.Context) error { return finish(ctx, log) })
}

// erasing is the record of an interrupted erasure. A store that erases nothing has none.
func erasing(ctx context.Context, log *eventlog.Log) (eventlog.Erasing, error) {
	eraser, ok := eventlog.As[eventlog.Eraser](log.Store())
	if !ok {
		return eventlog.Erasing{}, nil
	}
	return eraser.Erasing(ctx)
}

// finish is Finish under the store lock.
func finish(ctx context.Context, log *eventlog.Log) error {
	unfinished, err := erasing(ctx, log)
	if err != nil || unfinished.Done() {
		return err
	}
	blobs := map[event.Digest]bool{}
	for _, d := range unfinished.Blobs {
		blobs[d] = true
	}
	if len(blobs) > 0 {
		for d, err := range neededBlobs(ctx, log, unfinished.Blobs, nil) {
			if err != nil {
				return fmt.Errorf("finish an interrupted erasure: %w", err)
			}
			delete(blobs, d)
		}
	}
	if err := erased(ctx, log, slices.Sorted(maps.Keys(blobs))); err != nil {
		return fmt.Errorf("finish an interrupted erasure: %w", err)
	}
	return nil
}

// erased ends an erasure: it removes blobs that no event needs, ends their record, and
// erases the bytes in the store's files. The record is erased too: a digest would show
// whether a guess of a body is right.
func erased(ctx context.Context, log *eventlog.Log, blobs []event.Digest) error {
	if err := removeBlobs(ctx, log, blobs); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	unfinished, err := erasing(ctx, log)
	if err == nil && len(unfinished.Blobs) > 0 {
		eraser, _ := eventlog.As[eventlog.Eraser](log.Store())
		if err = eraser.SetErasing(ctx, nil); err == nil {
			unfinished, err = eraser.Erasing(ctx)
		}
	}
	if err != nil || !unfinished.Bytes {
		return err
	}
	if err := eraseBytes(ctx, log); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return nil
}

func eraseBytes(ctx context.Context, log *eventlog.Log) error {
	sweeper, ok := eventlog.As[eventlog.Sweeper](log.Store())
	if !ok {
		return fmt.Errorf("sweep: %w", eventlog.ErrUnsupported)
	}
	for _, err := range sweeper.Sweep(ctx, true) {
		if err != nil {
			return err
		}
	}
	return nil
}

func removeBlobs(ctx context.Context, log *eventlog.Log, digests []event.Digest) error {
	if len(digests) == 0 {
		return nil
	}
	blobs, ok := eventlog.As[eventlog.Blobs](log.Store())
	if !ok {
		return fmt.Errorf("blobs: %w", eventlog.ErrUnsupported)
	}
	return blobs.RemoveBlobs(ctx, digests)
}

package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// storeBlobs spills data that is too big and checks that every blob exists, under
// a shared store lock that the caller ends after the append.
func (l *Log) storeBlobs(ctx context.Context, entries []entry) (unlock func(), err error) {
	ctx, unlock, err = l.lockStore(ctx, false)
	if err != nil {
		return nil, err
	}
	if err = l.spillAll(ctx, entries); err == nil {
		err = l.checkBlobs(ctx, entries)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// spillAll spills data over the threshold, then the largest data that is left
// until the append fits its bound.
func (l *Log) spillAll(ctx context.Context, entries []entry) error {
	size := 0
	for i := range entries {
		if l.spills(&entries[i].Event) {
			if err := l.spill(ctx, &entries[i]); err != nil {
				return err
			}
		}
		size += entries[i].size()
	}
	for size > engine.MaxAppend {
		largest := largestInline(entries)
		if largest == nil {
			return fmt.Errorf("%w: the append's lines take up to %d bytes, at most %d", event.ErrInvalidSize, size, engine.MaxAppend)
		}
		before := largest.size()
		if err := l.spill(ctx, largest); err != nil {
			return err
		}
		size -= before - largest.size()
	}
	return nil
}

// spills reports whether the event's data is over the threshold.
func (l *Log) spills(e *event.Event) bool {
	return l.opts.SpillOver >= 0 && len(e.Data) > l.opts.SpillOver && e.Type.Erasable()
}

// largestInline is the entry with the largest data on its line; nil if none is
// worth a blob.
func largestInline(entries []entry) (largest *entry) {
	for i := range entries {
		en := &entries[i]
		if !en.spilled.IsZero() || len(en.Data) <= engine.MinSpill || !en.Type.Erasable() {
			continue
		}
		if largest == nil || len(en.Data) > len(largest.Data) {
			largest = en
		}
	}
	return largest
}

// spill stores the entry's data as a blob.
func (l *Log) spill(ctx context.Context, en *entry) error {
	ref, err := l.spillData(ctx, en.Data)
	if err != nil {
		return err
	}
	en.spilled = ref
	en.blobs = withDigest(en.blobs, ref.Blob)
	return nil
}

func (l *Log) spillData(ctx context.Context, data []byte) (event.BlobRef, error) {
	blobs, err := l.blobs()
	if err != nil {
		return event.BlobRef{}, fmt.Errorf("%w: data of %d bytes needs a blob: %w", event.ErrInvalidSize, len(data), err)
	}
	d, n, err := blobs.PutBlob(ctx, bytes.NewReader(data))
	if err != nil {
		return event.BlobRef{}, fmt.Errorf("spill data: %w", err)
	}
	return event.BlobRef{Blob: d, Bytes: n}, nil
}

// withDigest adds a digest to a sorted list without repeats.
func withDigest(digests []event.Digest, d event.Digest) []event.Digest {
	i, found := slices.BinarySearch(digests, d)
	if found {
		return digests
	}
	return slices.Insert(slices.Clone(digests), i, d)
}

// checkBlobs refuses events that need a blob the store does not have.
func (l *Log) checkBlobs(ctx context.Context, entries []entry) error {
	for i := range entries {
		for _, d := range entries[i].blobs {
			if entries[i].spilled.Blob == d {
				continue
			}
			if err := l.checkBlob(ctx, d); err != nil {
				return fmt.Errorf("event %d (%s): %w: %w", i+1, entries[i].Type, event.ErrInvalidBlob, err)
			}
		}
	}
	return nil
}

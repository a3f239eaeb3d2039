package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

type blob struct {
	body    []byte
	written time.Time
}

// PutBlob implements eventlog.Blobs.
func (s *Store) PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error) {
	if err := s.writable(ctx); err != nil {
		return "", 0, err
	}
	var read bytes.Buffer
	if _, err := io.Copy(&read, r); err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	body := read.Bytes()
	if err := s.writable(ctx); err != nil {
		return "", 0, err
	}
	digest := event.DigestOf(body)
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	s.data.blobs[digest] = blob{body: body, written: time.Now()}
	return digest, int64(len(body)), nil
}

// OpenBlob implements eventlog.Blobs.
func (s *Store) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	b, ok := s.data.blobs[d]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", d, eventlog.ErrBlobNotFound)
	}
	return io.NopCloser(bytes.NewReader(b.body)), nil
}

// RemoveBlobs implements eventlog.Blobs.
func (s *Store) RemoveBlobs(ctx context.Context, digests []event.Digest) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	for _, d := range digests {
		delete(s.data.blobs, d)
	}
	return nil
}

// Sweep implements eventlog.Sweeper. It finds nothing: an interrupted write leaves no
// bytes.
func (s *Store) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.FilePlace, error] {
	return func(yield func(eventlog.FilePlace, error) bool) {
		err := s.usable(ctx)
		if remove {
			err = s.writable(ctx)
		}
		if err != nil {
			yield(eventlog.FilePlace{}, err)
		}
	}
}

// Mentioned implements eventlog.Sweeper. The copies that Replace makes refer to no
// blobs of their own.
func (s *Store) Mentioned(ctx context.Context) iter.Seq2[event.Digest, error] {
	return func(yield func(event.Digest, error) bool) {
		if err := s.usable(ctx); err != nil {
			yield("", err)
		}
	}
}

// ListBlobs implements eventlog.Blobs.
func (s *Store) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return func(yield func(eventlog.BlobInfo, error) bool) {
		s.data.mu.RLock()
		blobs := maps.Clone(s.data.blobs)
		s.data.mu.RUnlock()
		if err := s.usable(ctx); err != nil {
			yield(eventlog.BlobInfo{}, err)
			return
		}
		for _, d := range slices.Sorted(maps.Keys(blobs)) {
			info := eventlog.BlobInfo{Digest: d, Bytes: int64(len(blobs[d].body)), Written: blobs[d].written}
			if !yield(info, nil) {
				return
			}
		}
	}
}

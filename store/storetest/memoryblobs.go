package storetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

type memoryBlob struct {
	body    []byte
	written time.Time
}

// PutBlob implements Blobs.
func (m *Memory) PutBlob(ctx context.Context, r io.Reader) (eventlog.Digest, int64, error) {
	if err := m.writable(ctx); err != nil {
		return "", 0, err
	}
	var read bytes.Buffer
	if _, err := io.Copy(&read, r); err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	body := read.Bytes()
	if err := m.writable(ctx); err != nil {
		return "", 0, err
	}
	digest := eventlog.DigestOf(body)
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	m.data.blobs[digest] = memoryBlob{body: body, written: time.Now()}
	return digest, int64(len(body)), nil
}

// OpenBlob implements Blobs.
func (m *Memory) OpenBlob(ctx context.Context, d eventlog.Digest) (io.ReadCloser, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	m.data.mu.RLock()
	defer m.data.mu.RUnlock()
	b, ok := m.data.blobs[d]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", d, eventlog.ErrBlobNotFound)
	}
	return io.NopCloser(bytes.NewReader(b.body)), nil
}

// RemoveBlob implements Blobs.
func (m *Memory) RemoveBlob(ctx context.Context, d eventlog.Digest) error {
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	delete(m.data.blobs, d)
	return nil
}

// RemoveBlobs implements Sweeper.
func (m *Memory) RemoveBlobs(ctx context.Context, digests []eventlog.Digest) error {
	for _, d := range digests {
		if err := m.RemoveBlob(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// Sweep implements Sweeper: a write that does not end leaves nothing.
func (m *Memory) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.Leftover, error] {
	return func(yield func(eventlog.Leftover, error) bool) {
		err := m.usable(ctx)
		if remove {
			err = m.writable(ctx)
		}
		if err != nil {
			yield(eventlog.Leftover{}, err)
		}
	}
}

// Mentioned implements Sweeper: nothing is kept beside the sessions.
func (m *Memory) Mentioned(ctx context.Context) iter.Seq2[eventlog.Digest, error] {
	return func(yield func(eventlog.Digest, error) bool) {
		if err := m.usable(ctx); err != nil {
			yield("", err)
		}
	}
}

// ListBlobs implements Blobs.
func (m *Memory) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return func(yield func(eventlog.BlobInfo, error) bool) {
		m.data.mu.RLock()
		blobs := maps.Clone(m.data.blobs)
		m.data.mu.RUnlock()
		if err := m.usable(ctx); err != nil {
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

// Lock implements Locker.
func (m *Memory) Lock(ctx context.Context, exclusive bool) (unlock func(), err error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	if err := m.data.lock.take(ctx, exclusive); err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return sync.OnceFunc(func() { m.data.lock.release(exclusive) }), nil
}

// memoryLock is a lock for many readers or one writer that is waited for under
// a context.
type memoryLock struct {
	mu      sync.Mutex
	readers int
	writer  bool
	changed chan struct{} // closed and replaced at every release
}

func newMemoryLock() *memoryLock { return &memoryLock{changed: make(chan struct{})} }

func (l *memoryLock) take(ctx context.Context, exclusive bool) error {
	for {
		ok, changed := l.try(exclusive)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *memoryLock) try(exclusive bool) (ok bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.writer, exclusive && l.readers > 0:
		return false, l.changed
	case exclusive:
		l.writer = true
	default:
		l.readers++
	}
	return true, nil
}

func (l *memoryLock) release(exclusive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if exclusive {
		l.writer = false
	} else {
		l.readers--
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

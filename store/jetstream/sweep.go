package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// runningUpload is the age at which an upload of a blob counts as interrupted.
const runningUpload = time.Hour

// Sweep implements eventlog.Sweeper. A leftover is an interrupted upload of a blob, or
// the lease of a store that died or was cut off.
func (s *Store) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.FilePlace, error] {
	return func(yield func(eventlog.FilePlace, error) bool) {
		if err := s.sweep(ctx, remove, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.FilePlace{}, fmt.Errorf("sweep: %w", err))
		}
	}
}

func (s *Store) sweep(ctx context.Context, remove bool, yield func(eventlog.FilePlace, error) bool) error {
	open := s.reading
	if remove {
		open = s.writable
	}
	l, err := open(ctx)
	if l == nil || err != nil {
		return err
	}
	if remove {
		if err := l.finishAll(ctx); err != nil {
			return err
		}
	}
	uploads, err := l.uploads(ctx)
	if err != nil {
		return err
	}
	for subject, size := range uploads {
		if remove {
			if err := l.blobs.eraseSubject(ctx, subject, afterAll); err != nil {
				return err
			}
		}
		if !yield(eventlog.FilePlace{Path: l.blobs.placeOf(subject), Bytes: size}, nil) {
			return errStop
		}
	}
	leases, err := l.unheld(ctx)
	if err != nil {
		return err
	}
	for _, m := range leases {
		if remove {
			if err := l.control.purge(ctx, m.subject, m.at+1); err != nil {
				return s.failure(err)
			}
		}
		if !yield(eventlog.FilePlace{Path: l.control.placeOf(m.subject), Bytes: int64(len(m.body))}, nil) {
			return errStop
		}
	}
	return nil
}

// finishAll finishes the interrupted erasures of all sessions and blobs.
func (l *layout) finishAll(ctx context.Context) error {
	for _, st := range l.shards {
		bound, fenced := st.fenceOf(ctx)
		if !fenced {
			newest, err := st.newest(ctx)
			if err != nil {
				return err
			}
			bound = newest + 1
		}
		subjects, err := st.subjects(ctx, st.subject(pendingSubject, "*"))
		if err != nil {
			return err
		}
		for _, subject := range subjects {
			session, ok := st.decodeLast(subject)
			if !ok {
				continue
			}
			if err := st.finish(ctx, session, bound); err != nil {
				return fmt.Errorf("session %q: %w", session, err)
			}
		}
	}
	return l.finishBlobs(ctx)
}

// uploads returns the uploads that no blob names, with the sizes of their pieces.
func (l *layout) uploads(ctx context.Context) (map[string]int64, error) {
	st := l.blobs
	info, err := st.info(ctx, nil)
	if err != nil {
		return nil, st.store.failure(err)
	}
	subjects, err := st.subjects(ctx, st.subject(pieceSubject, "*"))
	if err != nil || len(subjects) == 0 {
		return nil, err
	}
	named := make(map[string]bool)
	err = l.eachBlob(ctx, func(_ event.Digest, b *blob) error {
		named[st.subject(pieceSubject, b.upload)] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	unnamed := make(map[string]int64)
	for _, subject := range subjects {
		if named[subject] {
			continue
		}
		size := int64(0)
		var newest *message
		err := st.each(ctx, subject, 1, func(m *message) error {
			size += int64(len(m.body))
			newest = m
			return nil
		})
		if err != nil {
			return nil, err
		}
		if newest != nil && info.TimeStamp.Sub(newest.time()) > runningUpload {
			unnamed[subject] = size
		}
	}
	return unnamed, nil
}

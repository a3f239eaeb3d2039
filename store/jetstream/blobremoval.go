package jetstream

import (
	"context"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
)

// RemoveBlobs implements eventlog.Blobs.
func (s *Store) RemoveBlobs(ctx context.Context, digests []event.Digest) error {
	return wrap("remove blobs", s.removeBlobs(ctx, digests))
}

// removedAtOnce bounds the blobs that one batch removes; the server takes 1,000 messages.
const removedAtOnce = 500

func (s *Store) removeBlobs(ctx context.Context, digests []event.Digest) error {
	for _, d := range digests {
		if err := d.Check(); err != nil {
			return err
		}
	}
	l, err := s.writable(ctx)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(digests, removedAtOnce) {
		if err := l.removeBlobs(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// removeBlobs stores the messages that remove blobs, all or none, and erases the pieces.
func (l *layout) removeBlobs(ctx context.Context, digests []event.Digest) error {
	st := l.blobs
	batch := []*nats.Msg{st.pending(ctx, "blobs")}
	for _, d := range digests {
		m, err := st.last(ctx, l.blobSubject(d))
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		removal := &nats.Msg{Subject: m.subject, Header: nats.Header{}}
		removal.Header[blobHeader] = []string{tombstone}
		if b, _ := st.parseBlob(m); b != nil {
			removal.Header[blobHeader] = []string{tombstone + " " + b.upload}
		}
		batch = append(batch, removal)
	}
	if len(batch) == 1 {
		return nil
	}
	if _, err := st.publishAll(ctx, batch); err != nil {
		return st.erasingFailure(ctx, err)
	}
	return l.finishBlobs(ctx)
}

// finishBlobs erases removed blobs.
func (l *layout) finishBlobs(ctx context.Context) error {
	st := l.blobs
	pending, err := st.last(ctx, st.subject(pendingSubject, "blobs"))
	if pending == nil || err != nil {
		return err
	}
	subjects, err := st.subjects(ctx, st.subject(blobSubject, "*"))
	if err != nil {
		return err
	}
	newest, err := st.newest(ctx)
	if err != nil {
		return err
	}
	found, err := st.lastOf(ctx, subjects, newest)
	if err != nil {
		return err
	}
	erasing, err := l.erasing(ctx)
	if err != nil {
		return err
	}
	secret := make(map[string]bool)
	for _, d := range erasing.Blobs {
		secret[l.blobSubject(d)] = true
	}
	for subject, m := range found {
		if err := st.finishBlob(ctx, m, secret[subject]); err != nil {
			return err
		}
	}
	return st.store.failure(st.purge(ctx, pending.subject, pending.at+1))
}

// finishBlob erases a blob whose last message is m, if m says that the blob was removed. If the
// digest is secret, the messages with it are overwritten too. m is the last one: without it the
// blob would be back.
func (st *stream) finishBlob(ctx context.Context, m *message, secret bool) error {
	upload, removed := strings.CutPrefix(lastValue(m.header, blobHeader), tombstone)
	if !removed {
		return nil
	}
	if upload = strings.TrimSpace(upload); upload != "" {
		if err := st.eraseSubject(ctx, st.subject(pieceSubject, upload), m.at); err != nil {
			return err
		}
	}
	if !secret {
		return st.store.failure(st.purge(ctx, m.subject, m.at+1))
	}
	if err := st.eraseSubject(ctx, m.subject, m.at); err != nil {
		return err
	}
	return st.erase(ctx, []uint64{m.at})
}

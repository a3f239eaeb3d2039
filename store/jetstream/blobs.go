package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// The body of a blob is stored in pieces, on a subject of its own. The last message of the
// subject of its digest names the pieces, or says that the blob was removed. A blob without
// such a message is invisible.
const (
	blobSubject  = "blob"
	pieceSubject = "piece"
	blobHeader   = "Convlog-Blob"
)

// blob is a stored blob.
type blob struct {
	at      uint64 // the message of the digest
	upload  string // the last token of the subject of the pieces
	bytes   int64
	message *message
}

var errBlob = errors.New("the message of a blob is malformed")

func (l *layout) blobSubject(d event.Digest) string { return l.blobs.subject(blobSubject, d.Hex()) }

// findBlob returns a blob, or nil if there is none.
func (l *layout) findBlob(ctx context.Context, d event.Digest) (*blob, error) {
	m, err := l.blobs.last(ctx, l.blobSubject(d))
	if m == nil || err != nil {
		return nil, err
	}
	return l.blobs.parseBlob(m)
}

// parseBlob decodes the message of a digest. It returns nil for a removed blob.
func (st *stream) parseBlob(m *message) (*blob, error) {
	b := &blob{at: m.at, message: m}
	text := ""
	if values := m.header[blobHeader]; len(values) > 0 {
		text = values[0]
	}
	if strings.HasPrefix(text, tombstone) {
		return nil, nil
	}
	var version int
	if _, err := fmt.Sscanf(text, "v=%d upload=%s bytes=%d", &version, &b.upload, &b.bytes); err != nil || b.bytes < 0 || version < 1 {
		return nil, &eventlog.CorruptError{Path: st.place(m.at), Offset: -1, Cause: errBlob}
	}
	if version > formatVersion {
		return nil, &event.VersionError{What: "jetstream blob", Got: version, Max: formatVersion}
	}
	return b, nil
}

// ListBlobs implements eventlog.Blobs.
func (s *Store) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return func(yield func(eventlog.BlobInfo, error) bool) {
		if err := s.listBlobs(ctx, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.BlobInfo{}, fmt.Errorf("list blobs: %w", err))
		}
	}
}

func (s *Store) listBlobs(ctx context.Context, yield func(eventlog.BlobInfo, error) bool) error {
	l, err := s.reading(ctx)
	if l == nil || err != nil {
		return err
	}
	return l.eachBlob(ctx, func(d event.Digest, b *blob) error {
		if !yield(eventlog.BlobInfo{Digest: d, Bytes: b.bytes, Written: b.message.time().UTC()}, nil) {
			return errStop
		}
		return nil
	})
}

// eachBlob passes the blobs to fn, ordered by digest.
func (l *layout) eachBlob(ctx context.Context, fn func(d event.Digest, b *blob) error) error {
	st := l.blobs
	newest, err := st.newest(ctx)
	if err != nil {
		return err
	}
	subjects, err := st.subjects(ctx, st.subject(blobSubject, "*"))
	if err != nil {
		return err
	}
	slices.Sort(subjects)
	for page := range slices.Chunk(subjects, maxMulti) {
		found, err := st.lastOf(ctx, page, newest)
		if err != nil {
			return err
		}
		for _, subject := range page {
			if found[subject] == nil {
				continue
			}
			b, err := st.parseBlob(found[subject])
			if err == nil && b != nil {
				err = fn(event.Digest("sha256:"+subject[strings.LastIndexByte(subject, '.')+1:]), b)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

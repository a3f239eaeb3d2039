package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// OpenBlob implements eventlog.Blobs. The reader fetches a piece at a time, under ctx.
func (s *Store) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	r, err := s.openBlob(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d, err)
	}
	return r, nil
}

func (s *Store) openBlob(ctx context.Context, d event.Digest) (*blobReader, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	l, err := s.reading(ctx)
	if err == nil && l == nil {
		err = eventlog.ErrBlobNotFound
	}
	if err != nil {
		return nil, err
	}
	found, err := l.findBlob(ctx, d)
	if err == nil && found == nil {
		err = eventlog.ErrBlobNotFound
	}
	return &blobReader{layout: l, ctx: ctx, digest: d, blob: found}, err
}

// blobReader reads the pieces of a blob.
type blobReader struct {
	layout *layout
	ctx    context.Context
	digest event.Digest
	blob   *blob
	done   int64  // bytes of the pieces before rest
	next   uint64 // the piece after rest has this sequence or a later one
	rest   []byte
	closed bool
}

var errReaderClosed = errors.New("the reader of the blob is closed")

// Size is the number of bytes of the blob.
func (r *blobReader) Size() int64 { return r.blob.bytes }

// Read implements io.Reader.
func (r *blobReader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, errReaderClosed
	}
	if len(r.rest) == 0 {
		if r.done >= r.blob.bytes {
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, fmt.Errorf("read %s: %w", r.digest, err)
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fetch reads the next piece. Any replica will do that has it.
func (r *blobReader) fetch() error {
	st := r.layout.blobs
	if err := st.store.usable(r.ctx); err != nil {
		return err
	}
	request := getRequest{Seq: max(r.next, 1), Next: st.subject(pieceSubject, r.blob.upload)}
	m, err := st.getDirect(r.ctx, request)
	if m == nil && err == nil {
		m, err = st.get(r.ctx, request)
	}
	if err != nil {
		return err
	}
	if m == nil || len(m.body) == 0 {
		return r.missing()
	}
	r.next, r.rest = m.at+1, m.body
	r.done += int64(len(m.body))
	return nil
}

// missing is the reason for a missing piece: the blob was removed, or is damaged.
func (r *blobReader) missing() error {
	now, err := r.layout.findBlob(r.ctx, r.digest)
	if err == nil && (now == nil || now.upload != r.blob.upload) {
		err = eventlog.ErrBlobNotFound
	}
	if err != nil {
		return err
	}
	return &eventlog.CorruptError{Path: "blob " + string(r.digest), Offset: r.done, Cause: errMissing}
}

// Close implements io.Closer.
func (r *blobReader) Close() error {
	r.closed = true
	return nil
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// OpenBlob implements eventlog.Blobs. The reader fetches 1 MiB at a time. If the blob
// is removed in the meantime, the next Read returns ErrBlobNotFound.
func (s *Store) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	row := make([]driver.Value, 2)
	found := false
	err := s.read(ctx, func(c *conn) (err error) {
		found, err = c.first(row, findBlob, string(d))
		return err
	})
	if err != nil {
		return nil, s.locate("", "blobs", 0, err)
	}
	if !found {
		return nil, fmt.Errorf("open blob %s: %w", d, eventlog.ErrBlobNotFound)
	}
	key, ok := row[0].(int64)
	size, ok2 := row[1].(int64)
	if !ok || !ok2 {
		return nil, s.corrupt("", "blobs", 0, errRow)
	}
	return &blobReader{ctx: ctx, store: s, digest: d, key: key, size: size, left: size}, nil
}

// blobReader reads a blob. ctx is the context of OpenBlob.
type blobReader struct {
	ctx    context.Context
	store  *Store
	digest event.Digest
	key    int64
	size   int64
	left   int64 // bytes not fetched yet
	piece  int64 // number of the next piece
	body   []byte
	closed bool
}

func (r *blobReader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, errors.New("read blob: reader is closed")
	}
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.body) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.body)
	r.body = r.body[n:]
	return n, nil
}

// Size is the number of bytes of the blob, so that a caller can allocate them at once.
// It is 0 if the database names a size that no blob has.
func (r *blobReader) Size() int64 {
	if r.size > r.store.maxBlob {
		return 0
	}
	return r.size
}

// fetch reads the next piece.
func (r *blobReader) fetch() error {
	row := make([]driver.Value, 1)
	found := false
	err := r.store.read(r.ctx, func(c *conn) (err error) {
		found, err = c.first(row, readPiece, r.key, r.piece)
		return err
	})
	if err != nil {
		return r.store.locate("", "blob_pieces", 0, err)
	}
	body, _ := row[0].([]byte)
	if !found {
		return r.missing()
	}
	if int64(len(body)) != min(r.left, pieceBytes) {
		return r.store.corrupt("", "blob_pieces", 0, fmt.Errorf("piece %d of %s is %d bytes", r.piece, r.digest, len(body)))
	}
	r.body, r.left = body, r.left-int64(len(body))
	r.piece++
	return nil
}

// missing returns the reason of a missing piece: the blob was removed, or the database
// is damaged.
func (r *blobReader) missing() error {
	again, err := r.store.OpenBlob(r.ctx, r.digest)
	if err != nil {
		return err
	}
	if again.(*blobReader).key != r.key {
		return fmt.Errorf("read blob %s: the blob was removed and put again during the read: %w", r.digest, eventlog.ErrBlobNotFound)
	}
	return r.store.corrupt("", "blob_pieces", 0, fmt.Errorf("piece %d of %s is missing", r.piece, r.digest))
}

// Close ends reading. A reader uses no resources between two calls, so a reader that
// is never closed leaks nothing.
func (r *blobReader) Close() error {
	r.closed, r.body = true, nil
	return nil
}

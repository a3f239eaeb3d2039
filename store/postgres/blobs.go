package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const (
	newBlobKey  = `SELECT nextval('blob_keys')`
	insertPiece = `INSERT INTO blob_pieces (blob, piece, body) VALUES ($1, $2, $3)`
	// putBlob stores a digest, or renews the time of a stored one. It returns the key.
	putBlob = `INSERT INTO blobs (digest, key, bytes, written) VALUES ($1, $2, $3, clock_timestamp())
		ON CONFLICT (digest) DO UPDATE SET written = clock_timestamp() RETURNING key`
	// differs finds a piece of blob $2 that the new blob $1 does not have, or the reverse.
	differs = `SELECT EXISTS (SELECT FROM (SELECT piece, body FROM blob_pieces WHERE blob = $1) a
		FULL JOIN (SELECT piece, body FROM blob_pieces WHERE blob = $2) b USING (piece) WHERE a.body IS DISTINCT FROM b.body)`
	repairBlob   = `UPDATE blobs SET key = $2, bytes = $3 WHERE digest = $1`
	deletePieces = `DELETE FROM blob_pieces WHERE blob = $1`
	deleteBlobs  = `WITH gone AS (DELETE FROM blobs WHERE digest = ANY ($1) RETURNING key)
		DELETE FROM blob_pieces WHERE blob IN (SELECT key FROM gone)`
	findBlob  = `SELECT key, bytes FROM blobs WHERE digest = $1`
	readPiece = `SELECT body FROM blob_pieces WHERE blob = $1 AND piece = $2`
	listBlobs = `SELECT digest, bytes, written FROM blobs WHERE digest > $1 ORDER BY digest LIMIT $2`
)

// pieceBytes is the size of one row of a blob. PutBlob buffers at most one piece in
// memory.
const pieceBytes = 1 << 20

// PutBlob implements eventlog.Blobs. It reads r inside a transaction.
func (s *Store) PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error) {
	if _, err := s.writable(ctx); err != nil {
		return "", 0, err
	}
	b := blobWriter{sum: sha256.New()}
	piece, err := b.read(ctx, r)
	if err == nil {
		err = s.transact(ctx, itself, func(t transaction) error { return b.write(t, piece, r) })
	}
	if err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	return digestOf(b.sum.Sum(nil)), b.size, nil
}

// blobWriter writes a body in pieces. Its digest is known at the end.
type blobWriter struct {
	sum  hash.Hash
	size int64
	key  int64
}

// read reads the next piece; it is empty at the end.
func (b *blobWriter) read(ctx context.Context, r io.Reader) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var piece bytes.Buffer
	n, err := io.Copy(io.MultiWriter(&piece, b.sum), io.LimitReader(r, pieceBytes))
	b.size += n
	return piece.Bytes(), err
}

func (b *blobWriter) write(t transaction, piece []byte, r io.Reader) error {
	if _, err := t.one([]any{&b.key}, newBlobKey); err != nil {
		return err
	}
	for n := 0; len(piece) > 0; n++ {
		if _, err := t.exec(insertPiece, b.key, n, piece); err != nil {
			return err
		}
		if len(piece) < pieceBytes {
			break
		}
		var err error
		if piece, err = b.read(t.ctx, r); err != nil {
			return err
		}
	}
	return b.finish(t)
}

// finish names the pieces by their digest. If the same body is stored already, it keeps
// the stored one; a stored body with other bytes is damaged and replaced.
func (b *blobWriter) finish(t transaction) error {
	digest := b.sum.Sum(nil)
	var key int64
	if _, err := t.one([]any{&key}, putBlob, digest, b.key, b.size); err != nil || key == b.key {
		return err
	}
	var other bool
	if _, err := t.one([]any{&other}, differs, b.key, key); err != nil {
		return err
	}
	unneeded := b.key
	if other {
		if _, err := t.exec(repairBlob, digest, b.key, b.size); err != nil {
			return err
		}
		unneeded = key
	}
	_, err := t.exec(deletePieces, unneeded)
	return err
}

// OpenBlob implements eventlog.Blobs. The reader fetches a piece at a time, under ctx.
func (s *Store) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	digest, err := digestBytes(d)
	if err != nil {
		return nil, err
	}
	r := &blobReader{store: s, ctx: ctx, digest: d}
	found, err := s.one(ctx, []any{&r.key, &r.size}, findBlob, digest)
	if err == nil && !found {
		err = eventlog.ErrBlobNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d, err)
	}
	return r, nil
}

// blobReader reads the pieces of a blob.
type blobReader struct {
	store  *Store
	ctx    context.Context
	digest event.Digest
	key    int64
	size   int64
	piece  int64
	rest   []byte // of the current piece
	closed bool
}

var errReaderClosed = errors.New("the reader of the blob is closed")

// Size is the number of bytes of the blob.
func (r *blobReader) Size() int64 { return r.size }

// Read implements io.Reader.
func (r *blobReader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, errReaderClosed
	}
	if len(r.rest) == 0 {
		if r.piece*pieceBytes >= r.size {
			return 0, io.EOF
		}
		found, err := r.store.one(r.ctx, []any{&r.rest}, readPiece, r.key, r.piece)
		if err == nil && (!found || len(r.rest) == 0) {
			err = r.missing()
		}
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", r.digest, err)
		}
		r.piece++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// missing is the reason for a missing piece: the blob was removed, or is damaged.
func (r *blobReader) missing() error {
	sum, err := digestBytes(r.digest)
	if err != nil {
		return err
	}
	var key, size int64
	found, err := r.store.one(r.ctx, []any{&key, &size}, findBlob, sum)
	if err == nil && (!found || key != r.key) {
		err = eventlog.ErrBlobNotFound
	}
	if err != nil {
		return err
	}
	return &eventlog.CorruptError{Path: "blob " + string(r.digest), Offset: r.piece * pieceBytes, Cause: pages.ErrMissing}
}

// Close implements io.Closer.
func (r *blobReader) Close() error {
	r.closed = true
	return nil
}

// RemoveBlobs implements eventlog.Blobs.
func (s *Store) RemoveBlobs(ctx context.Context, digests []event.Digest) error {
	var sums [][]byte
	for _, d := range digests {
		sum, err := digestBytes(d)
		if err != nil {
			return fmt.Errorf("remove blobs: %w", err)
		}
		sums = append(sums, sum)
	}
	err := s.transact(ctx, itself, func(t transaction) error {
		if len(sums) == 0 {
			return nil
		}
		if err := t.noteBytes(); err != nil {
			return err
		}
		_, err := t.exec(deleteBlobs, sums)
		return err
	})
	if err == nil && len(sums) > 0 {
		err = s.vacuum(ctx)
	}
	return wrap("remove blobs", err)
}

// ListBlobs implements eventlog.Blobs.
func (s *Store) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return func(yield func(eventlog.BlobInfo, error) bool) {
		after := []byte{}
		for {
			page, last, err := s.blobPage(ctx, after)
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
			}
			if err != nil {
				yield(eventlog.BlobInfo{}, err)
				return
			}
			if len(page) < pages.MaxRows {
				return
			}
			after = last
		}
	}
}

// blobPage lists blobs after a digest, and returns the last digest.
func (s *Store) blobPage(ctx context.Context, after []byte) (page []eventlog.BlobInfo, last []byte, err error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows, err := pool.Query(ctx, listBlobs, after, pages.MaxRows)
	if err != nil {
		return nil, nil, s.failure(err)
	}
	page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (info eventlog.BlobInfo, err error) {
		var written time.Time
		err = row.Scan(&last, &info.Bytes, &written)
		info.Digest, info.Written = digestOf(last), written.UTC()
		return info, err
	})
	return page, last, s.failure(err)
}

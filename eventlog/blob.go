package eventlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
)

// errBlobDamaged is inside a CorruptError.
var errBlobDamaged = errors.New("the blob's bytes do not have its digest")

// PutBlob keeps a body by its content, durably, and returns the reference that
// payloads carry. Equal bodies are kept once.
func (l *Log) PutBlob(ctx context.Context, r io.Reader) (BlobRef, error) {
	if err := l.usable(ctx); err != nil {
		return BlobRef{}, err
	}
	unlock, err := l.lockStore(ctx, false)
	if err != nil {
		return BlobRef{}, err
	}
	defer unlock()
	return l.putBlob(ctx, r)
}

// putBlob is PutBlob under a store lock that the caller holds.
func (l *Log) putBlob(ctx context.Context, r io.Reader) (BlobRef, error) {
	blobs, err := l.blobs()
	if err != nil {
		return BlobRef{}, err
	}
	d, n, err := blobs.PutBlob(ctx, r)
	if err != nil {
		return BlobRef{}, fmt.Errorf("put blob: %w", err)
	}
	return BlobRef{Blob: d, Bytes: n}, nil
}

// OpenBlob opens a body; ErrBlobNotFound if there is none. A body whose bytes
// do not have its digest ends with a *CorruptError instead of io.EOF.
func (l *Log) OpenBlob(ctx context.Context, d Digest) (io.ReadCloser, error) {
	if err := l.usable(ctx); err != nil {
		return nil, err
	}
	if _, err := ParseDigest(string(d)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBlob, err)
	}
	blobs, err := l.blobs()
	if err != nil {
		return nil, err
	}
	body, err := blobs.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	return &checkedBlob{body: body, want: d, sum: sha256.New()}, nil
}

// checkBlob reports ErrBlobNotFound unless the blob is there.
func (l *Log) checkBlob(ctx context.Context, d Digest) error {
	body, err := l.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	return body.Close()
}

// blobSize is the size of a blob; 0 if there is none.
func (l *Log) blobSize(ctx context.Context, d Digest) (int64, error) {
	blobs, err := l.blobs()
	if err != nil {
		return 0, err
	}
	body, err := blobs.OpenBlob(ctx, d)
	if errors.Is(err, ErrBlobNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(io.Discard, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return 0, fmt.Errorf("read blob %s: %w", d, err)
	}
	return size, nil
}

func (l *Log) blobs() (Blobs, error) {
	blobs, ok := As[Blobs](l.store)
	if !ok {
		return nil, fmt.Errorf("blobs: %w", ErrUnsupported)
	}
	return blobs, nil
}

// checkedBlob compares a body with its digest when it has been read.
type checkedBlob struct {
	body io.ReadCloser
	want Digest
	sum  hash.Hash
}

func (b *checkedBlob) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.sum.Write(p[:n])
	if err == io.EOF && digestOfSum([sha256.Size]byte(b.sum.Sum(nil))) != b.want {
		return n, &CorruptError{Path: "blob " + string(b.want), Offset: -1, Cause: errBlobDamaged}
	}
	return n, err
}

func (b *checkedBlob) Close() error { return b.body.Close() }

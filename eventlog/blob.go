package eventlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
)

// errBlobDamaged is the cause in a CorruptError.
var errBlobDamaged = errors.New("the blob's bytes do not have its digest")

// PutBlob reads r to its end, stores the bytes durably as a blob, and returns the
// reference for a payload. Options.BodyHook may change or refuse the bytes. Equal bodies
// are stored once. A blob that no event refers to is garbage: append the event under the
// same Hold.
func (l *Log) PutBlob(ctx context.Context, r io.Reader) (event.BlobRef, error) {
	if err := l.usable(ctx); err != nil {
		return event.BlobRef{}, err
	}
	if r == nil {
		return event.BlobRef{}, fmt.Errorf("%w: the reader of PutBlob", event.ErrNilArgument)
	}
	if l.opts.BodyHook != nil {
		var err error
		if r, err = l.opts.BodyHook(ctx, r); err != nil {
			return event.BlobRef{}, fmt.Errorf("put blob: %w: %w", ErrRefused, err)
		}
	}
	return l.putBlob(ctx, r)
}

// putBlob is PutBlob without the hook.
func (l *Log) putBlob(ctx context.Context, r io.Reader) (event.BlobRef, error) {
	blobs, err := l.blobs()
	if err != nil {
		return event.BlobRef{}, err
	}
	ctx, unlock, err := l.lockStore(ctx, false)
	if err != nil {
		return event.BlobRef{}, err
	}
	defer unlock()
	d, n, err := blobs.PutBlob(ctx, r)
	if err != nil {
		return event.BlobRef{}, fmt.Errorf("put blob: %w", lockLost(ctx, err))
	}
	return event.BlobRef{Blob: d, Bytes: n}, nil
}

// OpenBlob opens a blob for reading; the caller closes it. A missing blob is
// ErrBlobNotFound. If the digest of the bytes differs from d, the reader ends with a
// *CorruptError instead of io.EOF.
func (l *Log) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	if err := l.usable(ctx); err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	blobs, err := l.blobs()
	if err != nil {
		return nil, err
	}
	body, err := blobs.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	if _, checks := blobs.(engine.CheckedBlobs); checks {
		return body, nil
	}
	checked := &checkedBlob{body: body, want: d, sum: sha256.New()}
	if s, ok := body.(engine.Sized); ok {
		return &sizedBlob{checked, s}, nil
	}
	return checked, nil
}

// checkBlob returns ErrBlobNotFound if the blob is missing.
func (l *Log) checkBlob(ctx context.Context, d event.Digest) error {
	body, err := l.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	return body.Close()
}

// readBlob reads and checks a whole blob.
func (l *Log) readBlob(ctx context.Context, d event.Digest) ([]byte, error) {
	r, err := l.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	body, err := engine.ReadBlob(r)
	return body, errors.Join(err, r.Close())
}

func (l *Log) blobs() (Blobs, error) {
	blobs, ok := As[Blobs](l.store)
	if !ok {
		return nil, fmt.Errorf("blobs: %w", ErrUnsupported)
	}
	return blobs, nil
}

// checkedBlob compares the digest of a body at its end.
type checkedBlob struct {
	body io.ReadCloser
	want event.Digest
	sum  hash.Hash
}

func (b *checkedBlob) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.sum.Write(p[:n])
	if err == io.EOF && line.Digest([sha256.Size]byte(b.sum.Sum(nil))) != string(b.want) {
		return n, &CorruptError{Path: "blob " + string(b.want), Offset: -1, Cause: errBlobDamaged}
	}
	return n, err
}

// sizedBlob is a checkedBlob of a known size.
type sizedBlob struct {
	*checkedBlob
	engine.Sized
}

func (b *checkedBlob) Close() error { return b.body.Close() }

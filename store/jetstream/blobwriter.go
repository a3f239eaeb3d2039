package jetstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// maxPiece bounds the size of a piece. PutBlob buffers at most one piece in memory.
const maxPiece = 1 << 20

// PutBlob implements eventlog.Blobs.
func (s *Store) PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error) {
	l, err := s.writable(ctx)
	if err != nil {
		return "", 0, err
	}
	b := blobWriter{layout: l, sum: sha256.New(), upload: newID()}
	d, err := b.write(ctx, r)
	if err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	return d, b.size, nil
}

// blobWriter writes a body in pieces. Its digest is known at the end.
type blobWriter struct {
	layout *layout
	sum    hash.Hash
	size   int64
	upload string
	pieces []uint64
}

func (b *blobWriter) write(ctx context.Context, r io.Reader) (event.Digest, error) {
	most := min(maxPiece, b.layout.blobs.store.limit(b.layout.blobs.client))
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		var piece bytes.Buffer
		n, err := io.Copy(io.MultiWriter(&piece, b.sum), io.LimitReader(r, int64(most)))
		b.size += n
		if err != nil {
			return "", errors.Join(err, b.drop())
		}
		last := n < int64(most)
		if last && len(b.pieces) == 0 {
			// A small body need not be written if it is stored already.
			d := event.Digest("sha256:" + hex.EncodeToString(b.sum.Sum(nil)))
			if kept, err := b.touch(ctx, d); kept != "" || err != nil {
				return d, err
			}
		}
		if n > 0 {
			if err := b.put(ctx, piece.Bytes()); err != nil {
				return "", errors.Join(err, b.drop())
			}
		}
		if last {
			break
		}
	}
	d := event.Digest("sha256:" + hex.EncodeToString(b.sum.Sum(nil)))
	return d, b.finish(ctx, d)
}

// put stores a piece.
func (b *blobWriter) put(ctx context.Context, piece []byte) error {
	st := b.layout.blobs
	m := &nats.Msg{Subject: st.subject(pieceSubject, b.upload), Header: nats.Header{}, Data: piece}
	m.Header["Nats-Msg-Id"] = []string{newID()}
	at, err := st.publish(ctx, m)
	if err == nil {
		b.pieces = append(b.pieces, at)
	}
	return st.store.failure(err)
}

// finish makes the blob visible. If the same body is stored already, it keeps the stored
// one. That may be its own: a server may refuse a message that was sent again, although it
// has stored the first sending.
func (b *blobWriter) finish(ctx context.Context, d event.Digest) error {
	for {
		kept, err := b.touch(ctx, d)
		if kept == b.upload || err != nil {
			return err
		}
		if kept != "" {
			return b.drop()
		}
		stored, err := b.publish(ctx, d, b.upload, nil)
		if stored || err != nil {
			return err
		}
	}
}

// touch renews the age of a stored blob, and returns its upload. It returns "" if there is
// none, or if its body is damaged.
func (b *blobWriter) touch(ctx context.Context, d event.Digest) (string, error) {
	for {
		found, err := b.layout.findBlob(ctx, d)
		if found == nil || err != nil {
			var corrupt *eventlog.CorruptError
			if errors.As(err, &corrupt) {
				err = nil
			}
			return "", err
		}
		same, err := b.layout.isWhole(ctx, d, found)
		if err != nil || !same {
			return "", err
		}
		stored, err := b.publish(ctx, d, found.upload, found)
		if err != nil {
			return "", err
		}
		if stored {
			return found.upload, nil
		}
	}
}

// isWhole reports whether the body of a blob has its digest.
func (l *layout) isWhole(ctx context.Context, d event.Digest, found *blob) (bool, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, &blobReader{layout: l, ctx: ctx, digest: d, blob: found})
	if errors.Is(err, eventlog.ErrBlobNotFound) || errors.Is(err, eventlog.ErrCorrupt) {
		return false, nil
	}
	return n == found.bytes && hex.EncodeToString(sum.Sum(nil)) == d.Hex(), err
}

// publish stores the message that names the pieces of an upload. It returns false if
// another process has stored one meanwhile. Without an expected blob, it replaces a
// damaged one.
func (b *blobWriter) publish(ctx context.Context, d event.Digest, upload string, expect *blob) (bool, error) {
	st := b.layout.blobs
	before, err := st.last(ctx, b.layout.blobSubject(d))
	if err != nil {
		return false, err
	}
	at := uint64(0)
	if before != nil {
		at = before.at
	}
	if expect != nil && expect.at != at {
		return false, nil
	}
	m := &nats.Msg{Subject: b.layout.blobSubject(d), Header: nats.Header{}}
	m.Header[blobHeader] = []string{fmt.Sprintf("v=%d upload=%s bytes=%d", formatVersion, upload, b.size)}
	m.Header["Nats-Msg-Id"] = []string{newID()}
	expectLast(m, at)
	now, err := st.publish(ctx, m)
	if isCode(err, codeWrongSequence) {
		return false, nil
	}
	if err != nil || at == 0 {
		return true, st.store.failure(err)
	}
	if old, _ := st.parseBlob(before); old != nil && old.upload != upload {
		if err := st.eraseSubject(ctx, st.subject(pieceSubject, old.upload), now); err != nil {
			return true, err
		}
	}
	return true, st.store.failure(st.purge(ctx, m.Subject, now))
}

// drop removes the pieces of an upload that is not needed.
func (b *blobWriter) drop() error {
	if len(b.pieces) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	return b.layout.blobs.erase(ctx, b.pieces)
}

package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/pages"
)

const (
	renewBlob    = `UPDATE blobs SET written = ? WHERE digest = ?`
	insertBlob   = `INSERT INTO blobs (digest, bytes, written) VALUES (?, ?, ?)`
	insertPiece  = `INSERT INTO blob_pieces (blob, piece, body) VALUES (?, ?, ?)`
	findBlob     = `SELECT key, bytes FROM blobs WHERE digest = ?`
	readPiece    = `SELECT body FROM blob_pieces WHERE blob = ? AND piece = ?`
	deletePieces = `DELETE FROM blob_pieces WHERE blob = ?`
	deleteBlob   = `DELETE FROM blobs WHERE key = ?`
	listBlobs    = `SELECT digest, bytes, written FROM blobs WHERE digest > ? ORDER BY digest` + limitRows
)

const (
	// pieceBytes is the size of one row of a blob. PutBlob buffers at most one piece in
	// memory.
	pieceBytes = 1 << 20
	// spoolInfix is the part of a spool file's name after the path of the database.
	// PutBlob removes the name right after it creates the file.
	spoolInfix = "-blob-"
	// maxBlobBytes bounds a blob, because one transaction writes all of it.
	maxBlobBytes = 512 << 20
)

// PutBlob implements eventlog.Blobs. A body over 1 MiB is spooled to an unnamed file
// beside the database. A body over 512 MiB is an ErrInvalidBlob.
func (s *Store) PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error) {
	if s.options.ReadOnly {
		return "", 0, eventlog.ErrReadOnly
	}
	if err := s.open(ctx); err != nil {
		return "", 0, err
	}
	b, err := spool(ctx, s.path+spoolInfix, r, s.maxBlob)
	if err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	err = s.write(ctx, b, true)
	if closing := b.close(); err == nil {
		err = closing
	}
	if err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	return b.digest, b.size, nil
}

// RemoveBlobs implements eventlog.Blobs. SQLite overwrites the freed pages and uses
// them for later writes. The file does not shrink.
func (s *Store) RemoveBlobs(ctx context.Context, digests []event.Digest) error {
	for some := range slices.Chunk(digests, blobsPerRemoval) {
		if err := s.write(ctx, blobRemovals(some), true); err != nil {
			return fmt.Errorf("remove blobs: %w", err)
		}
	}
	if len(digests) == 0 {
		return nil
	}
	return wrap("remove blobs", s.scrub(ctx))
}

// blobRemovals removes blobs. A missing blob is not an error.
type blobRemovals []event.Digest

func (r blobRemovals) apply(w *writer) error {
	if err := w.noteBytes(); err != nil {
		return err
	}
	for _, d := range r {
		if err := (blobRemoval{d}).apply(w); err != nil {
			return err
		}
	}
	return nil
}

func (blobRemovals) unknown(cause error) error { return cause }

// ListBlobs implements eventlog.Blobs.
func (s *Store) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return func(yield func(eventlog.BlobInfo, error) bool) {
		after := ""
		for {
			page, err := s.blobPage(ctx, after)
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
				after = string(info.Digest)
			}
			if err != nil {
				yield(eventlog.BlobInfo{}, s.locate("", "blobs", 0, err))
				return
			}
			if len(page) < pages.MaxRows {
				return
			}
		}
	}
}

func (s *Store) blobPage(ctx context.Context, after string) (page []eventlog.BlobInfo, err error) {
	err = s.read(ctx, func(c *conn) error {
		page = page[:0]
		return c.each(func(row []driver.Value) {
			digest, _ := row[0].(string)
			size, _ := row[1].(int64)
			written, _ := row[2].(int64)
			info := eventlog.BlobInfo{Digest: event.Digest(digest), Bytes: size, Written: time.UnixMicro(written).UTC()}
			page = append(page, info)
		}, 3, listBlobs, after, int64(pages.MaxRows))
	})
	return page, err
}

// blobSpool is a complete body that waits for the writer. A body over 1 MiB is in an
// unnamed file, a shorter one in memory.
type blobSpool struct {
	memory []byte
	file   *folder.TempFile
	sum    hash.Hash
	digest event.Digest
	size   int64
}

// spool reads r to its end. A body over 1 MiB goes to a file whose name begins with
// place. A body over most bytes is an ErrInvalidBlob.
func spool(ctx context.Context, place string, r io.Reader, most int64) (*blobSpool, error) {
	b := &blobSpool{sum: sha256.New()}
	r = io.LimitReader(contextReader{ctx, r}, most+1)
	var head bytes.Buffer
	_, err := io.Copy(io.MultiWriter(&head, b.sum), io.LimitReader(r, pieceBytes))
	if err != nil {
		return nil, err
	}
	b.memory, b.size = head.Bytes(), int64(head.Len())
	if b.size == pieceBytes {
		err = b.spill(place, r)
	}
	if err == nil && b.size > most {
		err = fmt.Errorf("%w: the body is longer than %d bytes, the limit of a sqlite store", event.ErrInvalidBlob, most)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.digest = event.Digest("sha256:" + hex.EncodeToString(b.sum.Sum(nil)))
	return b, nil
}

// spill writes the first piece and the rest of r to a file.
func (b *blobSpool) spill(place string, r io.Reader) (err error) {
	if b.file, err = folder.Temp(filepath.Dir(place), filepath.Base(place)+"*"); err != nil {
		return err
	}
	if _, err := b.file.Write(b.memory); err != nil {
		return err
	}
	b.memory = nil
	n, err := io.Copy(io.MultiWriter(b.file, b.sum), r)
	b.size += n
	return err
}

func (b *blobSpool) close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// apply writes the blob. If the same body is stored already, apply only sets its time.
func (b *blobSpool) apply(w *writer) error {
	now := time.Now().UnixMicro()
	same, err := b.isStored(w)
	if err != nil {
		return fmt.Errorf("compare blob: %w", err)
	}
	if same {
		_, err := w.conn.exec(renewBlob, now, string(b.digest))
		return wrap("renew blob", err)
	}
	if err := (blobRemoval{b.digest}).apply(w); err != nil {
		return fmt.Errorf("replace blob: %w", err)
	}
	result, err := w.conn.exec(insertBlob, string(b.digest), b.size, now)
	if err != nil {
		return fmt.Errorf("insert blob: %w", err)
	}
	key, err := result.LastInsertId()
	if err != nil {
		return err
	}
	return b.insertPieces(w, key)
}

// isStored reports whether the same body is stored already.
func (b *blobSpool) isStored(w *writer) (bool, error) {
	row := make([]driver.Value, 2)
	found, err := w.conn.first(row, findBlob, string(b.digest))
	if err != nil || !found || row[1] != driver.Value(b.size) {
		return false, err
	}
	same := true
	err = b.pieces(func(i int64, piece []byte) error {
		stored := make([]driver.Value, 1)
		found, err := w.conn.first(stored, readPiece, row[0], i)
		body, _ := stored[0].([]byte)
		same = same && found && bytes.Equal(body, piece)
		return err
	})
	return same, err
}

func (b *blobSpool) insertPieces(w *writer, key int64) error {
	return b.pieces(func(i int64, piece []byte) error {
		_, err := w.conn.exec(insertPiece, key, i, piece)
		return wrap("insert blob", err)
	})
}

// pieces calls f with each piece of the body. f must not retain the piece.
func (b *blobSpool) pieces(f func(i int64, piece []byte) error) error {
	buf := b.memory
	if b.file != nil {
		buf = make([]byte, pieceBytes)
	}
	for at := int64(0); at < b.size; at += pieceBytes {
		piece := buf[:min(b.size-at, pieceBytes)]
		if b.file != nil {
			if _, err := b.file.ReadAt(piece, at); err != nil {
				return fmt.Errorf("read spooled blob: %w", err)
			}
		}
		if err := f(at/pieceBytes, piece); err != nil {
			return err
		}
	}
	return nil
}

// unknown returns cause alone: the caller can put the blob again without harm.
func (b *blobSpool) unknown(cause error) error { return cause }

// contextReader stops reading when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// blobRemoval removes a blob if it exists.
type blobRemoval struct{ digest event.Digest }

func (r blobRemoval) apply(w *writer) error {
	row := make([]driver.Value, 2)
	found, err := w.conn.first(row, findBlob, string(r.digest))
	if err != nil || !found {
		return err
	}
	if _, err := w.conn.exec(deletePieces, row[0]); err != nil {
		return err
	}
	_, err = w.conn.exec(deleteBlob, row[0])
	return err
}

func (blobRemoval) unknown(cause error) error { return cause }

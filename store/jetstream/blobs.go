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
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

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

// maxPiece bounds the size of a piece. PutBlob buffers at most one piece in memory.
const maxPiece = 1 << 20

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
			if done, err := b.touch(ctx, d); done || err != nil {
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
	at, err := st.client.publish(ctx, m)
	if err == nil {
		b.pieces = append(b.pieces, at)
	}
	return st.store.failure(err)
}

// finish makes the blob visible. If the same body is stored already, it keeps the stored
// one.
func (b *blobWriter) finish(ctx context.Context, d event.Digest) error {
	for {
		if done, err := b.touch(ctx, d); err != nil {
			return err
		} else if done {
			return b.drop()
		}
		stored, err := b.publish(ctx, d, b.upload, nil)
		if stored || err != nil {
			return err
		}
	}
}

// touch renews the age of a stored blob. It returns false if there is none, or if its body
// is damaged.
func (b *blobWriter) touch(ctx context.Context, d event.Digest) (bool, error) {
	for {
		found, err := b.layout.findBlob(ctx, d)
		if found == nil || err != nil {
			var corrupt *eventlog.CorruptError
			if errors.As(err, &corrupt) {
				err = nil
			}
			return false, err
		}
		same, err := b.layout.isWhole(ctx, d, found)
		if err != nil || !same {
			return false, err
		}
		if stored, err := b.publish(ctx, d, found.upload, found); stored || err != nil {
			return stored, err
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
	now, err := st.client.publish(ctx, m)
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

// OpenBlob implements eventlog.Blobs. The reader fetches a piece at a time, under ctx.
func (s *Store) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	r, err := s.openBlob(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d, err)
	}
	return r, nil
}

func (s *Store) openBlob(ctx context.Context, d event.Digest) (*blobReader, error) {
	if _, err := event.ParseDigest(string(d)); err != nil {
		return nil, fmt.Errorf("%w: %w", event.ErrInvalidBlob, err)
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

// RemoveBlobs implements eventlog.Blobs.
func (s *Store) RemoveBlobs(ctx context.Context, digests []event.Digest) error {
	return wrap("remove blobs", s.removeBlobs(ctx, digests))
}

// removedAtOnce bounds the blobs that one batch removes; the server takes 1,000 messages.
const removedAtOnce = 500

func (s *Store) removeBlobs(ctx context.Context, digests []event.Digest) error {
	for _, d := range digests {
		if _, err := event.ParseDigest(string(d)); err != nil {
			return fmt.Errorf("%w: %w", event.ErrInvalidBlob, err)
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
	if _, err := st.client.publishAll(ctx, batch); err != nil {
		return st.erasingFailure(ctx, err)
	}
	return l.finishBlobs(ctx)
}

// finishBlobs erases the pieces of removed blobs.
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
	for _, m := range found {
		text := lastValue(m.header, blobHeader)
		upload, removed := strings.CutPrefix(text, tombstone)
		if !removed {
			continue
		}
		if upload = strings.TrimSpace(upload); upload != "" {
			if err := st.eraseSubject(ctx, st.subject(pieceSubject, upload), m.at); err != nil {
				return err
			}
		}
		if err := st.purge(ctx, m.subject, m.at+1); err != nil {
			return st.store.failure(err)
		}
	}
	return st.store.failure(st.purge(ctx, pending.subject, pending.at+1))
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

// each passes the messages of a subject, from a sequence on, to fn.
func (st *stream) each(ctx context.Context, subject string, from uint64, fn func(m *message) error) error {
	for {
		passed := 0
		_, err := st.batch(ctx, getRequest{Seq: max(from, 1), Next: subject, Batch: maxPage, MaxBytes: batchBytes}, maxPage, func(m *message) error {
			from = m.at + 1
			passed++
			return fn(m)
		})
		if err != nil || passed == 0 {
			return err
		}
	}
}

// eraseSubject overwrites the messages of a subject before a sequence.
func (st *stream) eraseSubject(ctx context.Context, subject string, before uint64) error {
	for {
		var sequences []uint64
		err := st.each(ctx, subject, 1, func(m *message) error {
			if m.at >= before {
				return errStop
			}
			sequences = append(sequences, m.at)
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
		if err := st.erase(ctx, sequences); err != nil {
			return err
		}
		// The replica that answered may have lacked messages.
		first, err := st.next(ctx, subject, 1)
		if err != nil || first == nil || first.at >= before {
			return err
		}
	}
}

// placeOf names a subject in reports.
func (st *stream) placeOf(subject string) string {
	return "stream " + st.name + " subject " + strconv.Quote(subject)
}

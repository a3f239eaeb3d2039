package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

func TestBlobs(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	var digests []string
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3*pieceBytes + 7} {
		body := make([]byte, size)
		random := rand.New(rand.NewPCG(1, uint64(size)))
		for i := range body {
			body[i] = byte(random.Uint32())
		}
		for range 2 {
			d, n, err := s.PutBlob(t.Context(), bytes.NewReader(body))
			must(t, err)
			if n != int64(size) || d != event.DigestOf(body) {
				t.Errorf("put %d bytes: got %d, %s", size, n, d)
			}
		}
		digests = append(digests, string(event.DigestOf(body)))
		r, err := s.OpenBlob(t.Context(), event.DigestOf(body))
		must(t, err)
		got, err := io.ReadAll(r)
		must(t, errors.Join(err, r.Close()))
		if !bytes.Equal(got, body) {
			t.Errorf("%d bytes differ from the put body", size)
		}
	}
	var listed []string
	infos, err := collect(s.ListBlobs(t.Context()))
	must(t, err)
	for _, i := range infos {
		listed = append(listed, string(i.Digest))
	}
	if !slices.Equal(listed, slices.Sorted(slices.Values(digests))) {
		t.Errorf("listed %v", listed)
	}
	if left := names(t, filepath.Dir(path)); !slices.Equal(left, []string{"s.db", "s.db-shm", "s.db-wal"}) {
		t.Errorf("files left: %v", left)
	}
}

func TestBlobRemovedWhileRead(t *testing.T) {
	s := open(t, tempPath(t))
	body := strings.Repeat("0123456789abcdef", pieceBytes/8)
	d, _, err := s.PutBlob(t.Context(), strings.NewReader(body))
	must(t, err)
	r, err := s.OpenBlob(t.Context(), d)
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 10))
	must(t, err)
	must(t, s.RemoveBlobs(t.Context(), []event.Digest{d}))
	must(t, s.RemoveBlobs(t.Context(), []event.Digest{d}))
	_, err = s.OpenBlob(t.Context(), d)
	want(t, eventlog.ErrBlobNotFound, err)
	_, err = io.Copy(io.Discard, r)
	want(t, eventlog.ErrBlobNotFound, err)
}

func TestBlobTooLong(t *testing.T) {
	s := open(t, tempPath(t))
	for _, most := range []int{10, pieceBytes, 2*pieceBytes + 1} {
		s.maxBlob = int64(most)
		_, _, err := s.PutBlob(t.Context(), bytes.NewReader(make([]byte, most+1)))
		want(t, event.ErrInvalidBlob, err)
		infos, err := collect(s.ListBlobs(t.Context()))
		if err != nil || len(infos) != 0 {
			t.Errorf("listed %v, %v", infos, err)
		}
		d, _, err := s.PutBlob(t.Context(), bytes.NewReader(make([]byte, most)))
		must(t, err)
		must(t, s.RemoveBlobs(t.Context(), []event.Digest{d}))
	}
}

func TestBlobPutFails(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	failure := errors.New("reader failed")
	_, _, err := s.PutBlob(t.Context(), io.MultiReader(strings.NewReader("some"), failingReader{failure}))
	want(t, failure, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.PutBlob(ctx, strings.NewReader("some"))
	want(t, context.Canceled, err)
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// A truncated piece is damage.
func TestBlobDamaged(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	d, _, err := s.PutBlob(t.Context(), strings.NewReader("some text"))
	must(t, err)
	must(t, s.Close())
	makeDatabase(t, path, "UPDATE blob_pieces SET body = x'00'")
	s = open(t, path)
	r, err := s.OpenBlob(t.Context(), d)
	must(t, err)
	_, err = io.ReadAll(r)
	want(t, eventlog.ErrCorrupt, err)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// PutBlob replaces a damaged blob.
func TestPutBlobReplacesDamage(t *testing.T) {
	for _, body := range []string{"some text", strings.Repeat("text ", pieceBytes/2)} {
		for _, damage := range []string{
			"UPDATE blob_pieces SET body = x'00'",
			"UPDATE blob_pieces SET body = zeroblob(length(body)) WHERE piece = (SELECT max(piece) FROM blob_pieces)",
			"DELETE FROM blob_pieces WHERE piece = 0",
			"UPDATE blobs SET bytes = bytes + 1",
		} {
			path := tempPath(t)
			s := New(path)
			d, _, err := s.PutBlob(t.Context(), strings.NewReader(body))
			must(t, err)
			must(t, s.Close())
			makeDatabase(t, path, damage)
			s = open(t, path)
			_, _, err = s.PutBlob(t.Context(), strings.NewReader(body))
			must(t, err)
			r, err := s.OpenBlob(t.Context(), d)
			must(t, err)
			got, err := io.ReadAll(r)
			must(t, errors.Join(err, r.Close()))
			if string(got) != body {
				t.Errorf("%s: after putting it again the blob has %d bytes, want %d", damage, len(got), len(body))
			}
		}
	}
}

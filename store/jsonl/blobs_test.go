package jsonl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

func TestBlobs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, body := range []string{"", "hello", strings.Repeat("x", 1<<20)} {
		d, n, err := s.PutBlob(t.Context(), iotest.HalfReader(strings.NewReader(body)))
		must(t, err)
		if want := event.DigestOf([]byte(body)); d != want || n != int64(len(body)) {
			t.Fatalf("put %s, %d bytes; want %s, %d", d, n, want, len(body))
		}
		r, err := s.OpenBlob(t.Context(), d)
		must(t, err)
		got, err := io.ReadAll(r)
		must(t, errors.Join(err, r.Close()))
		if string(got) != body {
			t.Errorf("read %d bytes, want %d", len(got), len(body))
		}
	}
}

// Putting a blob again updates its modification time and replaces a damaged file.
func TestPutBlobAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	d, _, err := s.PutBlob(t.Context(), strings.NewReader("body"))
	must(t, err)
	path := filepath.Join(dir, "blobs", d.Hex()[:2], d.Hex())
	old := time.Now().Add(-48 * time.Hour)
	must(t, os.Chtimes(path, old, old))
	_, _, err = s.PutBlob(t.Context(), strings.NewReader("body"))
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if !info.ModTime().After(old.Add(time.Hour)) {
		t.Errorf("the blob's time is %v, want a new one", info.ModTime())
	}
	for _, damaged := range []string{"bo", "b0dy", "body and more"} {
		must(t, os.WriteFile(path, []byte(damaged), 0o600))
		_, _, err = s.PutBlob(t.Context(), strings.NewReader("body"))
		must(t, err)
		got, err := os.ReadFile(path)
		must(t, err)
		if string(got) != "body" {
			t.Errorf("the blob holds %q", got)
		}
	}
	if names := fileNames(t, filepath.Join(dir, "blobs")); names != d.Hex()[:2] {
		t.Errorf("blobs has %s: a temporary file was left", names)
	}
}

func TestPutBlobFails(t *testing.T) {
	for _, op := range []string{"write", "sync", "rename", "syncdir"} {
		dir := t.TempDir()
		f := newFaults(dir)
		s := open(t, dir, Options{FS: f})
		f.set(failing(op))
		if _, _, err := s.PutBlob(t.Context(), strings.NewReader("body")); err == nil {
			t.Errorf("failed %s: no error", op)
		}
		f.set(nil)
		names := fileNames(t, filepath.Join(dir, "blobs"))
		if strings.Contains(names, tempPrefix) {
			t.Errorf("failed %s: left %s", op, names)
		}
	}
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.PutBlob(ctx, strings.NewReader("body"))
	wantErr(t, err, context.Canceled)
	_, _, err = s.PutBlob(t.Context(), iotest.ErrReader(errNoSpace))
	wantErr(t, err, errNoSpace)
}

func TestListAndRemoveBlobs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, err := range s.ListBlobs(t.Context()) {
		t.Errorf("a blob, or error %v, in a store without blobs", err)
	}
	for i := range 40 {
		_, _, err := s.PutBlob(t.Context(), bytes.NewReader(bytes.Repeat([]byte{'x'}, i)))
		must(t, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "blobs", "tmp-left"), nil, 0o600))
	var last event.Digest
	n := 0
	for info, err := range s.ListBlobs(t.Context()) {
		must(t, err)
		if info.Digest <= last || info.Written.IsZero() {
			t.Errorf("listed %+v after %s", info, last)
		}
		last = info.Digest
		n++
		must(t, s.RemoveBlobs(t.Context(), []event.Digest{info.Digest}))
		must(t, s.RemoveBlobs(t.Context(), []event.Digest{info.Digest}))
		_, err = s.OpenBlob(t.Context(), info.Digest)
		wantErr(t, err, eventlog.ErrBlobNotFound)
	}
	if n != 40 {
		t.Errorf("%d blobs listed, want 40", n)
	}
	for _, malformed := range []event.Digest{"", "sha256:../../x", "md5:00"} {
		_, err := s.OpenBlob(t.Context(), malformed)
		wantErr(t, err, eventlog.ErrBlobNotFound)
		must(t, s.RemoveBlobs(t.Context(), []event.Digest{malformed}))
	}
}

func TestStoreLock(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	_, first, err := a.Lock(t.Context(), false)
	must(t, err)
	_, second, err := b.Lock(t.Context(), false)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err = b.Lock(ctx, true)
	wantErr(t, err, context.DeadlineExceeded)
	first()
	second()
	_, exclusive, err := b.Lock(t.Context(), true)
	must(t, err)
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err = a.Lock(ctx, false)
	wantErr(t, err, context.DeadlineExceeded)
	exclusive()
}

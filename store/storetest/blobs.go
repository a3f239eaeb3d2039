package storetest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var blobCases = []testCase{
	{
		name:        "put and open",
		explanation: "A blob is found by its digest, byte for byte, also after a reopen; its digest is that of its bytes.",
		needs:       []Need{Blobs},
		run:         testBlobRoundTrip,
	},
	{
		name:        "equal bytes",
		explanation: "Equal bytes are kept once, also when put by many at the same time.",
		needs:       []Need{Blobs},
		run:         testBlobEqual,
	},
	{
		name:        "missing",
		explanation: "Opening a blob that is not there is ErrBlobNotFound; removing it is no error.",
		needs:       []Need{Blobs},
		run:         testBlobMissing,
	},
	{
		name:        "listing",
		explanation: "ListBlobs yields every blob once, ordered by digest, with its size and when it was written.",
		needs:       []Need{Blobs},
		run:         testBlobListing,
	},
	{
		name:        "a reader that fails",
		explanation: "A body that cannot be read to its end is not kept, and the error is the reader's.",
		needs:       []Need{Blobs},
		run: func(t *env) {
			body := io.MultiReader(strings.NewReader(text("x", 100<<10)), iotest.ErrReader(errInjected))
			_, err := t.log().PutBlob(t.ctx, body)
			t.wantErr(errInjected, err)
			t.same("sizes of the blobs", []int64{}, t.sizesOfBlobs(t.log()))
			t.contained()
		},
	},
	{
		name:        "events that need them",
		explanation: "An event that refers to a blob that is not there is refused; one that refers to one that is lists it.",
		needs:       []Need{Blobs},
		run:         testBlobNeeded,
	},
	{
		name:        "artifacts",
		explanation: "An artifact's body is kept as a blob and found through its event, also after a reopen.",
		needs:       []Need{Blobs},
		run:         testArtifacts,
	},
	{
		name:        "hostile digests",
		explanation: "A digest that is none is refused, and never reaches a file.",
		needs:       []Need{Blobs},
		run: func(t *env) {
			for _, d := range []event.Digest{"", "sha256:", "sha256:../../../../etc/passwd", event.Digest("sha256:" + text("G", 64)),
				event.Digest(text("a", 64)), event.Digest("sha256:" + text("A", 64)), event.Digest("md5:" + text("a", 64))} {
				if _, err := t.log().OpenBlob(t.ctx, d); err == nil {
					t.Errorf("blob %q was opened", d)
				}
				if r, err := ability[eventlog.Blobs](t, t.store()).OpenBlob(t.ctx, d); err == nil {
					t.Errorf("the store opened blob %q: %v", d, r.Close())
				}
			}
			t.contained()
		},
	},
}

// blob reads a whole blob.
func (t *env) blob(l *eventlog.Log, d event.Digest) string {
	t.Helper()
	r, err := l.OpenBlob(t.ctx, d)
	t.must(err)
	body, err := io.ReadAll(r)
	t.must(errors.Join(err, r.Close()))
	return string(body)
}

func testBlobRoundTrip(t *env) {
	bodies := []string{"", "x", "\x00\xff\r\n", text("0123456789", 32<<10), text("ab", 1<<20), text("abc", 3<<20+1)}
	var refs []event.BlobRef
	for _, body := range bodies {
		ref, err := t.log().PutBlob(t.ctx, iotest.HalfReader(strings.NewReader(body)))
		t.must(err)
		t.same("reference", event.BlobRef{Blob: event.DigestOf([]byte(body)), Bytes: int64(len(body))}, ref)
		refs = append(refs, ref)
	}
	t.twice(func(l *eventlog.Log) {
		for i, body := range bodies {
			t.same("body is equal", true, t.blob(l, refs[i].Blob) == body)
		}
	})
}

func testBlobEqual(t *env) {
	l := t.log()
	errs := together(racers, func(i int) error {
		ref, err := l.PutBlob(t.ctx, strings.NewReader(text("same", 50<<10)))
		if err == nil && ref.Bytes != 50<<10 {
			err = fmt.Errorf("stored %d bytes", ref.Bytes)
		}
		return err
	})
	t.must(errors.Join(errs...))
	t.same("sizes of the blobs", []int64{50 << 10}, t.sizesOfBlobs(l))
	t.same("body is equal", true, t.blob(l, event.DigestOf([]byte(text("same", 50<<10)))) == text("same", 50<<10))
}

func testBlobMissing(t *env) {
	blobs := ability[eventlog.Blobs](t, t.store())
	d := event.DigestOf([]byte("body"))
	_, err := t.log().OpenBlob(t.ctx, d)
	t.wantErr(eventlog.ErrBlobNotFound, err)
	t.must(blobs.RemoveBlobs(t.ctx, []event.Digest{d}))
	_, err = t.log().PutBlob(t.ctx, strings.NewReader("body"))
	t.must(err)
	t.must(blobs.RemoveBlobs(t.ctx, []event.Digest{d}))
	_, err = t.log().OpenBlob(t.ctx, d)
	t.wantErr(eventlog.ErrBlobNotFound, err)
	t.must(blobs.RemoveBlobs(t.ctx, []event.Digest{d}))
	_, err = t.log().PutBlob(t.ctx, strings.NewReader("body"))
	t.must(err)
	t.same("body", "body", t.blob(t.log(), d))
}

func testBlobListing(t *env) {
	var want []string
	for n := range 40 {
		ref, err := t.log().PutBlob(t.ctx, strings.NewReader(text("n", n)))
		t.must(err)
		want = append(want, string(ref.Blob))
	}
	slices.Sort(want)
	infos, err := collect(ability[eventlog.Blobs](t, t.reopen().Store()).ListBlobs(t.ctx))
	t.must(err)
	var got []string
	for _, info := range infos {
		got = append(got, string(info.Digest))
		t.same("size", int64(len(t.blob(t.log(), info.Digest))), info.Bytes)
		t.same("written is known", false, info.Written.IsZero())
	}
	t.same("digests", want, got)
}

func testBlobNeeded(t *env) {
	l := t.log()
	d := event.DigestOf([]byte("image"))
	image := newEvent(event.MessageAdded, fmt.Sprintf(
		`{"role":"user","parts":[{"type":"image","media_type":"image/png","blob":{"blob":"%s","bytes":5}}]}`, d))
	own := note(1)
	t.must(own.AddBlobs(d))
	for _, e := range []event.Event{image, own} {
		t.refused(event.ErrInvalidBlob, l, "a", eventlog.Any(), note(0), e)
	}
	_, err := l.PutBlob(t.ctx, strings.NewReader("image"))
	t.must(err)
	t.append(l, "a", eventlog.New(), image, own)
	for _, e := range t.read(t.reopen(), "a", eventlog.All()) {
		t.same("blobs", []event.Digest{d}, e.Blobs())
	}
	t.sound(t.log(), "a")
}

func testArtifacts(t *env) {
	a, head, err := t.log().StoreArtifact(t.ctx, "a", eventlog.New(), event.Artifact{ArtifactID: "r1", Name: "report"}, strings.NewReader("the report"))
	t.must(err)
	t.same("seq", int64(1), head.Seq)
	_, err = t.log().Append(t.ctx, "a", eventlog.At(head), event.New(event.Artifact{ArtifactID: "r2", URI: "https://example.org/r2"}))
	t.must(err)
	_, _, err = t.log().StoreArtifact(t.ctx, "a", eventlog.New(), a, strings.NewReader("another"))
	t.wantErr(eventlog.ErrConflict, err)
	l := t.reopen()
	stored, _, err := event.Decode[event.Artifact](ptr(t.read(l, "a", eventlog.All())[0]))
	t.must(err)
	t.same("artifact", a, stored)
	r, err := l.OpenArtifact(t.ctx, stored)
	t.must(err)
	body, err := io.ReadAll(r)
	t.must(errors.Join(err, r.Close()))
	t.same("body", "the report", string(body))
	_, err = l.OpenArtifact(t.ctx, event.Artifact{ArtifactID: "r2", URI: "https://example.org/r2"})
	t.wantErr(eventlog.ErrBlobNotFound, err)
	t.same("data of the second", jsontext.Value(`{"artifact_id":"r2","uri":"https://example.org/r2"}`), t.read(l, "a", eventlog.All())[1].Data)
}

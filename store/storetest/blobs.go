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
	"github.com/convlog/convlog/internal/suite"
)

var blobCases = []testCase{
	{
		Name:        "put and open",
		Explanation: "A blob's digest is the digest of its bytes. The store returns the same bytes for the digest, also after a reopen.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testBlobRoundTrip,
	},
	{
		Name:        "equal bytes",
		Explanation: "The store stores equal bytes once, also when many callers put them at the same time.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testBlobEqual,
	},
	{
		Name:        "missing",
		Explanation: "Opening a missing blob is ErrBlobNotFound. Removing a missing blob is no error.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testBlobMissing,
	},
	{
		Name:        "listing",
		Explanation: "ListBlobs yields every blob once, ordered by digest, with its size and the time it was written.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testBlobListing,
	},
	{
		Name:        "failing reader",
		Explanation: "If the reader of a body fails, the store does not store the body, and the error is the reader's error.",
		Needs:       []suite.Need{suite.Blobs},
		Run: func(t *env) {
			body := io.MultiReader(strings.NewReader(suite.Text("x", 100<<10)), iotest.ErrReader(suite.ErrInjected))
			_, err := t.Main().PutBlob(t.Ctx, body)
			t.WantErr(suite.ErrInjected, err)
			t.WantEqual("sizes of the blobs", []int64{}, t.sizesOfBlobs(t.Main()))
			t.WantNoOtherFiles()
		},
	},
	{
		Name:        "events that refer to blobs",
		Explanation: "An event that refers to a missing blob is rejected. An event that refers to a stored blob lists the blob.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testBlobNeeded,
	},
	{
		Name:        "artifacts",
		Explanation: "StoreArtifact stores an artifact's body as a blob. OpenArtifact opens it through the event, also after a reopen.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testArtifacts,
	},
	{
		Name:        "hostile digests",
		Explanation: "An invalid digest is an error and never becomes a file name.",
		Needs:       []suite.Need{suite.Blobs},
		Run: func(t *env) {
			for _, d := range []event.Digest{"", "sha256:", "sha256:../../../../etc/passwd", event.Digest("sha256:" + suite.Text("G", 64)),
				event.Digest(suite.Text("a", 64)), event.Digest("sha256:" + suite.Text("A", 64)), event.Digest("md5:" + suite.Text("a", 64))} {
				if _, err := t.Main().OpenBlob(t.Ctx, d); err == nil {
					t.Errorf("blob %q was opened", d)
				}
				if r, err := suite.Ability[eventlog.Blobs](t, t.Store()).OpenBlob(t.Ctx, d); err == nil {
					t.Errorf("the store opened blob %q: %v", d, r.Close())
				}
			}
			t.WantNoOtherFiles()
		},
	},
}

func testBlobRoundTrip(t *env) {
	bodies := []string{"", "x", "\x00\xff\r\n", suite.Text("0123456789", 32<<10), suite.Text("ab", 1<<20), suite.Text("abc", 3<<20+1)}
	var refs []event.BlobRef
	for _, body := range bodies {
		ref, err := t.Main().PutBlob(t.Ctx, iotest.HalfReader(strings.NewReader(body)))
		t.Must(err)
		t.WantEqual("reference", event.BlobRef{Blob: event.DigestOf([]byte(body)), Bytes: int64(len(body))}, ref)
		refs = append(refs, ref)
	}
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		for i, body := range bodies {
			t.WantEqual("body is equal", true, t.Blob(l, refs[i].Blob) == body)
		}
	})
}

func testBlobEqual(t *env) {
	l := t.Main()
	errs := suite.Concurrently(racers, func(i int) error {
		ref, err := l.PutBlob(t.Ctx, strings.NewReader(suite.Text("same", 50<<10)))
		if err == nil && ref.Bytes != 50<<10 {
			err = fmt.Errorf("stored %d bytes", ref.Bytes)
		}
		return err
	})
	t.Must(errors.Join(errs...))
	t.WantEqual("sizes of the blobs", []int64{50 << 10}, t.sizesOfBlobs(l))
	t.WantEqual("body is equal", true, t.Blob(l, event.DigestOf([]byte(suite.Text("same", 50<<10)))) == suite.Text("same", 50<<10))
}

func testBlobMissing(t *env) {
	blobs := suite.Ability[eventlog.Blobs](t, t.Store())
	d := event.DigestOf([]byte("body"))
	_, err := t.Main().OpenBlob(t.Ctx, d)
	t.WantErr(eventlog.ErrBlobNotFound, err)
	t.Must(blobs.RemoveBlobs(t.Ctx, []event.Digest{d}))
	_, err = t.Main().PutBlob(t.Ctx, strings.NewReader("body"))
	t.Must(err)
	t.Must(blobs.RemoveBlobs(t.Ctx, []event.Digest{d}))
	_, err = t.Main().OpenBlob(t.Ctx, d)
	t.WantErr(eventlog.ErrBlobNotFound, err)
	t.Must(blobs.RemoveBlobs(t.Ctx, []event.Digest{d}))
	_, err = t.Main().PutBlob(t.Ctx, strings.NewReader("body"))
	t.Must(err)
	t.WantEqual("body", "body", t.Blob(t.Main(), d))
}

func testBlobListing(t *env) {
	var want []string
	for n := range 40 {
		ref, err := t.Main().PutBlob(t.Ctx, strings.NewReader(suite.Text("n", n)))
		t.Must(err)
		want = append(want, string(ref.Blob))
	}
	slices.Sort(want)
	infos, err := suite.Collect(suite.Ability[eventlog.Blobs](t, t.Reopen().Store()).ListBlobs(t.Ctx))
	t.Must(err)
	var got []string
	for _, info := range infos {
		got = append(got, string(info.Digest))
		t.WantEqual("size", int64(len(t.Blob(t.Main(), info.Digest))), info.Bytes)
		t.WantEqual("the time is set", false, info.Written.IsZero())
	}
	t.WantEqual("digests", want, got)
}

func testBlobNeeded(t *env) {
	l := t.Main()
	d := event.DigestOf([]byte("image"))
	image := suite.NewEvent(event.MessageAdded, fmt.Sprintf(
		`{"role":"user","parts":[{"type":"image","media_type":"image/png","blob":{"blob":"%s","bytes":5}}]}`, d))
	own := suite.Note(1)
	t.Must(own.AddBlobs(d))
	for _, e := range []event.Event{image, own} {
		t.WantAppendError(event.ErrInvalidBlob, l, "a", eventlog.Any(), suite.Note(0), e)
	}
	_, err := l.PutBlob(t.Ctx, strings.NewReader("image"))
	t.Must(err)
	t.Append(l, "a", eventlog.New(), image, own)
	for _, e := range t.Read(t.Reopen(), "a", eventlog.All()) {
		t.WantEqual("blobs", []event.Digest{d}, e.Blobs())
	}
	t.WantVerified(t.Main(), "a")
}

func testArtifacts(t *env) {
	a, head, err := t.Main().StoreArtifact(t.Ctx, "a", eventlog.New(), event.Artifact{ArtifactID: "r1", Name: "report"}, strings.NewReader("the report"))
	t.Must(err)
	t.WantEqual("seq", int64(1), head.Seq)
	_, err = t.Main().Append(t.Ctx, "a", eventlog.At(head), event.New(event.Artifact{ArtifactID: "r2", URI: "https://example.org/r2"}))
	t.Must(err)
	_, _, err = t.Main().StoreArtifact(t.Ctx, "a", eventlog.New(), a, strings.NewReader("another"))
	t.WantErr(eventlog.ErrConflict, err)
	l := t.Reopen()
	stored, _, err := event.Decode[event.Artifact](suite.Ptr(t.Read(l, "a", eventlog.All())[0]))
	t.Must(err)
	t.WantEqual("artifact", a, stored)
	r, err := l.OpenArtifact(t.Ctx, stored)
	t.Must(err)
	body, err := io.ReadAll(r)
	t.Must(errors.Join(err, r.Close()))
	t.WantEqual("body", "the report", string(body))
	_, err = l.OpenArtifact(t.Ctx, event.Artifact{ArtifactID: "r2", URI: "https://example.org/r2"})
	t.WantErr(eventlog.ErrBlobNotFound, err)
	t.WantEqual("data of the second", jsontext.Value(`{"artifact_id":"r2","uri":"https://example.org/r2"}`), t.Read(l, "a", eventlog.All())[1].Data)
}

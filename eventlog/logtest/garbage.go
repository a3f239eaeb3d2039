package logtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

var garbageCases = []testCase{
	{
		Name:        "unreferenced blobs",
		Explanation: "Collecting garbage removes the blobs that no line lists. Blobs of messages, artifacts, snapshots, forks and spilled data stay, and so do all lines.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper},
		Run:         testGarbage,
	},
	{
		Name:        "shared blob",
		Explanation: "A blob is removed after the last session that refers to it.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper, suite.Eraser},
		Run:         testGarbageShared,
	},
	{
		Name:        "blobs of redacted events",
		Explanation: "A blob that only redacted events refer to is removed. A blob that other events refer to stays.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper, suite.Eraser},
		Run:         testGarbageRedacted,
	},
	{
		Name:        "grace",
		Explanation: "A blob is not collected during the grace period after its put. Putting equal bytes again restarts the grace period.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper},
		Run:         testGarbageGrace,
	},
	{
		Name:        "dry run",
		Explanation: "A dry run lists the unreferenced blobs and removes nothing, also on a read-only store. Collecting on a read-only store is an error.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper, suite.ReadOnly},
		Run:         testGarbageDry,
	},
	{
		Name:        "blobs in another store",
		Explanation: "With the blobs in another store, that store alone has the data of spilled events. Collecting garbage and redactions remove it there.",
		Needs:       []suite.Need{suite.Blobs, suite.Eraser},
		Run:         testGarbageElsewhere,
	},
	{
		Name:        "append after collection",
		Explanation: "An append that refers to a collected blob is rejected, and nothing is written. After another put the append succeeds.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper},
		Run:         testGarbageTooSoon,
	},
	{
		Name:        "unreadable sessions",
		Explanation: "If a session is unreadable and the store is no BlobIndex, the set of used blobs is unknown: the error names the session, and no blob is removed.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper},
		Run:         testGarbageDamaged,
	},
	{
		Name:        "blobs of damaged lines",
		Explanation: "A BlobIndex knows the blobs of a line that was damaged later: they stay, and garbage is removed.",
		Needs:       []suite.Need{suite.BlobIndex, suite.Sweeper, suite.Damage},
		Run:         testGarbageOfDamagedLines,
	},
	{
		Name:        "concurrent writes",
		Explanation: "Collecting without a grace period during concurrent spills and puts removes no blob that an event refers to.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper, suite.Locker},
		Run:         func(t *env) { testGarbageRace(t, t.Store(), t.Store()) },
	},
	{
		Name:        "concurrent writes of other handles",
		Explanation: "Collecting without a grace period during concurrent spills and puts of another handle removes no blob that an event refers to.",
		Needs:       []suite.Need{suite.Blobs, suite.Sweeper, suite.Locker, suite.Handles},
		Run:         func(t *env) { testGarbageRace(t, t.Store(), t.Open()) },
	},
}

// noGrace collects without a grace period.
var noGrace = erase.CollectOptions{Grace: -1}

// collect collects garbage and returns the digests of the removed blobs.
func (t *env) collect(l *eventlog.Log, opts erase.CollectOptions) []event.Digest {
	t.Helper()
	garbage, err := erase.Collect(t.Ctx, l, opts)
	t.Must(err)
	return digestsOf(garbage.Blobs)
}

func digestsOf(infos []eventlog.BlobInfo) []event.Digest {
	digests := []event.Digest{}
	for _, info := range infos {
		digests = append(digests, info.Digest)
	}
	return digests
}

// putBlob puts a blob.
func (t *env) putBlob(l *eventlog.Log, text string) event.BlobRef {
	t.Helper()
	ref, err := l.PutBlob(t.Ctx, strings.NewReader(text))
	t.Must(err)
	return ref
}

// blobsOf returns the digests of all blobs.
func (t *env) blobsOf(l *eventlog.Log) []event.Digest {
	t.Helper()
	infos, err := suite.Collect(suite.Ability[eventlog.Blobs](t, l.Store()).ListBlobs(t.Ctx))
	t.Must(err)
	return digestsOf(infos)
}

func snapshotOf(ref event.BlobRef, seq int64) event.Event {
	return suite.NewEvent(event.ProjectionSnapshotted, fmt.Sprintf(`{"projection":"p","version":1,"snapshot_id":"0190a5a4-7d4c-7000-8000-000000000001",`+
		`"state_digest":"%s","body_digest":"%s","index":0,"turn_index":0,"trigger":"manual","seq":%d,"body":{"blob":"%s","bytes":%d}}`,
		ref.Blob, ref.Blob, seq, ref.Blob, ref.Bytes))
}

func testGarbage(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 100})
	spilled := `"` + suite.Text("spilled", 200) + `"`
	head := t.Append(l, "a", eventlog.New(), suite.NewEvent("test:note", spilled), suite.Image(t.putBlob(l, "image")))
	_, head, err := l.StoreArtifact(t.Ctx, "a", eventlog.At(head), event.Artifact{ArtifactID: "r1", Name: "n"}, strings.NewReader("artifact"))
	t.Must(err)
	t.Append(l, "b", eventlog.New(), t.ForkAt("a", head.Seq), snapshotOf(t.putBlob(l, "snapshot"), head.Seq+1))
	needed := t.blobsOf(l)
	var want []event.Digest
	for i := range 300 {
		want = append(want, t.putBlob(l, fmt.Sprint("garbage ", i)).Blob)
	}
	slices.Sort(want)
	before := t.Lines(l, "a")
	t.WantEqual("blobs to remove", want, t.collect(l, erase.CollectOptions{Grace: -1, DryRun: true}))
	t.WantEqual("removed blobs", want, t.collect(l, noGrace))
	t.WantEqual("blobs removed later", []event.Digest{}, t.collect(l, noGrace))
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		t.WantEqual("blobs", needed, t.blobsOf(l))
		t.WantEqual("lines", before, t.Lines(l, "a"))
		t.WantVerified(l, "a")
		t.WantVerified(l, "b")
	})
}

func testGarbageShared(t *env) {
	l := t.Main()
	ref := t.putBlob(l, "shared")
	t.Append(l, "a", eventlog.New(), suite.Image(ref))
	t.Append(l, "b", eventlog.New(), suite.Image(ref))
	t.Must(erase.Remove(t.Ctx, l, "a"))
	t.WantEqual("removed blobs", []event.Digest{}, t.collect(l, noGrace))
	t.WantEqual("body", "shared", t.Blob(l, ref.Blob))
	t.Must(erase.Remove(t.Ctx, l, "b"))
	t.WantEqual("removed blobs", []event.Digest{ref.Blob}, t.collect(t.Reopen(), noGrace))
	t.WantEqual("blobs", []event.Digest{}, t.blobsOf(t.Main()))
}

func testGarbageRedacted(t *env) {
	l := t.Main()
	ref, other := t.putBlob(l, "shared"), t.putBlob(l, "other")
	t.Append(l, "a", eventlog.New(), suite.Image(ref), suite.Image(other))
	t.Append(l, "b", eventlog.New(), suite.Image(ref))
	_, err := erase.Redact(t.Ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	t.WantEqual("removed blobs", []event.Digest{}, t.collect(l, noGrace))
	_, err = erase.Redact(t.Ctx, l, "b", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	t.WantEqual("removed blobs", []event.Digest{}, t.collect(l, noGrace))
	t.WantEqual("blobs", []event.Digest{other.Blob}, t.blobsOf(t.Reopen()))
	t.WantVerified(t.Main(), "a")
}

func testGarbageGrace(t *env) {
	later := func(d time.Duration) *eventlog.Log {
		return t.LogOver(t.Store(), eventlog.Options{Now: func() time.Time { return time.Now().Add(d) }})
	}
	ref := t.putBlob(t.Main(), "garbage")
	t.WantEqual("blobs removed at once", []event.Digest{}, t.collect(t.Main(), erase.CollectOptions{}))
	t.WantEqual("blobs removed after 23 hours", []event.Digest{}, t.collect(later(23*time.Hour), erase.CollectOptions{}))
	t.WantEqual("blobs removed after 2 hours with a grace of 1 hour", []event.Digest{ref.Blob},
		t.collect(later(2*time.Hour), erase.CollectOptions{Grace: time.Hour, DryRun: true}))
	t.WantEqual("blobs removed after 25 hours", []event.Digest{ref.Blob}, t.collect(later(25*time.Hour), erase.CollectOptions{}))

	t.putBlob(t.Main(), "again")
	before := t.blobTime()
	for t.blobTime().Equal(before) {
		t.putBlob(t.Main(), "again")
	}
	t.WantEqual("a second put renews the blob's time", true, t.blobTime().After(before))
}

// blobTime returns the time of the only blob.
func (t *env) blobTime() time.Time {
	t.Helper()
	infos, err := suite.Collect(suite.Ability[eventlog.Blobs](t, t.Store()).ListBlobs(t.Ctx))
	t.Must(err)
	if len(infos) != 1 {
		t.Fatalf("%d blobs, want 1", len(infos))
	}
	return infos[0].Written
}

func testGarbageDry(t *env) {
	t.Append(t.Main(), "a", eventlog.New(), suite.Image(t.putBlob(t.Main(), "image")))
	garbage := []event.Digest{t.putBlob(t.Main(), "garbage").Blob}
	l := t.ReadOnly()
	before := t.blobsOf(l)
	t.WantEqual("blobs to remove", garbage, t.collect(l, erase.CollectOptions{Grace: -1, DryRun: true}))
	_, err := erase.Collect(t.Ctx, l, noGrace)
	t.WantErr(eventlog.ErrReadOnly, err)
	t.WantEqual("blobs", before, t.blobsOf(l))
	t.WantEqual("blobs after a reopen", before, t.blobsOf(t.Reopen()))
}

func testGarbageTooSoon(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Note(1))
	e := suite.Image(t.putBlob(l, "image"))
	t.WantEqual("removed blobs", 1, len(t.collect(l, noGrace)))
	err := t.WantAppendError(event.ErrInvalidBlob, l, "a", eventlog.Any(), suite.Note(2), e)
	t.WantErr(eventlog.ErrBlobNotFound, err)
	t.putBlob(l, "image")
	t.Append(l, "a", eventlog.Any(), suite.Note(2), e)
	t.WantVerified(l, "a")
}

// damagedStore is a store with one session that is damaged after some events.
type damagedStore struct {
	eventlog.Store
	session string
}

// Unwrap returns the store under it, so that callers find its optional interfaces.
func (d *damagedStore) Unwrap() eventlog.Store { return d.Store }

// Read implements eventlog.Store.
func (d *damagedStore) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	if session != d.session {
		return d.Store.Read(ctx, session, r)
	}
	return func(yield func(event.Event, error) bool) {
		for e, err := range d.Store.Read(ctx, session, r) {
			if err != nil || e.Seq == 2 {
				break
			}
			if !yield(e, nil) {
				return
			}
		}
		yield(event.Event{}, &eventlog.CorruptError{Session: session, Path: "here", Offset: 7, Seq: 2, Cause: suite.ErrInjected})
	}
}

// BlobUsers implements eventlog.BlobIndex: the store has no index.
func (d *damagedStore) BlobUsers(context.Context, []event.Digest) iter.Seq2[eventlog.BlobUser, error] {
	return func(yield func(eventlog.BlobUser, error) bool) {
		yield(eventlog.BlobUser{}, eventlog.ErrUnsupported)
	}
}

func testGarbageDamaged(t *env) {
	t.Append(t.Main(), "a", eventlog.New(), suite.Note(1), suite.Image(t.putBlob(t.Main(), "image")))
	t.Append(t.Main(), "b", eventlog.New(), suite.Note(1))
	t.putBlob(t.Main(), "garbage")
	before := t.blobsOf(t.Main())
	l := t.LogOver(&damagedStore{t.Store(), "a"})
	for _, opts := range []erase.CollectOptions{noGrace, {Grace: -1, DryRun: true}} {
		garbage, err := erase.Collect(t.Ctx, l, opts)
		t.WantErr(eventlog.ErrCorrupt, err)
		t.WantEqual("removed blobs", 0, len(garbage.Blobs))
		if err != nil && !strings.Contains(err.Error(), `session "a"`) {
			t.Errorf("the error does not name the session: %v", err)
		}
	}
	t.WantEqual("blobs", before, t.blobsOf(t.Reopen()))
}

func testGarbageOfDamagedLines(t *env) {
	l := t.Main()
	needed := t.putBlob(l, "image")
	t.Append(l, "a", eventlog.New(), suite.Note(1), suite.Image(needed))
	garbage := t.putBlob(l, "garbage")
	l = t.Damage("a", onLine(1, flipByte))
	t.WantEqual("removed blobs", []event.Digest{garbage.Blob}, t.collect(l, noGrace))
	t.WantEqual("body", "image", t.Blob(t.Reopen(), needed.Blob))
}

func testGarbageRace(t *env, mine, theirs eventlog.Store) {
	each, rounds := testsize.Fewer(40), testsize.Fewer(60) // enough, in the long form, to collect some blobs between their put and their event
	collector := t.LogOver(mine)
	l := t.LogOver(theirs, eventlog.Options{SpillOver: 200})
	done := make(chan struct{})
	var collecting error
	go func() {
		defer close(done)
		errs := suite.Concurrently(4, func(i int) error { return t.spillAndPut(l, fmt.Sprint("s", i), each) })
		for _, err := range errs {
			if err != nil {
				t.Errorf("writer: %v", err)
			}
		}
	}()
	for i := range rounds {
		if collecting == nil {
			_, collecting = collector.PutBlob(t.Ctx, strings.NewReader(fmt.Sprint("garbage ", i)))
		}
		if collecting == nil {
			_, collecting = erase.Collect(t.Ctx, collector, noGrace)
		}
	}
	<-done
	t.Must(collecting)
	l = t.Reopen()
	for i := range 4 {
		session := fmt.Sprint("s", i)
		t.WantEqual("events", 2*each, len(t.Lines(l, session)))
		t.WantVerified(l, session)
	}
	_, err := erase.Collect(t.Ctx, l, noGrace)
	t.Must(err)
	t.WantVerified(l, "s0")
	t.WantEqual("blobs, equal blobs once", each+4*each, len(t.blobsOf(l)))
}

// spillAndPut appends events with spilled data, equal in all sessions, and events that
// refer to a blob. It puts the blob again if the blob was collected.
func (t *env) spillAndPut(l *eventlog.Log, session string, n int) error {
	for i := range n {
		e := suite.NewEvent("test:note", fmt.Sprintf(`"%d %s"`, i, suite.Text("spilled", 200)))
		if _, err := l.Append(t.Ctx, session, eventlog.Any(), e); err != nil {
			return err
		}
		for {
			ref, err := l.PutBlob(t.Ctx, strings.NewReader(fmt.Sprint(session, i)))
			if err != nil {
				return err
			}
			_, err = l.Append(t.Ctx, session, eventlog.Any(), suite.Image(ref))
			if err == nil {
				break
			}
			if !errors.Is(err, eventlog.ErrBlobNotFound) {
				return err
			}
		}
	}
	return nil
}

func testGarbageElsewhere(t *env) {
	bodies := memory.New()
	store, err := eventlog.WithBlobs(t.Open(), bodies)
	t.Must(err)
	l := t.LogOver(store, eventlog.Options{SpillOver: 60})
	t.Append(l, "a", eventlog.New(), suite.User("a spilled message"))
	t.WantEqual("removed blobs", []event.Digest{t.putBlob(l, "garbage").Blob}, t.collect(l, noGrace))
	t.WantVerified(l, "a")
	_, err = erase.Redact(t.Ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	left, err := suite.Collect(bodies.ListBlobs(t.Ctx))
	t.Must(err)
	t.WantEqual("blobs after the redaction", []event.Digest{}, digestsOf(left))
}

package storetest

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
	"github.com/convlog/convlog/upkeep/erase"
)

var garbageCases = []testCase{
	{
		name:        "what nobody needs goes",
		explanation: "Collecting garbage removes the blobs that no line lists; those of messages, of artifacts, of snapshots, of forks and of spilled data stay, and so does every line.",
		needs:       []Need{Blobs, Sweeper},
		run:         testGarbage,
	},
	{
		name:        "shared by two sessions",
		explanation: "A blob goes when the last of the sessions that need it has been removed.",
		needs:       []Need{Blobs, Sweeper, Remover},
		run:         testGarbageShared,
	},
	{
		name:        "of a redaction",
		explanation: "What redacted events alone needed is not needed any more; what others need of it stays.",
		needs:       []Need{Blobs, Sweeper, Rewriter},
		run:         testGarbageRedacted,
	},
	{
		name:        "grace",
		explanation: "A blob is left alone for the grace after it was put, and putting equal bytes again begins that anew.",
		needs:       []Need{Blobs, Sweeper},
		run:         testGarbageGrace,
	},
	{
		name:        "dry run",
		explanation: "A dry run names what would go and removes nothing, also where the store is read-only; read-only collecting is refused.",
		needs:       []Need{Blobs, Sweeper, ReadOnly},
		run:         testGarbageDry,
	},
	{
		name:        "a blob that is gone",
		explanation: "An append that needs a blob which was collected is refused, and nothing is written; when the blob is put again the append succeeds.",
		needs:       []Need{Blobs, Sweeper},
		run:         testGarbageTooSoon,
	},
	{
		name:        "unreadable sessions",
		explanation: "When a session cannot be read whole, the blobs in use cannot be told: the error names it and no blob is removed.",
		needs:       []Need{Blobs, Sweeper},
		run:         testGarbageDamaged,
	},
	{
		name:        "while others write",
		explanation: "Collecting without grace while others spill and put blobs takes no blob that an event needs.",
		needs:       []Need{Blobs, Sweeper, Locker},
		run:         func(t *env) { testGarbageRace(t, t.store(), t.store()) },
	},
	{
		name:        "while other handles write",
		explanation: "Collecting without grace while others spill and put blobs through another handle takes no blob that an event needs.",
		needs:       []Need{Blobs, Sweeper, Locker, Handles},
		run:         func(t *env) { testGarbageRace(t, t.store(), t.open()) },
	},
}

// everything collects without grace.
var everything = erase.CollectOptions{Grace: -1}

// collected collects garbage and gives the digests that went.
func (t *env) collected(l *eventlog.Log, opts erase.CollectOptions) []event.Digest {
	t.Helper()
	garbage, err := erase.Collect(t.ctx, l, opts)
	t.must(err)
	return digestsOf(garbage.Blobs)
}

func digestsOf(infos []eventlog.BlobInfo) []event.Digest {
	digests := []event.Digest{}
	for _, info := range infos {
		digests = append(digests, info.Digest)
	}
	return digests
}

// body puts a blob.
func (t *env) body(l *eventlog.Log, text string) event.BlobRef {
	t.Helper()
	ref, err := l.PutBlob(t.ctx, strings.NewReader(text))
	t.must(err)
	return ref
}

// blobsOf are the digests of all blobs.
func (t *env) blobsOf(l *eventlog.Log) []event.Digest {
	t.Helper()
	infos, err := collect(ability[eventlog.Blobs](t, l.Store()).ListBlobs(t.ctx))
	t.must(err)
	return digestsOf(infos)
}

func image(ref event.BlobRef) event.Event {
	return newEvent(event.MessageAdded, fmt.Sprintf(
		`{"role":"user","parts":[{"type":"image","media_type":"image/png","blob":{"blob":"%s","bytes":%d}}]}`, ref.Blob, ref.Bytes))
}

func snapshotOf(ref event.BlobRef, seq int64) event.Event {
	return newEvent(event.ProjectionSnapshotted, fmt.Sprintf(`{"projection":"p","version":1,"snapshot_id":"0190a5a4-7d4c-7000-8000-000000000001",`+
		`"state_digest":"%s","body_digest":"%s","index":0,"turn_index":0,"trigger":"manual","seq":%d,"body":{"blob":"%s","bytes":%d}}`,
		ref.Blob, ref.Blob, seq, ref.Blob, ref.Bytes))
}

func testGarbage(t *env) {
	l := t.over(t.store(), eventlog.Options{SpillOver: 100})
	spilled := `"` + text("spilled", 200) + `"`
	head := t.append(l, "a", eventlog.New(), newEvent("test:note", spilled), image(t.body(l, "image")))
	_, head, err := l.StoreArtifact(t.ctx, "a", eventlog.At(head), event.Artifact{ArtifactID: "r1", Name: "n"}, strings.NewReader("artifact"))
	t.must(err)
	t.append(l, "b", eventlog.New(), t.forkAt("a", head.Seq), snapshotOf(t.body(l, "snapshot"), head.Seq+1))
	needed := t.blobsOf(l)
	var want []event.Digest
	for i := range 300 {
		want = append(want, t.body(l, fmt.Sprint("garbage ", i)).Blob)
	}
	slices.Sort(want)
	before := t.lines(l, "a")
	t.same("blobs to go", want, t.collected(l, erase.CollectOptions{Grace: -1, DryRun: true}))
	t.same("blobs that went", want, t.collected(l, everything))
	t.same("blobs that went later", []event.Digest{}, t.collected(l, everything))
	t.twice(func(l *eventlog.Log) {
		t.same("blobs", needed, t.blobsOf(l))
		t.same("lines", before, t.lines(l, "a"))
		t.sound(l, "a")
		t.sound(l, "b")
	})
}

func testGarbageShared(t *env) {
	l := t.log()
	ref := t.body(l, "shared")
	t.append(l, "a", eventlog.New(), image(ref))
	t.append(l, "b", eventlog.New(), image(ref))
	t.must(erase.Remove(t.ctx, l, "a"))
	t.same("blobs that went", []event.Digest{}, t.collected(l, everything))
	t.same("body", "shared", t.blob(l, ref.Blob))
	t.must(erase.Remove(t.ctx, l, "b"))
	t.same("blobs that went", []event.Digest{ref.Blob}, t.collected(t.reopen(), everything))
	t.same("blobs", []event.Digest{}, t.blobsOf(t.log()))
}

func testGarbageRedacted(t *env) {
	l := t.log()
	ref, other := t.body(l, "shared"), t.body(l, "other")
	t.append(l, "a", eventlog.New(), image(ref), image(other))
	t.append(l, "b", eventlog.New(), image(ref))
	_, err := erase.Redact(t.ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.must(err)
	t.same("blobs that went", []event.Digest{}, t.collected(l, everything))
	_, err = erase.Redact(t.ctx, l, "b", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.must(err)
	t.same("blobs that went", []event.Digest{}, t.collected(l, everything))
	t.same("blobs", []event.Digest{other.Blob}, t.blobsOf(t.reopen()))
	t.sound(t.log(), "a")
}

func testGarbageGrace(t *env) {
	later := func(d time.Duration) *eventlog.Log {
		return t.over(t.store(), eventlog.Options{Now: func() time.Time { return time.Now().Add(d) }})
	}
	ref := t.body(t.log(), "garbage")
	t.same("blobs that went at once", []event.Digest{}, t.collected(t.log(), erase.CollectOptions{}))
	t.same("blobs that went after 23 hours", []event.Digest{}, t.collected(later(23*time.Hour), erase.CollectOptions{}))
	t.same("blobs that went after 2 hours, of one", []event.Digest{ref.Blob},
		t.collected(later(2*time.Hour), erase.CollectOptions{Grace: time.Hour, DryRun: true}))
	t.same("blobs that went after 25 hours", []event.Digest{ref.Blob}, t.collected(later(25*time.Hour), erase.CollectOptions{}))

	t.body(t.log(), "again")
	before := t.written()
	for t.written().Equal(before) {
		t.body(t.log(), "again")
	}
	t.same("a blob put again is younger", true, t.written().After(before))
}

// written is when the only blob was written.
func (t *env) written() time.Time {
	t.Helper()
	infos, err := collect(ability[eventlog.Blobs](t, t.store()).ListBlobs(t.ctx))
	t.must(err)
	if len(infos) != 1 {
		t.Fatalf("%d blobs, want 1", len(infos))
	}
	return infos[0].Written
}

func testGarbageDry(t *env) {
	t.append(t.log(), "a", eventlog.New(), image(t.body(t.log(), "image")))
	garbage := []event.Digest{t.body(t.log(), "garbage").Blob}
	l := t.readOnly()
	before := t.blobsOf(l)
	t.same("blobs to go", garbage, t.collected(l, erase.CollectOptions{Grace: -1, DryRun: true}))
	_, err := erase.Collect(t.ctx, l, everything)
	t.wantErr(eventlog.ErrReadOnly, err)
	t.same("blobs", before, t.blobsOf(l))
	t.same("blobs after a reopen", before, t.blobsOf(t.reopen()))
}

func testGarbageTooSoon(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), note(1))
	e := image(t.body(l, "image"))
	t.same("blobs that went", 1, len(t.collected(l, everything)))
	err := t.refused(event.ErrInvalidBlob, l, "a", eventlog.Any(), note(2), e)
	t.wantErr(eventlog.ErrBlobNotFound, err)
	t.body(l, "image")
	t.append(l, "a", eventlog.Any(), note(2), e)
	t.sound(l, "a")
}

// damaged is a store one of whose sessions ends in damage, behind some events.
type damaged struct {
	eventlog.Store
	session string
}

// Unwrap lets the abilities of the store underneath be found.
func (d *damaged) Unwrap() eventlog.Store { return d.Store }

// Read implements Store.
func (d *damaged) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
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
		yield(event.Event{}, &eventlog.CorruptError{Session: session, Path: "here", Offset: 7, Seq: 2, Cause: errInjected})
	}
}

func testGarbageDamaged(t *env) {
	t.append(t.log(), "a", eventlog.New(), note(1), image(t.body(t.log(), "image")))
	t.append(t.log(), "b", eventlog.New(), note(1))
	t.body(t.log(), "garbage")
	before := t.blobsOf(t.log())
	l := t.over(&damaged{t.store(), "a"})
	for _, opts := range []erase.CollectOptions{everything, {Grace: -1, DryRun: true}} {
		garbage, err := erase.Collect(t.ctx, l, opts)
		t.wantErr(eventlog.ErrCorrupt, err)
		t.same("blobs that went", 0, len(garbage.Blobs))
		if err != nil && !strings.Contains(err.Error(), `session "a"`) {
			t.Errorf("the error does not name the session: %v", err)
		}
	}
	t.same("blobs", before, t.blobsOf(t.reopen()))
}

func testGarbageRace(t *env, mine, theirs eventlog.Store) {
	const each, rounds = 40, 60 // so many that a blob which was put may go before its event comes, and not for ever
	collector := t.over(mine)
	l := t.over(theirs, eventlog.Options{SpillOver: 200})
	done := make(chan struct{})
	var collecting error
	go func() {
		defer close(done)
		errs := together(4, func(i int) error { return t.spillAndPut(l, fmt.Sprint("s", i), each) })
		for _, err := range errs {
			if err != nil {
				t.Errorf("writer: %v", err)
			}
		}
	}()
	for i := range rounds {
		if collecting == nil {
			_, collecting = collector.PutBlob(t.ctx, strings.NewReader(fmt.Sprint("garbage ", i)))
		}
		if collecting == nil {
			_, collecting = erase.Collect(t.ctx, collector, everything)
		}
	}
	<-done
	t.must(collecting)
	l = t.reopen()
	for i := range 4 {
		session := fmt.Sprint("s", i)
		t.same("events", 2*each, len(t.lines(l, session)))
		t.sound(l, session)
	}
	_, err := erase.Collect(t.ctx, l, everything)
	t.must(err)
	t.sound(l, "s0")
	t.same("blobs, equal ones once", each+4*each, len(t.blobsOf(l)))
}

// spillAndPut appends events with data that is spilled, equal in all sessions,
// and events that refer to a blob which was put before: again where it was
// collected meanwhile.
func (t *env) spillAndPut(l *eventlog.Log, session string, n int) error {
	for i := range n {
		e := newEvent("test:note", fmt.Sprintf(`"%d %s"`, i, text("spilled", 200)))
		if _, err := l.Append(t.ctx, session, eventlog.Any(), e); err != nil {
			return err
		}
		for {
			ref, err := l.PutBlob(t.ctx, strings.NewReader(fmt.Sprint(session, i)))
			if err != nil {
				return err
			}
			_, err = l.Append(t.ctx, session, eventlog.Any(), image(ref))
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

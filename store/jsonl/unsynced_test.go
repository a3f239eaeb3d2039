package jsonl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

func says(text string) event.Event { return event.UserMessage(text) }

// afterCrashes calls check with a log over what each of many crashes leaves.
func afterCrashes(t *testing.T, disk *crashfs.Disk, check func(log *eventlog.Log) error) {
	t.Helper()
	afterManyCrashes(t, disk, 200, check)
}

func afterManyCrashes(t *testing.T, disk *crashfs.Disk, n uint64, check func(log *eventlog.Log) error) {
	t.Helper()
	for seed := range n {
		if err := check(startWriter(disk.Crash(seed), jsonl.Always).log); err != nil {
			t.Fatalf("crash %d: %v", seed, err)
		}
	}
}

// holds reports an error unless a session has so many events.
func holds(ctx context.Context, log *eventlog.Log, session string, want int) error {
	events, err := readOwn(ctx, log, session)
	if err == nil && len(events) != want {
		err = fmt.Errorf("session %q has %d events, want %d", session, len(events), want)
	}
	return err
}

// stopAt ends the process that does the first operation of a kind.
func stopAt(disk *crashfs.Disk, kind string) {
	stopped := false
	disk.SetFault(func(op crashfs.Op) crashfs.Fault {
		kill := op.Kind == kind && !stopped
		stopped = stopped || kill
		return crashfs.Fault{Kill: kill}
	})
}

// A process that is killed before it synced leaves events that are there and not
// on disk. Whoever appends them again may rely on them.
func TestRetryOfWhatWasNotSynced(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []string{"sync", "syncdir"} {
		disk := crashfs.New()
		stopAt(disk, kind)
		e := says("hello")
		if _, err := startWriter(disk, jsonl.Always).log.Append(ctx, "s", eventlog.New(), e); !errors.Is(err, crashfs.ErrKilled) {
			t.Fatal(err)
		}
		second := startWriter(disk, jsonl.Always).log
		mustDo(holds(ctx, second, "s", 1))
		if _, err := second.Append(ctx, "s", eventlog.New(), e); err != nil {
			t.Fatal(err)
		}
		afterCrashes(t, disk, func(log *eventlog.Log) error { return holds(ctx, log, "s", 1) })
	}
}

// The same of an import, and of events that a relaxed policy did not sync.
func TestDemandOfDurabilityComesLater(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, jsonl.Never).log
	e := says("hello")
	head, err := log.Append(ctx, "s", eventlog.New(), e)
	mustDo(err)
	again, err := log.Append(ctx, "s", eventlog.New().Durable(), e)
	if err != nil || again != head {
		t.Fatalf("again: %v at %v, want %v", err, again, head)
	}
	afterCrashes(t, disk, func(log *eventlog.Log) error { return holds(ctx, log, "s", 1) })

	other := crashfs.New()
	for range 2 {
		_, err := transfer.Adopt(ctx, startWriter(other, jsonl.Never).log, "s", log.Store().Read(ctx, "s", eventlog.Span{}))
		mustDo(err)
	}
	afterCrashes(t, other, func(log *eventlog.Log) error { return holds(ctx, log, "s", 1) })
}

// A fork that is on disk has its past on disk.
func TestForkSyncsItsParent(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, jsonl.Never).log
	e := says("hello")
	head := must(log.Append(ctx, "parent", eventlog.New(), e))
	fork := event.New(event.Fork{Parent: "parent", Seq: 1, EventID: e.ID, Hash: head.Hash})
	must(log.Append(ctx, "fork", eventlog.New().Durable(), fork))
	afterCrashes(t, disk, func(log *eventlog.Log) error {
		return errors.Join(holds(ctx, log, "parent", 1), holds(ctx, log, "fork", 1))
	})
}

// The same where this process has synced all it wrote, and another one, which
// syncs nothing, went on.
func TestForkSyncsWhatOthersAppended(t *testing.T) {
	ctx := t.Context()
	for _, others := range []int{0, 1, 3} {
		disk := crashfs.New()
		log := startWriter(disk, jsonl.Always).log
		head := must(log.Append(ctx, "parent", eventlog.New(), says("hello")))
		last := says("again")
		head = must(log.Append(ctx, "parent", eventlog.At(head), last))
		other := startWriter(disk, jsonl.Never).log
		for range others {
			last = says("and again")
			head = must(other.Append(ctx, "parent", eventlog.At(head), last))
		}
		fork := event.New(event.Fork{Parent: "parent", Seq: head.Seq, EventID: last.ID, Hash: head.Hash})
		must(log.Append(ctx, "fork", eventlog.New().Durable(), fork))
		afterCrashes(t, disk, func(log *eventlog.Log) error {
			return errors.Join(holds(ctx, log, "parent", 2+others), holds(ctx, log, "fork", 1))
		})
	}
}

// A blob that a killed process has put may not be on disk: a conversion does not
// rely on it.
func TestConvertBringsBlobsThatWereNotSynced(t *testing.T) {
	ctx := t.Context()
	src := startWriter(crashfs.New(), jsonl.Always).log
	const body = "the body of an artifact"
	ref := must(src.PutBlob(ctx, strings.NewReader(body)))
	must(src.Append(ctx, "s", eventlog.New(), event.New(event.Artifact{ArtifactID: "a", Body: ref})))
	disk := crashfs.New()
	stopAt(disk, "syncdir")
	if _, err := startWriter(disk, jsonl.Always).log.PutBlob(ctx, strings.NewReader(body)); !errors.Is(err, crashfs.ErrKilled) {
		t.Fatal(err)
	}
	for _, err := range transfer.Convert(ctx, startWriter(disk, jsonl.Always).log, src) {
		mustDo(err)
	}
	afterCrashes(t, disk, func(log *eventlog.Log) error {
		report, err := verify.Session(ctx, log, "s")
		if err == nil && len(report.Defects) > 0 {
			err = errors.New(report.Defects[0].String())
		}
		return err
	})
}

// A removal that another process did not finish is finished by who finds the
// session gone.
func TestRemovalThatWasNotSynced(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	first := startWriter(disk, jsonl.Always).log
	must(first.Append(ctx, "s", eventlog.New(), says("hello")))
	stopAt(disk, "syncdir")
	if err := erase.Remove(ctx, first, "s"); err == nil {
		t.Fatal("the removal was not interrupted")
	}
	if err := erase.Remove(ctx, startWriter(disk, jsonl.Always).log, "s"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatal(err)
	}
	afterCrashes(t, disk, func(log *eventlog.Log) error { return holds(ctx, log, "s", 0) })
}

// Of appends that are written together and fail, the first may have reached the
// disk: it does not come back.
func TestFailedWriteDoesNotComeBack(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, jsonl.Always).log
	head := must(log.Append(ctx, "s", eventlog.New(), says("hello")))
	disk.SetFault(crashfs.Full)
	_, err := log.AppendEach(ctx, "s", eventlog.At(head), []event.Event{says("one")}, []event.Event{says("two"), says(strings.Repeat("long ", 200))})
	if !errors.Is(err, unix.ENOSPC) || errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Fatalf("got %v, want no space, and nothing written", err)
	}
	afterCrashes(t, disk, func(log *eventlog.Log) error { return holds(ctx, log, "s", 1) })
}

// A process that is killed between cutting a tail off and syncing that leaves
// blocks on disk that must not mix with what is appended next.
func TestCutThatWasNotSynced(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, jsonl.Always).log
	for range 6 {
		must(log.Append(ctx, "s", eventlog.Any(), says(strings.Repeat("long ", 100))))
	}
	disk = disk.Crash(0)
	disk.Damage("s.jsonl", func(b []byte) []byte {
		clear(b[1024:1536]) // a lost block, and whole appends behind it
		return b
	})
	cut := false
	disk.SetFault(func(op crashfs.Op) crashfs.Fault {
		cut = cut || op.Kind == "truncate"
		return crashfs.Fault{Kill: cut && op.Kind == "sync"}
	})
	if _, err := startWriter(disk, jsonl.Always).log.Append(ctx, "s", eventlog.Any(), says("next")); !errors.Is(err, crashfs.ErrKilled) {
		t.Fatal(err)
	}
	disk.SetFault(nil)
	must(startWriter(disk, jsonl.Never).log.Append(ctx, "s", eventlog.Any(), says(strings.Repeat("after ", 300))))
	afterManyCrashes(t, disk, 4000, func(log *eventlog.Log) error {
		if _, err := log.Append(ctx, "s", eventlog.Any(), says("last")); err != nil {
			return err
		}
		report, err := verify.Session(ctx, log, "s")
		if err == nil && len(report.Defects) > 0 {
			err = errors.New(report.Defects[0].String())
		}
		return err
	})
}

// An append that could be neither synced nor taken back is not shown to its own
// process, and appending it again does not find it.
func TestPoisonedHidesWhatItCannotTakeBack(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, jsonl.Always).log
	head := must(log.Append(ctx, "s", eventlog.New(), says("hello")))
	disk.SetFault(failing("sync truncate"))
	e := says("again")
	if _, err := log.Append(ctx, "s", eventlog.At(head), e); !errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	disk.SetFault(nil)
	for range 2 {
		mustDo(holds(ctx, log, "s", 1))
		if _, err := log.Append(ctx, "s", eventlog.At(head), e); !errors.Is(err, eventlog.ErrReadOnly) {
			t.Fatalf("got %v, want a session that is refused", err)
		}
	}
}

// However much is appended without a sync, what a crash leaves is within reach of
// recovery: whole appends and no damage.
func TestUnsyncedAppendsStayWithinReach(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := eventlog.Open(jsonl.New("store", jsonl.Options{FS: disk.Mount(), Sync: jsonl.Never}), eventlog.Options{SpillOver: -1})
	const events = 6
	for range events {
		must(log.Append(ctx, "s", eventlog.Any(), says(strings.Repeat("1234567 ", 150_000))))
	}
	left := map[int]bool{}
	for seed := range uint64(4) {
		after := startWriter(disk.Crash(seed), jsonl.Never).log
		there, err := readOwn(ctx, after, "s")
		mustDo(err)
		left[len(there)] = true
		must(after.Append(ctx, "s", eventlog.Any(), says("next")))
		report, err := verify.Session(ctx, after, "s")
		if err != nil || len(report.Defects) > 0 || report.Events != int64(len(there))+1 {
			t.Fatalf("crash %d: %d events, %v, %v", seed, report.Events, report.Defects, err)
		}
	}
	if len(left) < 2 {
		t.Errorf("every crash leaves the same: %v", left)
	}
}

// A retry names the head it started from. Where that was lost in a crash, what it
// stored since is found all the same.
func TestRetryAfterALostHead(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, jsonl.Never).log
	must(log.Append(ctx, "s", eventlog.New().Durable(), says("kept")))
	disk = disk.Crash(0)
	must(log.Append(ctx, "s", eventlog.Any(), says("lost")))
	lost := must(log.Append(ctx, "s", eventlog.Any(), says("lost too")))
	after := startWriter(disk, jsonl.Never).log
	e := says("again")
	head := must(after.Append(ctx, "s", eventlog.AnyAfter(lost), e))
	again, err := after.Append(ctx, "s", eventlog.AnyAfter(lost), e)
	if err != nil || again != head {
		t.Fatalf("again: %v at %v, want %v", err, again, head)
	}
	mustDo(holds(ctx, after, "s", 2))
}

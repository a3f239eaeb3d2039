package jsonl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

func userText(text string) event.Event { return event.UserMessage(text) }

// afterCrashes calls check with a log on the disk after each of many crashes.
func afterCrashes(t *testing.T, disk *crashfs.Disk, check func(log *eventlog.Log) error) {
	t.Helper()
	afterManyCrashes(t, disk, 200, check)
}

func afterManyCrashes(t *testing.T, disk *crashfs.Disk, n uint64, check func(log *eventlog.Log) error) {
	t.Helper()
	for seed := range testsize.Pick(n/40, n/20, n) {
		if err := check(startWriter(disk.Crash(seed), false).log); err != nil {
			t.Fatalf("crash %d: %v", seed, err)
		}
	}
}

// wantEvents returns an error unless a session has want events.
func wantEvents(ctx context.Context, log *eventlog.Log, session string, want int) error {
	events, err := readOwn(ctx, log, session)
	if err == nil && len(events) != want {
		err = fmt.Errorf("session %q has %d events, want %d", session, len(events), want)
	}
	return err
}

// stopAt kills the process at its first operation of a kind.
func stopAt(disk *crashfs.Disk, kind string) { stopAtNth(disk, kind, 1) }

// stopAtNth is stopAt for the n-th operation of the kind.
func stopAtNth(disk *crashfs.Disk, kind string, n int) {
	disk.SetFault(func(op crashfs.Op) crashfs.Fault {
		if op.Kind == kind {
			n--
		}
		kill := op.Kind == kind && n == 0
		return crashfs.Fault{Kill: kill}
	})
}

// A process dies before it syncs: its events are readable but not durable. A retry of
// the append makes them durable.
func TestRetryOfUnsyncedAppend(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []string{"sync", "syncdir"} {
		disk := crashfs.New()
		stopAt(disk, kind)
		e := userText("hello")
		if _, err := startWriter(disk, false).log.Append(ctx, "s", eventlog.New(), e); !errors.Is(err, crashfs.ErrKilled) {
			t.Fatal(err)
		}
		second := startWriter(disk, false).log
		mustDo(wantEvents(ctx, second, "s", 1))
		if _, err := second.Append(ctx, "s", eventlog.New(), e); err != nil {
			t.Fatal(err)
		}
		afterCrashes(t, disk, func(log *eventlog.Log) error { return wantEvents(ctx, log, "s", 1) })
	}
}

// The same for an import, and for events of a store with NoSync.
func TestDurableRetryOfUnsyncedAppend(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, true).log
	e := userText("hello")
	head, err := log.Append(ctx, "s", eventlog.New(), e)
	mustDo(err)
	again, err := log.Append(ctx, "s", eventlog.New().Durable(), e)
	if err != nil || again != head {
		t.Fatalf("again: %v at %v, want %v", err, again, head)
	}
	afterCrashes(t, disk, func(log *eventlog.Log) error { return wantEvents(ctx, log, "s", 1) })

	other := crashfs.New()
	for range 2 {
		_, err := transfer.Adopt(ctx, startWriter(other, true).log, "s", log.Store().Read(ctx, "s", eventlog.Span{}))
		mustDo(err)
	}
	afterCrashes(t, other, func(log *eventlog.Log) error { return wantEvents(ctx, log, "s", 1) })
}

// If a fork is durable, its parent is durable.
func TestForkSyncsItsParent(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, true).log
	e := userText("hello")
	head := must(log.Append(ctx, "parent", eventlog.New(), e))
	fork := event.New(event.Fork{Parent: "parent", Seq: 1, EventID: e.ID, Hash: head.Hash})
	must(log.Append(ctx, "fork", eventlog.New().Durable(), fork))
	afterCrashes(t, disk, func(log *eventlog.Log) error {
		return errors.Join(wantEvents(ctx, log, "parent", 1), wantEvents(ctx, log, "fork", 1))
	})
}

// The same if this process has synced its appends and another one has appended without
// a sync.
func TestForkSyncsAppendsOfOthers(t *testing.T) {
	ctx := t.Context()
	for _, others := range []int{0, 1, 3} {
		disk := crashfs.New()
		log := startWriter(disk, false).log
		head := must(log.Append(ctx, "parent", eventlog.New(), userText("hello")))
		last := userText("again")
		head = must(log.Append(ctx, "parent", eventlog.At(head), last))
		other := startWriter(disk, true).log
		for range others {
			last = userText("and again")
			head = must(other.Append(ctx, "parent", eventlog.At(head), last))
		}
		fork := event.New(event.Fork{Parent: "parent", Seq: head.Seq, EventID: last.ID, Hash: head.Hash})
		must(log.Append(ctx, "fork", eventlog.New().Durable(), fork))
		afterCrashes(t, disk, func(log *eventlog.Log) error {
			return errors.Join(wantEvents(ctx, log, "parent", 2+others), wantEvents(ctx, log, "fork", 1))
		})
	}
}

// A blob of a killed process may be unsynced. A conversion writes it again.
func TestConvertCopiesUnsyncedBlobs(t *testing.T) {
	ctx := t.Context()
	src := startWriter(crashfs.New(), false).log
	const body = "the body of an artifact"
	ref := must(src.PutBlob(ctx, strings.NewReader(body)))
	must(src.Append(ctx, "s", eventlog.New(), event.New(event.Artifact{ArtifactID: "a", Body: ref})))
	disk := crashfs.New()
	stopAt(disk, "syncdir")
	if _, err := startWriter(disk, false).log.PutBlob(ctx, strings.NewReader(body)); !errors.Is(err, crashfs.ErrKilled) {
		t.Fatal(err)
	}
	for _, err := range transfer.Convert(ctx, startWriter(disk, false).log, src) {
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

// A removal that another process did not sync is made durable by the next removal.
func TestUnsyncedRemoval(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	first := startWriter(disk, false).log
	must(first.Append(ctx, "s", eventlog.New(), userText("hello")))
	stopAtNth(disk, "syncdir", 2) // the first one is of the mark
	if err := erase.Remove(ctx, first, "s"); err == nil {
		t.Fatal("the removal was not interrupted")
	}
	if err := erase.Remove(ctx, startWriter(disk, false).log, "s"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatal(err)
	}
	afterCrashes(t, disk, func(log *eventlog.Log) error { return wantEvents(ctx, log, "s", 0) })
}

// If appends that are written together fail, a prefix may be on disk. It does not
// reappear after a crash.
func TestFailedWriteDoesNotComeBack(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, false).log
	head := must(log.Append(ctx, "s", eventlog.New(), userText("hello")))
	disk.SetFault(crashfs.Full)
	_, err := log.AppendEach(ctx, "s", eventlog.At(head), []event.Event{userText("one")}, []event.Event{userText("two"), userText(strings.Repeat("long ", 200))})
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Fatalf("got %v, want no space, and nothing written", err)
	}
	afterCrashes(t, disk, func(log *eventlog.Log) error { return wantEvents(ctx, log, "s", 1) })
}

// A process dies after truncating a tail and before syncing. Blocks of the tail must
// not mix with the next append.
func TestUnsyncedTruncation(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, false).log
	for range 6 {
		must(log.Append(ctx, "s", eventlog.Any(), userText(strings.Repeat("long ", 100))))
	}
	disk = disk.Crash(0)
	disk.Damage("s.jsonl", func(b []byte) []byte {
		clear(b[1024:1536]) // a lost block, with complete appends after it
		return b
	})
	cut := false
	disk.SetFault(func(op crashfs.Op) crashfs.Fault {
		cut = cut || op.Kind == "truncate"
		return crashfs.Fault{Kill: cut && op.Kind == "sync"}
	})
	if _, err := startWriter(disk, false).log.Append(ctx, "s", eventlog.Any(), userText("next")); !errors.Is(err, crashfs.ErrKilled) {
		t.Fatal(err)
	}
	disk.SetFault(nil)
	must(startWriter(disk, true).log.Append(ctx, "s", eventlog.Any(), userText(strings.Repeat("after ", 300))))
	afterManyCrashes(t, disk, 4000, func(log *eventlog.Log) error {
		if _, err := log.Append(ctx, "s", eventlog.Any(), userText("last")); err != nil {
			return err
		}
		report, err := verify.Session(ctx, log, "s")
		if err == nil && len(report.Defects) > 0 {
			err = errors.New(report.Defects[0].String())
		}
		return err
	})
}

// An append that could be neither synced nor undone is not readable in its process, and
// a retry does not find it.
func TestPoisonedHidesFailedAppend(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, false).log
	head := must(log.Append(ctx, "s", eventlog.New(), userText("hello")))
	disk.SetFault(failing("sync truncate"))
	e := userText("again")
	if _, err := log.Append(ctx, "s", eventlog.At(head), e); !errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	disk.SetFault(nil)
	for range 2 {
		mustDo(wantEvents(ctx, log, "s", 1))
		if _, err := log.Append(ctx, "s", eventlog.At(head), e); !errors.Is(err, eventlog.ErrReadOnly) {
			t.Fatalf("got %v, want a session that is refused", err)
		}
	}
}

// However much is appended without a sync, recovery after a crash finds complete
// appends and no damage.
func TestUnsyncedAppendsStayWithinReach(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := eventlog.Open(jsonl.New("store", jsonl.Options{FS: disk.Mount(), NoSync: true}), eventlog.Options{SpillOver: -1})
	const events = 6
	for range events {
		must(log.Append(ctx, "s", eventlog.Any(), userText(strings.Repeat("1234567 ", 150_000))))
	}
	left := map[int]bool{}
	for seed := range uint64(4) {
		after := startWriter(disk.Crash(seed), true).log
		there, err := readOwn(ctx, after, "s")
		mustDo(err)
		left[len(there)] = true
		must(after.Append(ctx, "s", eventlog.Any(), userText("next")))
		report, err := verify.Session(ctx, after, "s")
		if err != nil || len(report.Defects) > 0 || report.Events != int64(len(there))+1 {
			t.Fatalf("crash %d: %d events, %v, %v", seed, report.Events, report.Defects, err)
		}
	}
	if len(left) < 2 {
		t.Errorf("every crash leaves the same: %v", left)
	}
}

// A retry names the head it started from. If a crash lost that head, the retry still
// finds its own stored events.
func TestRetryAfterALostHead(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	log := startWriter(disk, true).log
	must(log.Append(ctx, "s", eventlog.New().Durable(), userText("kept")))
	disk = disk.Crash(0)
	must(log.Append(ctx, "s", eventlog.Any(), userText("lost")))
	lost := must(log.Append(ctx, "s", eventlog.Any(), userText("lost too")))
	after := startWriter(disk, true).log
	e := userText("again")
	head := must(after.Append(ctx, "s", eventlog.Any().After(lost), e))
	again, err := after.Append(ctx, "s", eventlog.Any().After(lost), e)
	if err != nil || again != head {
		t.Fatalf("again: %v at %v, want %v", err, again, head)
	}
	mustDo(wantEvents(ctx, after, "s", 2))
}

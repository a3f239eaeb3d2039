package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
)

// A failed write leaves no byte in the file, however much of it was stored. The next
// append succeeds.
func TestFailedWriteLeavesNothing(t *testing.T) {
	events := sealed(t, "s", 1, 3)
	for _, short := range []int{1, 100, len(content(events[1:]))} {
		for _, before := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d bytes short after %d events", short, before), func(t *testing.T) {
				dir := t.TempDir()
				f := newFaults(dir)
				s := open(t, dir, Options{FS: f})
				appendAll(t, s, "s", event.Head{}, events[:before])
				f.short = min(short, len(content(events[before:])))
				err := s.Append(t.Context(), "s", head(events[:before]), events[before:], false)
				wantErr(t, err, errNoSpace)
				if errors.Is(err, eventlog.ErrUnknownOutcome) {
					t.Error("got an unknown outcome, but nothing was written")
				}
				got, err := os.ReadFile(filepath.Join(dir, "s.jsonl"))
				if before == 0 && !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a session that was not written has a file: %v", err)
				}
				if !bytes.Equal(got, content(events[:before])) {
					t.Errorf("the file holds %q", got)
				}
				appendAll(t, s, "s", head(events[:before]), events[before:])
				wantSeqs(t, s, "s", eventlog.Span{}, 1, 2, 3, 4)
			})
		}
	}
}

// A failed sync removes the append from the file. The outcome is unknown, because the
// append may be on disk.
func TestFailedSync(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	for _, op := range []string{"sync", "syncdir"} {
		dir := t.TempDir()
		f := newFaults(dir)
		s := open(t, dir, Options{FS: f})
		failed := false
		f.set(func(got, name string) error {
			if got != op || failed {
				return nil
			}
			failed = true
			return errNoSpace
		})
		err := s.Append(t.Context(), "s", event.Head{}, events[:1], false)
		var unknown *eventlog.UnknownOutcomeError
		if !errors.As(err, &unknown) || !unknown.Head.IsZero() {
			t.Fatalf("failed %s: %v, want an unknown outcome at the previous head", op, err)
		}
		_, err = read(t, s, "s", eventlog.Span{})
		wantErr(t, err, eventlog.ErrNotFound)
		appendAll(t, s, "s", event.Head{}, events)
		wantSeqs(t, s, "s", eventlog.Span{}, 1, 2)
	}
}

// If the tail cannot be restored, the session refuses appends until the store is
// reopened. Then the file is scanned again.
func TestPoisoned(t *testing.T) {
	events := sealed(t, "s", 1, 1, 1)
	for name, fail := range map[string]func(op, name string) error{
		"sync and truncate": failing("sync", "truncate"),
		"every sync":        failing("sync"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := newFaults(dir)
			s := open(t, dir, Options{FS: f})
			appendAll(t, s, "s", event.Head{}, events[:1])
			f.set(fail)
			err := s.Append(t.Context(), "s", head(events[:1]), events[1:2], false)
			wantErr(t, err, eventlog.ErrUnknownOutcome)
			f.set(nil)
			err = s.Append(t.Context(), "s", head(events[:1]), events[1:2], false)
			wantErr(t, err, eventlog.ErrReadOnly)
			other := sealed(t, "other", 1)
			appendAll(t, s, "other", event.Head{}, other)
			must(t, s.Close())

			again := open(t, dir)
			err = again.Append(t.Context(), "s", head(events[:1]), events[1:2], false)
			if err != nil && !errors.Is(err, eventlog.ErrConflict) {
				t.Fatal(err)
			}
			must(t, again.Append(t.Context(), "s", head(events[:2]), events[2:], false))
			wantSeqs(t, again, "s", eventlog.Span{}, 1, 2, 3)
		})
	}
}

func TestShortWriteThatCannotBeUndone(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	f := newFaults(dir)
	s := open(t, dir, Options{FS: f})
	appendAll(t, s, "s", event.Head{}, events[:1])
	f.set(failing("truncate"))
	f.short = 20
	err := s.Append(t.Context(), "s", head(events[:1]), events[1:], false)
	wantErr(t, err, eventlog.ErrUnknownOutcome)
	wantSeqs(t, s, "s", eventlog.Span{}, 1)
	must(t, s.Close())
	torn := content(events[1:])
	recovered(t, open(t, dir), events[:1], torn[:len(torn)-20])
}

// A torn tail that cannot be saved is not truncated.
func TestCutThatFails(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	torn := content(events)[:len(content(events))-9]
	for _, op := range []string{"write", "rename", "syncdir", "truncate", "sync"} {
		dir := t.TempDir()
		path := write(t, dir, "s", torn)
		f := newFaults(dir)
		s := open(t, dir, Options{FS: f})
		f.set(failing(op))
		err := s.Append(t.Context(), "s", head(events[:1]), events[1:], false)
		if err == nil || errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrUnknownOutcome) {
			t.Fatalf("failed %s: %v, want a plain error", op, err)
		}
		now, err := os.ReadFile(path)
		must(t, err)
		if op != "sync" && !bytes.Equal(now, torn) {
			t.Errorf("failed %s: the tail was truncated", op)
		}
		f.set(nil)
		recovered(t, s, events[:1], torn[len(content(events[:1])):])
	}
}

func TestSyncPolicies(t *testing.T) {
	events := sealed(t, "s", 1, 1, 1)
	for _, test := range []struct {
		name    string
		options Options
		durable bool
		syncs   int
	}{
		{"always", Options{}, false, 3},
		{"never", Options{NoSync: true}, false, 0},
		{"never, but durable", Options{NoSync: true}, true, 3},
		{"interval", Options{SyncEvery: time.Hour}, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			f := newFaults(dir)
			test.options.FS = f
			s := New(dir, test.options)
			for i := range events {
				must(t, s.Append(t.Context(), "s", head(events[:i]), events[i:i+1], test.durable))
			}
			if n := f.count("sync .jsonl"); n != test.syncs {
				t.Errorf("%d syncs for 3 appends, want %d", n, test.syncs)
			}
			must(t, s.Close())
			if n, dirs := f.count("sync .jsonl"), f.count("syncdir ."); n == 0 || dirs != 1 {
				t.Errorf("after Close: %d syncs and %d of the directory, want some and 1", n, dirs)
			}
		})
	}
}

func TestIntervalSyncs(t *testing.T) {
	events := sealed(t, "s", 1, 1, 1)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFaults(dir)
		s := New(dir, Options{FS: f, SyncEvery: time.Minute})
		appendAll(t, s, "s", event.Head{}, events[:1])
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if n := f.count("sync .jsonl"); n != 1 {
			t.Errorf("%d syncs after a minute, want 1", n)
		}
		appendAll(t, s, "s", head(events[:1]), events[1:2])
		f.set(failing("sync"))
		time.Sleep(time.Minute)
		synctest.Wait()
		f.set(nil)
		err := s.Append(t.Context(), "s", head(events[:2]), events[2:], false)
		wantErr(t, err, eventlog.ErrReadOnly)
		_ = s.Close()
	})
}

// Close syncs relaxed appends of sessions whose handles were evicted.
func TestCloseSyncsEvictedSessions(t *testing.T) {
	dir := t.TempDir()
	f := newFaults(dir)
	s := New(dir, Options{FS: f, NoSync: true, OpenFiles: 1})
	for i := range 5 {
		id := fmt.Sprint("s", i)
		appendAll(t, s, id, event.Head{}, sealed(t, id, 1))
	}
	must(t, s.Close())
	if n := f.count("sync .jsonl"); n != 5 {
		t.Errorf("Close synced %d sessions, want 5", n)
	}
}

func TestRelaxedAppendsBeforeAFailedSync(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	f := newFaults(dir)
	s := open(t, dir, Options{FS: f, NoSync: true})
	appendAll(t, s, "s", event.Head{}, events[:1])
	f.set(failing("sync"))
	err := s.Append(t.Context(), "s", head(events[:1]), events[1:], true)
	wantErr(t, err, eventlog.ErrUnknownOutcome)
	f.set(nil)
	err = s.Append(t.Context(), "s", head(events[:1]), events[1:], true)
	wantErr(t, err, eventlog.ErrReadOnly)
}

func TestDeadlineWhileLocked(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, "s", event.Head{}, events[:1])
	held, err := Dir(dir).Open("s.jsonl", os.O_RDONLY)
	must(t, err)
	if ok, err := held.TryLock(true); !ok || err != nil {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err = s.Append(ctx, "s", head(events[:1]), events[1:], false)
	wantErr(t, err, context.DeadlineExceeded)

	waiting := make(chan error, 2)
	for range 2 { // one waits for the flock, the other for the first one's turn
		go func() { waiting <- s.Append(context.Background(), "s", head(events[:1]), events[1:], false) }()
	}
	wantSeqs(t, s, "s", eventlog.Span{}, 1)
	must(t, s.Close())
	wantErr(t, <-waiting, eventlog.ErrClosed)
	wantErr(t, <-waiting, eventlog.ErrClosed)
	must(t, held.Close())
}

func TestClosed(t *testing.T) {
	s := New(t.TempDir())
	must(t, s.Close())
	must(t, s.Close())
	events := sealed(t, "s", 1)
	wantErr(t, s.Append(t.Context(), "s", event.Head{}, events, false), eventlog.ErrClosed)
	_, err := read(t, s, "s", eventlog.Span{})
	wantErr(t, err, eventlog.ErrClosed)
	_, err = s.Version(t.Context(), "s")
	wantErr(t, err, eventlog.ErrClosed)
}

func TestUnlinkedWhileHeld(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, "s", event.Head{}, events)
	must(t, os.Remove(filepath.Join(dir, "s.jsonl")))
	err := s.Append(t.Context(), "s", head(events), []event.Event{seal(t, events, nil)}, false)
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || !conflict.Actual.IsZero() {
		t.Fatalf("got %v, want a conflict with an absent session", err)
	}
	appendAll(t, s, "s", event.Head{}, events)
	wantSeqs(t, s, "s", eventlog.Span{}, 1, 2)
}

// A replaced file is detected even if it still has another name.
func TestReplacedWhileHeldAndLinked(t *testing.T) {
	events := sealed(t, "s", 1, 1)
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, "s", event.Head{}, events[:1])
	path := filepath.Join(dir, "s.jsonl")
	must(t, os.Link(path, filepath.Join(dir, "backup")))
	must(t, os.Rename(write(t, dir, "fresh", content(events)), path))
	next := seal(t, events, nil)
	must(t, s.Append(t.Context(), "s", head(events), []event.Event{next}, false))
	wantSeqs(t, s, "s", eventlog.Span{}, 1, 2, 3)
}

// The store notices appends of other writers, even if the file size is unchanged.
func TestOtherWriters(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	events := sealed(t, "s", 1, 2, 1, 1)
	appendAll(t, a, "s", event.Head{}, events[:1])
	appendAll(t, b, "s", head(events[:1]), events[1:3])
	appendAll(t, a, "s", head(events[:3]), events[3:4])
	err := b.Append(t.Context(), "s", head(events[:3]), events[3:4], false)
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual != head(events[:4]) {
		t.Fatalf("got %v, want a conflict at %v", err, head(events[:4]))
	}
	appendAll(t, b, "s", head(events[:4]), events[4:])
	wantSeqs(t, a, "s", eventlog.Span{}, 1, 2, 3, 4, 5)

	other := sealed(t, "s", 1, 2, 1, 1) // same length, other ids
	must(t, os.WriteFile(filepath.Join(dir, "s.jsonl"), content(other), 0o600))
	err = b.Append(t.Context(), "s", head(events), []event.Event{seal(t, events, nil)}, false)
	if !errors.As(err, &conflict) || conflict.Actual != head(other) {
		t.Fatalf("got %v, want a conflict at %v", err, head(other))
	}
}

func TestManySessionsAndFewDescriptors(t *testing.T) {
	dir := t.TempDir()
	f := newFaults(dir)
	s := open(t, dir, Options{OpenFiles: 4, FS: f})
	events := make([][]event.Event, 20)
	var wg sync.WaitGroup
	for i := range events {
		events[i] = sealed(t, fmt.Sprint("s", i), ones(10)...)
	}
	for i := range events {
		wg.Go(func() {
			for n := range events[i] {
				if err := s.Append(t.Context(), fmt.Sprint("s", i), head(events[i][:n]), events[i][n:n+1], false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := s.cache.count.Load(); n > 4 {
		t.Errorf("%d open handles, want at most 4", n)
	}
	for i := range events {
		wantSeqs(t, s, fmt.Sprint("s", i), eventlog.Span{}, upTo(10)...)
	}
}

func TestThousandsOfSessions(t *testing.T) {
	n := testsize.Pick(500, 1000, 10_000)
	dir := t.TempDir()
	s := New(dir, Options{FS: newFaults(dir)})
	log := eventlog.Open(s)
	for i := range n {
		_, err := log.Append(t.Context(), fmt.Sprintf("session-%05d", i), eventlog.New(), note("hello"))
		must(t, err)
	}
	if n := s.cache.count.Load(); n > 256 {
		t.Errorf("%d open handles, want at most 256", n)
	}
	i := 0
	for info, err := range s.Sessions(t.Context()) {
		must(t, errors.Join(err, info.Err))
		if want := fmt.Sprintf("session-%05d", i); info.ID != want {
			t.Fatalf("listed %q, want %q", info.ID, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d sessions listed, want %d", i, n)
	}
	must(t, log.Close())
}

func TestReadOnlyCreatesNothing(t *testing.T) {
	events := sealed(t, "s", 1)
	missing := filepath.Join(t.TempDir(), "missing")
	dir := t.TempDir()
	write(t, dir, "s", append(content(events), "torn"...))
	for _, dir := range []string{missing, dir} {
		s := open(t, dir, Options{ReadOnly: true})
		wantErr(t, s.Append(t.Context(), "s", event.Head{}, events, false), eventlog.ErrReadOnly)
		_, _, err := s.PutBlob(t.Context(), bytes.NewReader(nil))
		wantErr(t, err, eventlog.ErrReadOnly)
		_, _, err = s.Lock(t.Context(), true)
		wantErr(t, err, eventlog.ErrReadOnly)
		_, unlock, err := s.Lock(t.Context(), false)
		must(t, err)
		unlock()
		for _, err := range s.Sessions(t.Context()) {
			must(t, err)
		}
		_, _ = read(t, s, "s", eventlog.Span{})
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	if got := fileNames(t, dir); got != "s.jsonl" {
		t.Errorf("the directory has %s", got)
	}
	wantSeqs(t, open(t, dir, Options{ReadOnly: true}), "s", eventlog.Span{}, 1)
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir)
	appendAll(t, s, "s", event.Head{}, sealed(t, "s", 1))
	for path, want := range map[string]os.FileMode{dir: os.ModeDir | 0o700, filepath.Join(dir, "s.jsonl"): 0o600} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestLargestAppend(t *testing.T) {
	log := eventlog.Open(new(recorder), eventlog.Options{SpillOver: -1})
	big := note(string(bytes.Repeat([]byte{'x'}, 3_900_000)))
	_, err := log.Append(t.Context(), "s", eventlog.Any(), note("a"), big, note("b"))
	must(t, err)
	events := log.Store().(*recorder).events
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, "s", event.Head{}, events)
	wantSeqs(t, s, "s", eventlog.Span{}, 1, 2, 3)
	wantSeqs(t, s, "s", eventlog.Span{Backward: true}, 3, 2, 1)
	wantSeqs(t, s, "s", eventlog.Span{From: 2}, 2, 3)
	for info, err := range s.Sessions(t.Context()) {
		must(t, errors.Join(err, info.Err))
		if info.Events() != 3 {
			t.Errorf("listed with %d events", info.Events())
		}
	}
	must(t, s.Close())
	file := content(events)
	torn := file[:len(file)-1]
	write(t, dir, "s", torn)
	recovered(t, open(t, dir), nil, torn)

	err = open(t, t.TempDir()).Append(t.Context(), "s", event.Head{}, append(events, events...), false)
	wantErr(t, err, event.ErrInvalidSize)
}

package sink_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/sink"
	"github.com/convlog/convlog/store/memory"
)

// sinkTest is a log in memory with a session "s" that spent 2 dollars and has a child.
type sinkTest struct {
	*garden.Garden
	sinks    *sink.Sinks
	trees    []string // the snapshots that the sink got: session, origin, reason
	accounts []sink.Accounts
	warned   []*sink.Error
}

func newSinkTest(t *testing.T) *sinkTest {
	x := &sinkTest{Garden: &garden.Garden{T: t, Log: eventlog.Open(memory.New())}}
	b := &books{Garden: x.Garden}
	b.spend("s", 2)
	b.spend("child", 1)
	x.Append("s", event.New(event.Child{State: event.ChildCompleted, ChildID: "c", ChildSessionID: "child"}))
	x.sinks = &sink.Sinks{
		Snapshot: func(_ context.Context, f *runlog.OpTreeFile) error {
			x.trees = append(x.trees, f.SessionID+" "+f.OriginID+" "+f.Reason)
			return nil
		},
		Account: func(_ context.Context, a sink.Accounts) error {
			x.accounts = append(x.accounts, a)
			return nil
		},
		Warn: func(w *sink.Error) { x.warned = append(x.warned, w) },
	}
	return x
}

// run is the sinks of a run of "s".
func (x *sinkTest) run() *sink.Run { return x.sinks.Run(x.Log, "s", "root") }

// same compares the warnings that were returned and given to Warn with what is expected.
func (x *sinkTest) same(returned []*sink.Error, want ...string) {
	x.T.Helper()
	var got []string
	for _, w := range returned {
		got = append(got, w.Error())
	}
	garden.Same(x.T, "warnings", want, got)
	garden.Same(x.T, "given to Warn", len(returned), len(x.warned))
	for i := range returned {
		if returned[i] != x.warned[i] {
			x.T.Fatalf("Warn got %v", x.warned[i])
		}
	}
	x.warned = nil
}

func TestSinksGetSnapshotsAndAccounts(t *testing.T) {
	x := newSinkTest(t)
	x.sinks.Folder = sink.OpTreeFolder(t.TempDir())
	x.sinks.Now = func() time.Time { return time.UnixMilli(1234) }
	run := x.run()
	x.same(run.ChildFinished(garden.Bg))
	x.same(run.ChildFinished(garden.Bg))
	x.same(run.Finish(garden.Bg))
	x.same(run.Finish(garden.Bg))
	x.same(run.ChildFinished(garden.Bg))
	garden.Same(t, "snapshots", []string{"s root subagent_finish", "s root subagent_finish", "s root final"}, x.trees)
	if len(x.accounts) != 1 || len(x.accounts[0].Entries) != 1 {
		t.Fatalf("accounts %+v", x.accounts)
	}
	a := x.accounts[0]
	if a.SessionID != "s" || a.OriginID != "root" || a.Timestamp != 1234 || a.Entries[0].Cost != 2_000_000_000 {
		t.Errorf("accounts %+v", a)
	}
	if _, err := x.sinks.Folder.Read("s"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a callback and a file: %v", err)
	}
	// The next run has no new costs.
	x.same(x.run().Finish(garden.Bg))
	garden.Same(t, "accounts", 1, len(x.accounts))
}

func TestSinksWriteFiles(t *testing.T) {
	x := newSinkTest(t)
	ledger, err := sink.OpenLedger(garden.Bg, filepath.Join(t.TempDir(), "spent"))
	x.Allow(err)
	defer ledger.Close()
	x.sinks = &sink.Sinks{Folder: sink.OpTreeFolder(filepath.Join(t.TempDir(), "a", "b")), Ledger: ledger}
	run := x.sinks.Run(x.Log, "s", "")
	for _, want := range []string{"subagent_finish", "final"} {
		warnings := run.ChildFinished
		if want == "final" {
			warnings = run.Finish
		}
		x.same(warnings(garden.Bg))
		f, err := x.sinks.Folder.Read("s")
		x.Allow(err)
		children := f.Snapshot.OpTree.Turns[0].Ops
		if f.Reason != want || f.OriginID != "s" || children[len(children)-1].ChildSessions[0].ID != "child" {
			t.Errorf("op tree %+v", f)
		}
	}
	e, err := x.Log.Event(garden.Bg, "s", x.Head("s").Seq)
	x.Allow(err)
	if flush, ok, err := event.Decode[event.AccountingFlush](&e); !ok || err != nil || flush.Ledger != "spent" || flush.Total != 2_000_000_000 {
		t.Errorf("event %v: %+v, %v", e.Type, flush, err)
	}
	if info, err := os.Stat(x.sinks.Folder.Path("s")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
}

func TestNoSinks(t *testing.T) {
	x := newSinkTest(t)
	head := x.Head("s")
	for _, s := range []*sink.Sinks{nil, {}} {
		run := s.Run(x.Log, "s", "")
		x.same(append(run.ChildFinished(garden.Bg), run.Finish(garden.Bg)...))
	}
	garden.Same(t, "head", head, x.Head("s"))
}

// A sink that fails in any way is a warning, and the other sink gets its data.
func TestSinksThatFail(t *testing.T) {
	for name, fail := range map[string]func() error{
		"failed":     func() error { return errRefused },
		"panic: bad": func() error { panic("bad") },
		"the sink ended its goroutine": func() error {
			runtime.Goexit()
			return nil
		},
	} {
		cause := strings.Replace(name, "failed", "refused", 1)
		t.Run(name, func(t *testing.T) {
			x := newSinkTest(t)
			x.sinks.Snapshot = func(context.Context, *runlog.OpTreeFile) error { return fail() }
			run := x.run()
			x.same(run.ChildFinished(garden.Bg), `session "s": snapshot sink (subagent_finish): `+cause)
			x.same(run.Finish(garden.Bg), `session "s": snapshot sink (final): `+cause)
			garden.Same(t, "accounts", 1, len(x.accounts))

			x = newSinkTest(t)
			x.sinks.Account = func(context.Context, sink.Accounts) error { return fail() }
			head := x.Head("s")
			w := x.run().Finish(garden.Bg)
			if len(w) != 1 || w[0].Sink != "account" || w[0].Session != "s" || !strings.HasSuffix(w[0].Error(), cause) {
				t.Errorf("warnings %v", w)
			}
			garden.Same(t, "snapshots", []string{"s root final"}, x.trees)
			garden.Same(t, "head", head, x.Head("s"))
		})
	}
}

// A session that cannot be read is a warning too, and so is a Warn that panics.
func TestSinksOfAMissingSession(t *testing.T) {
	x := newSinkTest(t)
	x.sinks.Warn = func(*sink.Error) { panic("warned") }
	w := x.sinks.Run(x.Log, "none", "").Finish(garden.Bg)
	if len(w) != 2 || !errors.Is(w[0], eventlog.ErrNotFound) || !errors.Is(w[1], eventlog.ErrNotFound) {
		t.Errorf("warnings %v", w)
	}
}

// An aborted session has a context that ended.
func TestFinishAfterTheContextEnded(t *testing.T) {
	x := newSinkTest(t)
	ctx, cancel := context.WithCancel(garden.Bg)
	cancel()
	x.same(x.run().Finish(ctx))
	garden.Same(t, "snapshots", []string{"s root final"}, x.trees)
	garden.Same(t, "accounts", 1, len(x.accounts))
}

// A sink that blocks is given up after the timeout, and called again once it has
// returned. Meanwhile no goroutines pile up.
func TestSinksThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSinkTest(t)
		release, calls := make(chan struct{}), 0
		x.sinks.Timeout = time.Hour
		x.sinks.Snapshot = func(context.Context, *runlog.OpTreeFile) error {
			calls++
			<-release
			return nil
		}
		begun := time.Now()
		waited := func(want time.Duration) {
			t.Helper()
			garden.Same(t, "waited", want, time.Since(begun))
			begun = time.Now()
		}
		run := x.run()
		x.same(run.ChildFinished(garden.Bg), `session "s": snapshot sink (subagent_finish): the sink did not return in time`)
		waited(time.Hour)
		before := runtime.NumGoroutine()
		for range 100 {
			x.same(run.ChildFinished(garden.Bg), `session "s": snapshot sink (subagent_finish): the sink is blocked by an earlier call`)
		}
		waited(0)
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines became %d", before, n)
		}
		x.same(run.Finish(garden.Bg), `session "s": snapshot sink (final): the sink is blocked by an earlier call`)
		waited(time.Hour)
		garden.Same(t, "calls", 1, calls)
		garden.Same(t, "accounts", 1, len(x.accounts))

		time.AfterFunc(time.Minute, func() { close(release) })
		x.same(x.run().Finish(garden.Bg)) // it waits for the blocked call
		waited(time.Minute)
		garden.Same(t, "calls", 2, calls)
		x.Allow(x.Log.Close())
	})
}

// A sink that heeds its context is called again.
func TestSinksThatEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSinkTest(t)
		calls := 0
		x.sinks.Account = func(ctx context.Context, _ sink.Accounts) error {
			calls++
			<-ctx.Done()
			return ctx.Err()
		}
		for range 3 {
			w := x.run().Finish(garden.Bg)
			if len(w) != 1 || !errors.Is(w[0], context.DeadlineExceeded) || !strings.Contains(w[0].Error(), "the sink did not return in time") {
				t.Errorf("warnings %v", w)
			}
			synctest.Wait()
		}
		garden.Same(t, "calls", 3, calls)
		x.Allow(x.Log.Close())
	})
}

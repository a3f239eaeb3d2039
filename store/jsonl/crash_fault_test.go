package jsonl_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/internal/testsize"
)

// failure is a way in which one operation fails, and others with it, until the action
// has failed.
type failure struct {
	name string
	// kinds lists the operations that can fail this way; empty means all.
	kinds string
	// at is the fault of the operation, later the fault of the operations after it.
	at    func(op crashfs.Op) crashfs.Fault
	later func(op crashfs.Op) crashfs.Fault
	// losesUnsynced means that the disk drops unsynced data and reports it only once:
	// in a new process syncs succeed. A crash loses appends that the old process could
	// neither sync nor undo.
	losesUnsynced bool
	// relaxed means that only appends acknowledged without a sync can be lost.
	relaxed bool
}

func always(f crashfs.Fault) func(crashfs.Op) crashfs.Fault {
	return func(crashfs.Op) crashfs.Fault { return f }
}

// failing fails operations of the given kinds.
func failing(kinds string) func(crashfs.Op) crashfs.Fault {
	return func(op crashfs.Op) crashfs.Fault {
		if strings.Contains(kinds, op.Kind) {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	}
}

// short stores a part of a write.
func short(part func(bytes int) int) func(crashfs.Op) crashfs.Fault {
	return func(op crashfs.Op) crashfs.Fault {
		return crashfs.Fault{Err: syscall.ENOSPC, Bytes: min(max(part(op.Bytes), 0), op.Bytes)}
	}
}

var (
	half      = short(func(n int) int { return n / 2 })
	none      = always(crashfs.Fault{})
	lostPages = always(crashfs.Fault{Err: syscall.EIO, Lost: true})
)

var failures = []failure{
	{name: "fails", at: always(crashfs.Fault{Err: syscall.EIO}), later: none},
	{name: "is done and fails", at: always(crashfs.Fault{Err: syscall.EIO, Done: true}), later: none},
	{name: "the process is killed", at: always(crashfs.Fault{Kill: true}), later: none},
	{name: "the disk is full", kinds: "write create mkdir makeroot", at: crashfs.Full, later: crashfs.Full},
	{name: "one byte is written", kinds: "write", at: short(func(int) int { return 1 }), later: none},
	{name: "one byte is missing", kinds: "write", at: short(func(n int) int { return n - 1 }), later: none},
	{name: "a short write, and no truncation", kinds: "write", at: half, later: failing("truncate")},
	{name: "a short write, and no sync", kinds: "write", at: half, later: failing("sync")},
	{name: "all is written, and no truncation", kinds: "write", at: short(func(n int) int { return n }), later: failing("truncate")},
	{name: "a sync loses pages", kinds: "sync", at: lostPages, later: none, relaxed: true},
	{name: "every sync fails", kinds: "sync", at: failing("sync"), later: failing("sync")},
	{name: "a sync fails, and truncations", kinds: "sync", at: failing("sync"), later: failing("truncate")},
	{name: "a sync loses pages, and truncations fail", kinds: "sync", at: lostPages, later: failing("truncate"), losesUnsynced: true},
	{name: "a sync of names fails, and truncations", kinds: "syncdir", at: failing("syncdir"), later: failing("truncate")},
}

func (f *failure) canFail(op crashfs.Op) bool {
	return f.kinds == "" || strings.Contains(" "+f.kinds+" ", " "+op.Kind+" ")
}

// faultSteps is the number of actions in the workload of TestFaults.
const faultSteps = 14

// Each operation of a workload fails in each possible way. An append that failed with a
// plain error leaves nothing, even after a crash. An append with an unknown outcome is
// not readable in its process. A retry stores it once. No other event is lost.
func TestFaults(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		runs := 0
		workloads(t, 1, func(t *testing.T, seed uint64) {
			for i, f := range failures {
				for n, op := range operations(t, seed, noSync) {
					if !f.canFail(op) || *crashSeeds == 0 && (n+i)%testsize.Pick(100, 25, 5) != 0 {
						continue
					}
					if err := fail(t, seed, noSync, &f, op.N); err != nil {
						t.Fatalf("workload %d, %s, operation %d, %s %s: %s: %v", seed, policyName(noSync), op.N, op.Kind, op.Name, f.name, err)
					}
					runs++
				}
			}
		})
		t.Logf("%s: %d failures", policyName(noSync), runs)
	}
}

// operations returns the operations of the workload when nothing fails.
func operations(t *testing.T, seed uint64, noSync bool) (ops []crashfs.Op) {
	w := newSimulation(t, seed, noSync, 2)
	w.disk.OnOp(func(op crashfs.Op, _ func() *crashfs.Disk) { ops = append(ops, op) })
	if err := w.failing(0); err != nil {
		t.Fatal(err)
	}
	return ops
}

// fail runs the workload with a failure at its nth operation.
func fail(t *testing.T, seed uint64, noSync bool, f *failure, n int) error {
	w := newSimulation(t, seed, noSync, 2)
	w.disk.SetFault(func(op crashfs.Op) crashfs.Fault {
		switch {
		case op.N < n:
			return crashfs.Fault{}
		case op.N == n:
			return f.at(op)
		}
		return f.later(op)
	})
	if err := w.failing(n); err != nil {
		return err
	}
	w.disk.SetFault(nil)
	return w.checkEnd(f)
}

// failing runs the actions of the workload; their nth operation fails.
func (w *simulation) failing(n int) error {
	ctx := w.t.Context()
	for range faultSteps {
		a := w.next()
		w.model.begin(a)
		i := w.IntN(len(w.writers))
		err := a.run(ctx, w.writers[i].log)
		if err != nil {
			err = w.afterFailure(a, i, err)
		}
		if err == nil {
			err = w.model.finish(ctx, w.writers[i].log, a, w.isDurable(a))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.what, err)
		}
		if w.disk.Ops() >= n {
			w.disk.SetFault(nil)
		}
	}
	return nil
}

// afterFailure checks the store after a failed action, and retries the action.
func (w *simulation) afterFailure(a *action, i int, failed error) error {
	if errors.Is(failed, eventlog.ErrCorrupt) || errors.Is(failed, eventlog.ErrConflict) {
		return failed
	}
	if a.atomic {
		open := errors.Is(failed, eventlog.ErrUnknownOutcome) || errors.Is(failed, crashfs.ErrKilled)
		if err := w.checkUndone(a, i, open); err != nil {
			return fmt.Errorf("after %w: %w", failed, err)
		}
	}
	w.disk.SetFault(nil)
	err := a.run(w.t.Context(), w.writers[i].log)
	if err == nil {
		return nil
	}
	if !errors.Is(err, eventlog.ErrReadOnly) && !errors.Is(failed, crashfs.ErrKilled) {
		return fmt.Errorf("again after %w: %w", failed, err)
	}
	w.writers[i].process.Kill()
	w.writers[i] = startWriter(w.disk, w.noSync)
	if err := a.run(w.t.Context(), w.writers[i].log); err != nil {
		return fmt.Errorf("in a new process after %w: %w", failed, err)
	}
	return nil
}

// checkUndone checks that a failed append is not readable in its own process. If its
// outcome is known, it is not readable in another process or after a crash either.
func (w *simulation) checkUndone(a *action, i int, open bool) error {
	without := w.model.clone()
	without.forget(a)
	ctx := w.t.Context()
	if err := without.compare(ctx, w.writers[i].log, false); err != nil && !errors.Is(err, crashfs.ErrKilled) {
		return fmt.Errorf("in the same process: %w", err)
	}
	if open {
		return nil
	}
	if err := without.compare(ctx, startWriter(w.disk.Clone(), w.noSync).log, false); err != nil {
		return fmt.Errorf("in another process: %w", err)
	}
	for range 3 {
		if err := without.compare(ctx, startWriter(w.disk.Crash(w.Uint64()), w.noSync).log, w.noSync); err != nil {
			return fmt.Errorf("after a crash: %w", err)
		}
	}
	return nil
}

// checkEnd checks all events at the end, and after a crash.
func (w *simulation) checkEnd(f *failure) error {
	ctx := w.t.Context()
	last := startWriter(w.disk, w.noSync)
	if err := w.resume(ctx, last.log, w.model, append(w.model.sessions(), "new")); err != nil {
		return err
	}
	if err := errors.Join(w.model.compare(ctx, last.log, false), verifyClean(ctx, last.log, w.model), w.model.compareBytes(w.disk), checkSavedTails(w.disk)); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if f.losesUnsynced || f.relaxed && w.noSync {
		return nil
	}
	err := w.model.compare(ctx, startWriter(w.disk.Crash(w.Uint64()), w.noSync).log, w.noSync)
	if err != nil {
		return fmt.Errorf("after a crash at the end: %w", err)
	}
	return nil
}

// Command diskfull fills a small file system with a log, frees some of it and appends
// again, repeatedly. It checks that every acknowledged event is stored, that every
// failed append left nothing and returned a clear error, and that appends succeed when
// there is room again.
//
//	unshare -rm sh -c 'mount -t tmpfs -o size=16m none /mnt && diskfull /mnt'
//
// The file system needs 12 MiB or more, because a sqlite store needs room for its
// write-ahead log twice. The exit code is 1 if a check fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sysfile"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/verify"
)

func main() {
	cycles := flag.Int("cycles", 20, "how many stores to fill, of each kind")
	seed := flag.Uint64("seed", 1, "seed of the event sizes")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: diskfull [flags] DIR")
		os.Exit(2)
	}
	for kind, open := range map[string]func(dir string) eventlog.Store{
		"jsonl":  func(dir string) eventlog.Store { return jsonl.New(dir) },
		"sqlite": func(dir string) eventlog.Store { return sqlite.New(filepath.Join(dir, "s.db")) },
	} {
		var total tally
		for n := range *cycles {
			if err := cycle(flag.Arg(0), open, rand.New(rand.NewPCG(*seed, uint64(n))), &total); err != nil {
				fmt.Fprintf(os.Stderr, "%s, cycle %d: %v\n", kind, n, err)
				os.Exit(1)
			}
		}
		fmt.Printf("%s: %d cycles, %d appends acknowledged, %d refused, none lost\n", kind, *cycles, total.stored, total.refused)
	}
}

type tally struct{ stored, refused int }

// filler fills one store.
type filler struct {
	*tally
	log    *eventlog.Log
	random *rand.Rand
	acked  map[string]bool
	failed []event.Event // events to retry
}

// cycle fills a store next to a file that takes half of the disk, removes that file,
// and appends again.
func cycle(disk string, open func(dir string) eventlog.Store, random *rand.Rand, total *tally) error {
	dir, ballast := filepath.Join(disk, "store"), filepath.Join(disk, "ballast")
	defer os.RemoveAll(dir)
	defer os.Remove(ballast)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	free, err := sysfile.Room(disk)
	if err != nil {
		return err
	}
	if err := os.WriteFile(ballast, make([]byte, free/2), 0o600); err != nil {
		return err
	}
	f := &filler{tally: total, log: eventlog.Open(open(dir)), random: random, acked: map[string]bool{}}
	if err := f.fill(); err != nil {
		return err
	}
	if err := f.checkKilled(dir, open); err != nil {
		return fmt.Errorf("killed on a full disk: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	return errors.Join(f.retry(), f.check(f.log), f.log.Close())
}

// fill appends until ten appends have failed.
func (f *filler) fill() error {
	for len(f.failed) < 10 {
		if err := f.append(f.event()); err != nil {
			return err
		}
	}
	return nil
}

// checkKilled checks the files that a process would leave if it were killed now: a copy
// without the shared memory file.
func (f *filler) checkKilled(dir string, open func(dir string) eventlog.Store) error {
	temp, err := os.MkdirTemp("", "diskfull-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	left := filepath.Join(temp, "store")
	// Copy in another process: copying in this one would release its locks.
	if out, err := exec.Command("cp", "-r", dir, left).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	if err := os.Remove(filepath.Join(left, "s.db-shm")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	log := eventlog.Open(open(left))
	return errors.Join(f.check(log), log.Close())
}

// retry appends the failed events, and more, now that there is room.
func (f *filler) retry() error {
	again := append(f.failed, f.event(), f.event())
	f.failed = nil
	for _, e := range again {
		if err := f.append(e); err != nil {
			return err
		}
	}
	if len(f.failed) > 0 {
		return fmt.Errorf("%d of %d appends failed although there was room again", len(f.failed), len(again))
	}
	return nil
}

// event returns an event with data of random size; the largest becomes a blob.
func (f *filler) event() event.Event {
	size := []int{10, 300, 3000, 20_000, 300_000}[f.random.IntN(5)]
	return event.Event{ID: event.NewID(), Type: "test:note", Data: fmt.Appendf(nil, "%q", strings.Repeat("x", size))}
}

func (f *filler) append(e event.Event) error {
	_, err := f.log.Append(context.Background(), "a", eventlog.Any(), e)
	switch {
	case err == nil:
		f.stored++
		f.acked[e.ID.String()] = true
		return nil
	case !errors.Is(err, syscall.ENOSPC), errors.Is(err, eventlog.ErrUnknownOutcome), strings.Contains(err.Error(), "\n"):
		return fmt.Errorf("a full disk gives the error %q", err)
	}
	f.refused++
	f.failed = append(f.failed, e)
	return nil
}

// check checks that exactly the acknowledged events are stored.
func (f *filler) check(log *eventlog.Log) error {
	found := 0
	for e, err := range log.Read(context.Background(), "a", eventlog.All()) {
		if err != nil {
			return err
		}
		if !f.acked[e.ID.String()] {
			return fmt.Errorf("event %d was refused but is stored", e.Seq)
		}
		found++
	}
	if found != len(f.acked) {
		return fmt.Errorf("%d events were acknowledged, %d are stored", len(f.acked), found)
	}
	report, err := verify.Session(context.Background(), log, "a")
	if err == nil && len(report.Defects) > 0 {
		err = errors.New(report.Defects[0].String())
	}
	return err
}

// Command diskfull fills a small file system with a log, frees some of it and appends
// again, repeatedly. On the full disk it also redacts an event, removes a session and collects
// blobs. It checks that every acknowledged event is stored, that everything that failed left
// nothing and returned a clear error, and that all of it succeeds when there is room again.
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
	"github.com/convlog/convlog/upkeep/erase"
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
		fmt.Printf("%s: %d cycles, %d appends acknowledged, %d refused, none lost; %d of %d erasures refused, none half done\n",
			kind, *cycles, total.stored, total.refused, total.kept, total.kept+total.erased)
	}
}

type tally struct {
	stored, refused int // appends
	erased, kept    int // erasures that were done, and refused
}

// filler fills one store.
type filler struct {
	*tally
	log               *eventlog.Log
	random            *rand.Rand
	acked             map[string]bool
	failed            []event.Event // events to retry
	redacted, removed bool          // an event of session a, and session b
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
	if err := f.begin(); err != nil {
		return err
	}
	if err := f.fill(); err != nil {
		return err
	}
	if err := f.erase(); err != nil {
		return err
	}
	if err := f.checkKilled(dir, open); err != nil {
		return fmt.Errorf("killed on a full disk: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if err := errors.Join(f.retry(), f.eraseAll()); err != nil {
		return err
	}
	return errors.Join(f.check(f.log), f.log.Close())
}

// smallEvents is the number of events of session b, and of the first events of session a.
const smallEvents = 5

// begin appends small events to both sessions.
func (f *filler) begin() error {
	for range smallEvents {
		e := event.UserMessage(secret)
		if err := f.append(e); err != nil {
			return err
		}
		if _, err := f.log.Append(context.Background(), "b", eventlog.Any(), event.UserMessage("hello")); err != nil {
			return err
		}
	}
	return nil
}

const secret = "a secret to erase"

// erase redacts an event of session a, removes session b, and collects blobs, unless that was
// done before. Each may be refused because the disk is full.
func (f *filler) erase() error {
	ctx := context.Background()
	attempt := func(done *bool, do func() error) error {
		if *done {
			return nil
		}
		switch err := do(); {
		case err == nil:
			*done = true
			f.erased++
		case !isClear(err):
			return fmt.Errorf("an erasure on a full disk gives the error %q", err)
		default:
			f.kept++
		}
		return nil
	}
	collected := false
	return errors.Join(
		attempt(&f.redacted, func() error {
			_, err := erase.Redact(ctx, f.log, "a", []int64{2}, erase.RedactOptions{Reason: "test"})
			return err
		}),
		attempt(&f.removed, func() error { return erase.Remove(ctx, f.log, "b") }),
		attempt(&collected, func() error {
			_, err := erase.Collect(ctx, f.log)
			return err
		}),
		f.check(f.log))
}

// eraseAll is erase with room again.
func (f *filler) eraseAll() error {
	err := f.erase()
	if err == nil && !(f.redacted && f.removed) {
		err = errors.New("an erasure is refused although there is room again")
	}
	return err
}

// isClear reports whether an error says in a line that the disk is full, and nothing is open.
func isClear(err error) bool {
	return errors.Is(err, syscall.ENOSPC) && !errors.Is(err, eventlog.ErrUnknownOutcome) && !strings.Contains(err.Error(), "\n")
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
	if e.ID.IsZero() {
		e.ID = event.NewID()
	}
	_, err := f.log.Append(context.Background(), "a", eventlog.Any(), e)
	switch {
	case err == nil:
		f.stored++
		f.acked[e.ID.String()] = true
		return nil
	case !isClear(err):
		return fmt.Errorf("a full disk gives the error %q", err)
	}
	f.refused++
	f.failed = append(f.failed, e)
	return nil
}

// check checks that exactly the acknowledged events are stored, that the redacted event is
// erased or whole, and that session b is there or not.
func (f *filler) check(log *eventlog.Log) error {
	found := 0
	for e, err := range log.Read(context.Background(), "a", eventlog.All()) {
		switch {
		case err != nil:
			return err
		case e.Type.Name() == event.Redacted:
			continue
		case !f.acked[e.ID.String()]:
			return fmt.Errorf("event %d was refused but is stored", e.Seq)
		case e.Redacted() != (f.redacted && e.Seq == 2):
			return fmt.Errorf("event %d is redacted: %v", e.Seq, e.Redacted())
		}
		found++
	}
	if found != len(f.acked) {
		return fmt.Errorf("%d events were acknowledged, %d are stored", len(f.acked), found)
	}
	head, err := log.Head(context.Background(), "b")
	if removed := errors.Is(err, eventlog.ErrNotFound); removed != f.removed || !removed && head.Seq != smallEvents {
		return fmt.Errorf("session b has %v, %v; it was removed: %v", head, err, f.removed)
	}
	for _, session := range []string{"a", "b"} {
		report, err := verify.Session(context.Background(), log, session)
		if f.removed && session == "b" {
			continue
		}
		if err == nil && len(report.Defects) > 0 {
			err = errors.New(report.Defects[0].String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

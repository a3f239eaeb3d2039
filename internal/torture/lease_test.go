//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
)

// fewDescriptors is the limit of open files of a process with many leases.
const fewDescriptors = 256

// leaseJob takes leases, starts a program that outlives it, and waits. It reports the
// number of leases and the process id of the program.
func leaseJob(ctx context.Context, b backend, j job) error {
	limit := syscall.Rlimit{Cur: fewDescriptors, Max: fewDescriptors}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	store := b.open(j.Dir)
	leaser, _ := eventlog.As[eventlog.Leaser](store)
	for n := range j.To {
		if _, err := leaser.Lease(ctx, leaseName(n)); err != nil {
			return err
		}
	}
	heir := exec.Command("sleep", "600")
	if err := heir.Start(); err != nil {
		return err
	}
	report("leased", j.To, int64(heir.Process.Pid))
	<-ctx.Done()
	return store.Close()
}

func leaseName(n int) string { return fmt.Sprintf("session %d\x00epoch 1", n) }

// A process with a limit of 256 descriptors holds more leases, 10,000 in the long form. A
// stopped process keeps them. When it is killed they are free, although a program that it
// started lives on: at once, or on a server when its connection has been gone for a second.
func TestLeases(t *testing.T) {
	t.Parallel()
	leases := testsize.Pick(300, 1_000, 10_000)
	if runtime.GOOS != "linux" {
		leases = 200 // other systems need a descriptor for each
	}
	onEachAndPostgres(t, func(t *testing.T, s *fixture) {
		ready := make(chan int, 1)
		c := s.start(job{Do: "lease", To: leases}, func(line string) {
			var count, heir int
			if _, err := fmt.Sscanf(line, "leased %d %d", &count, &heir); err == nil {
				ready <- heir
			}
		})
		select {
		case heir := <-ready:
			defer func() { s.must(syscall.Kill(heir, syscall.SIGKILL)) }()
		case <-c.silent:
			s.Fatalf("the child ended: %s", c.errs)
		}
		log, reader := s.log(), eventlog.Open(s.backend.readOnly(s.dir))
		defer reader.Close()
		s.checkLeases(log.Store(), leases, true)
		s.checkLeases(reader.Store(), leases, true)
		s.must(c.cmd.Process.Signal(syscall.SIGSTOP))
		c.waitStopped()
		s.checkLeases(log.Store(), leases, true)
		s.must(c.kill())
		if s.backend.lease > 0 {
			s.waitUntilFree(reader.Store()) // the server has to notice that the connection is gone
		}
		s.checkLeases(reader.Store(), leases, false)
		s.checkLeases(log.Store(), leases, false)
	})
}

// waitUntilFree waits until no process holds the first lease.
func (s *fixture) waitUntilFree(store eventlog.Store) {
	s.Helper()
	leaser, _ := eventlog.As[eventlog.Leaser](store)
	for held := true; held; time.Sleep(10 * time.Millisecond) {
		var err error
		held, err = leaser.Leased(s.ctx, leaseName(0))
		s.must(err)
	}
}

// checkLeases checks that another process holds the leases, or that all are free.
func (s *fixture) checkLeases(store eventlog.Store, leases int, held bool) {
	s.Helper()
	leaser, _ := eventlog.As[eventlog.Leaser](store)
	for n := 0; n < leases; n += 1 + leases/100 {
		got, err := leaser.Leased(s.ctx, leaseName(n))
		s.must(err)
		if got != held {
			s.Fatalf("lease %d: leased is %v, want %v", n, got, held)
		}
		lease, err := leaser.Lease(s.ctx, leaseName(n))
		switch {
		case errors.Is(err, eventlog.ErrReadOnly):
		case held:
			s.wantErr(eventlog.ErrLeased, err)
		default:
			s.must(err)
			s.must(lease.Release())
		}
	}
}

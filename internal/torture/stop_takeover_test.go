//go:build unix

package torture

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// A process is stopped while it has the lock of a session that a runner claimed. A take-over
// ends with its context, and says whose claim it wanted and that a lock is held. It succeeds
// when the process continues or is killed.
func TestATakeOverOfALockedSession(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		for _, place := range stops {
			if place.backend != b.name || b.name == "jsonl" && place.how != "between two lines" {
				continue
			}
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, killed %v", b.name, place.how, killed), func(t *testing.T) {
					parallelUnlessLong(t)
					newFixture(t, b).takeOverLocked(place, killed)
				})
			}
		}
	}
}

func (s *fixture) takeOverLocked(place stopPoint, killed bool) {
	s.Helper()
	l := s.log()
	claim := event.New(event.RunClaim{Epoch: 1, Runner: "host/4711", Lease: "run:" + heldSession + ":1"})
	_, err := l.Append(s.ctx, heldSession, eventlog.New(), claim, plainNote())
	s.must(err)
	c := s.start(job{Do: "hold", How: place.how}, func(string) {})
	c.waitStopped()
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	_, err = flow.TakeOver(ctx, l, heldSession, "ada")
	cancel()
	s.wantErr(context.DeadlineExceeded, err)
	for _, word := range []string{fmt.Sprintf("%q", heldSession), `runner "host/4711"`, "lock"} {
		if err != nil && !strings.Contains(err.Error(), word) {
			s.Errorf("the error does not say %s: %v", word, err)
		}
	}
	if killed {
		s.must(c.kill())
	} else {
		s.must(c.cmd.Process.Signal(syscall.SIGCONT))
		s.must(c.finish())
	}
	_, err = flow.TakeOver(s.ctx, l, heldSession, "ada")
	s.must(err)
}

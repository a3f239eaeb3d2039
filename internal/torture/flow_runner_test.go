//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// The ways in which a process runs the agent of gateAgent.
const (
	byHolding    = "hold"    // its effect ends when the gate opens
	bySucceeding = "succeed" // it starts again and again until it gets the session
)

// gateAgent is an agent whose turn is two effects. If it has levels of children below, the
// first effect runs a child.
func (s *script) gateAgent(log *eventlog.Log, levels int, effect func() error) *flow.Agent[tally] {
	return &flow.Agent[tally]{Name: "script", Log: log, Turn: func(ctx context.Context, t *flow.Turn[tally]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "gate"}, func(ctx context.Context) (int, error) {
			s.work(ctx, event.EffectIdempotent)
			if levels == 0 {
				return 1, effect()
			}
			out, err := flow.RunChild(ctx, s.gateAgent(nil, levels-1, effect), t.Input(), flow.ChildOptions{})
			return out.Custom.Turns, err
		})
		if err != nil {
			return err
		}
		_, err = flow.Do(ctx, t, flow.Effect{Name: "after", Class: event.EffectReconcile}, func(ctx context.Context) (int, error) {
			s.work(ctx, event.EffectReconcile)
			return 1, nil
		})
		if err != nil {
			return err
		}
		return t.Update(func(c *tally) error { c.Turns++; return nil })
	}}
}

func gateIn(dir string) string { return filepath.Join(dir, "gate") }

// runnerJob runs a session, or waits until it gets it.
func runnerJob(ctx context.Context, b backend, j job) error {
	log := b.log(j.Dir)
	defer log.Close()
	s, err := openScript(j.Dir, j.Seed, j.Levels)
	if err != nil {
		return err
	}
	if j.How == bySucceeding {
		return succeed(ctx, s.gateAgent(log, j.Levels, func() error { return nil }))
	}
	a := s.gateAgent(log, j.Levels, func() error {
		fmt.Println("runs")
		for ctx.Err() == nil {
			if _, err := os.Stat(gateIn(j.Dir)); err == nil {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	})
	_, err = a.Run(ctx, agentSession, inputOf(0))
	if !errors.Is(err, flow.ErrOvertaken) {
		return fmt.Errorf("got error %v, want %v", err, flow.ErrOvertaken)
	}
	fmt.Println("overtaken")
	return nil
}

// succeed starts until no other runner has the session, and ends its turn.
func succeed(ctx context.Context, a *flow.Agent[tally]) error {
	for refused := false; ctx.Err() == nil; {
		h, err := a.Resume(ctx, flow.Ref{Session: agentSession})
		if errors.Is(err, flow.ErrAlreadyRunning) {
			if !refused {
				fmt.Println("refused")
			}
			refused = true
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println("took")
		_, err = h.Wait(ctx)
		return err
	}
	return ctx.Err()
}

// lines starts a child and returns its lines.
func (s *fixture) lines(j job) (*child, <-chan string) {
	s.Helper()
	heard := make(chan string, 16)
	return s.start(j, func(line string) { heard <- line }), heard
}

// hear waits for a line of a child.
func (s *fixture) hear(c *child, heard <-chan string, want string) {
	s.Helper()
	select {
	case got := <-heard:
		if got != want {
			s.Fatalf("the child says %q, want %q", got, want)
		}
	case <-c.silent:
		if len(heard) > 0 {
			s.hear(c, heard, want)
			return
		}
		s.Fatalf("the child ended: %s", c.errs)
	}
}

// A second process cannot run a session until the first one is killed. Then it continues
// the turn.
func TestSecondRunner(t *testing.T) {
	t.Parallel()
	onEachAndPostgres(t, func(t *testing.T, s *fixture) {
		first, said := s.lines(job{Do: "runner", How: byHolding})
		s.hear(first, said, "runs")
		second, heard := s.lines(job{Do: "runner", How: bySucceeding})
		s.hear(second, heard, "refused")
		killed := time.Now()
		s.must(first.kill())
		s.hear(second, heard, "took")
		t.Logf("taken over %v after the kill", time.Since(killed))
		s.must(second.finish())
		s.checkGate(s.log())
	})
}

// A stopped runner is overtaken, and so are the runners of its children. When they continue,
// they cannot append: each effect has one result, and that is the result of the other
// process.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	for _, levels := range []int{0, 2} {
		t.Run(fmt.Sprintf("levels=%d", levels), func(t *testing.T) {
			onEachAndPostgres(t, func(t *testing.T, s *fixture) {
				s.levels = levels
				s.overtake()
			})
		})
	}
}

func (s *fixture) overtake() {
	s.Helper()
	c, said := s.lines(job{Do: "runner", How: byHolding})
	s.hear(c, said, "runs")
	s.must(c.cmd.Process.Signal(syscall.SIGSTOP))
	c.waitStopped()
	log := s.log()
	own, err := openScript(s.dir, s.seed, s.levels)
	s.must(err)
	a := own.gateAgent(log, s.levels, func() error { return nil })
	_, err = resume(s.ctx, a, agentSession)
	s.wantErr(flow.ErrAlreadyRunning, err)
	_, err = flow.TakeOver(s.ctx, log, agentSession, "a person")
	s.must(err)
	_, err = resume(s.ctx, a, agentSession)
	s.must(err)
	before := s.heads(log)
	s.must(os.WriteFile(gateIn(s.dir), nil, 0o600))
	s.must(c.cmd.Process.Signal(syscall.SIGCONT))
	s.hear(c, said, "overtaken")
	s.must(c.finish())
	if after := s.heads(log); !maps.Equal(before, after) || len(after) != s.levels+1 {
		s.Errorf("the heads moved from %v to %v", before, after)
	}
	s.checkGate(log)
}

// heads are the heads of all sessions.
func (s *fixture) heads(log *eventlog.Log) map[string]event.Head {
	s.Helper()
	sessions, err := sessionsOf(s.ctx, log)
	s.must(err)
	heads := map[string]event.Head{}
	for _, session := range sessions {
		heads[session], err = log.Head(s.ctx, session)
		s.must(err)
	}
	return heads
}

// checkGate checks that the turn of each session ended once. Its first effect ran in two
// processes, its second one in one.
func (s *fixture) checkGate(log *eventlog.Log) {
	s.Helper()
	sessions, err := checkFamily(s.ctx, log)
	s.must(err)
	d, err := readDiary(s.dir)
	s.must(err)
	s.must(d.check(s.ctx, log))
	if len(d.executions) != 3*sessions || len(d.class) != 2*sessions {
		s.Errorf("%d sessions executed %v", sessions, d.executions)
	}
}

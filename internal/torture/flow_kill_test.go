//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/store/postgres"
)

// The ways in which a process runs the agent.
const (
	byServe = "serve" // like a server, until it is killed
	byStart = "start" // with handles of the inputs, until it is killed
	byRun   = "run"   // until the agent has nothing to do
)

// agentJob runs the agent.
func agentJob(ctx context.Context, b backend, j job) error {
	log := b.log(j.Dir)
	defer log.Close()
	s, err := openScript(j.Dir, j.Seed, j.Levels)
	if err != nil {
		return err
	}
	a := s.agent(log)
	switch j.How {
	case byServe:
		a.Options.Poll = 5 * time.Millisecond
		return a.Serve(ctx)
	case byRun:
		_, err = resume(ctx, a, agentSession)
	default:
		err = converse(ctx, a, j.To)
	}
	var pause *flow.Hibernated
	switch {
	case errors.Is(err, flow.ErrNeedsReconcile):
		fmt.Println("stuck")
		return nil
	case errors.As(err, &pause):
		fmt.Println("hibernated")
		return nil
	case errors.Is(err, flow.ErrAlreadyRunning) && b.lease > 0: // of a process that was killed
		time.Sleep(b.lease / 8)
		return nil
	}
	return err
}

// agentsOnPostgres is a server whose leases do not end by the clock during a test. They end
// with the connection of their holder.
var agentsOnPostgres = func() backend {
	b := serverBackend("postgres with long leases",
		func(url string) (eventlog.Store, error) {
			return postgres.New(url, postgres.Options{LeaseTime: time.Hour})
		},
		func(url string) (eventlog.Store, error) { return postgres.New(url, postgres.Options{ReadOnly: true}) })
	b.url, b.lease = pgtest.DSN, time.Second
	return b
}()

// onEachAndPostgres is onEach, also on a server.
func onEachAndPostgres(t *testing.T, test func(t *testing.T, s *fixture)) {
	onEach(t, test)
	on(t, agentsOnPostgres, test)
}

// kills is how many processes of an agent a test kills: few in the usual form on a server, since
// each kill waits for the end of a lease.
func (s *fixture) kills() int {
	if s.backend.lease > 0 {
		return testsize.Pick(1, 2, *killsFlag)
	}
	return *killsFlag
}

// converse sends all inputs again, up to the input of the newest turn, and waits for their
// turns.
func converse(ctx context.Context, a *flow.Agent[tally], turns int) error {
	h, err := a.Resume(ctx, flow.Ref{Session: agentSession})
	if err != nil {
		return err
	}
	handles := []*flow.Handle[tally]{h}
	info, err := flow.Info(ctx, a.Log, agentSession)
	if err != nil {
		return err
	}
	for n := range min(info.NextTurn, turns) {
		if h, err = a.Send(ctx, agentSession, inputOf(n)); err != nil {
			return err
		}
		handles = append(handles, h)
	}
	for _, h := range handles {
		if _, err := untilEnd(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// An agent's process is killed at any moment, hundreds of times, until all turns have
// ended. Each effect ran as its class promises, and the session is as if nothing had
// happened.
func TestKillFlow(t *testing.T) {
	t.Parallel()
	onEachAndPostgres(t, func(t *testing.T, s *fixture) {
		var sum agentRun
		for kills := s.kills(); sum.kills < kills; {
			r := s.withEmptyStore().runAgent(*turnsFlag, kills-sum.kills)
			sum.add(r)
		}
		t.Logf("%v", &sum)
	})
}

// The same with an agent whose effects and tools run children, on several levels. Their
// sessions end as without kills, too. A turn has about four children, so there are fewer
// turns.
func TestKillFamily(t *testing.T) {
	t.Parallel()
	onEachAndPostgres(t, func(t *testing.T, s *fixture) {
		s.levels = familyLevels
		var sum agentRun
		for kills := s.kills(); sum.kills < kills; {
			r := s.withEmptyStore().runAgent(max(*turnsFlag/familyTurns, 1), kills-sum.kills)
			sum.add(r)
		}
		t.Logf("%v", &sum)
	})
}

// An agent with children has fewer turns than one without.
const familyTurns = 4

// agentRun counts events in runs of the agent.
type agentRun struct {
	turns, kills, processes, stuck int
	sessions, executions, repeated int
	answered, fromTop              int64
	reconciled, notRun, events     int64
	audits, meanwhile              int64
}

func (a *agentRun) add(b agentRun) {
	a.turns, a.kills, a.processes, a.stuck = a.turns+b.turns, a.kills+b.kills, a.processes+b.processes, a.stuck+b.stuck
	a.sessions, a.executions, a.repeated = a.sessions+b.sessions, a.executions+b.executions, a.repeated+b.repeated
	a.answered, a.fromTop = a.answered+b.answered, a.fromTop+b.fromTop
	a.reconciled, a.notRun = a.reconciled+b.reconciled, a.notRun+b.notRun
	a.events, a.audits, a.meanwhile = a.events+b.events, a.audits+b.audits, a.meanwhile+b.meanwhile
}

func (a *agentRun) String() string {
	return fmt.Sprintf("%d turns, %d sessions, %d events, %d processes, %d kills; %d executions of effects, %d of them again; "+
		"%d own events of tools; inputs posted in %d hibernations; %d reviews answered, %d of them for a child in the session of the agent; %d effects reconciled (%d had not run); %d processes stopped before an effect of unknown outcome",
		a.turns, a.sessions, a.events, a.processes, a.kills, a.executions, a.repeated, a.audits, a.meanwhile, a.answered, a.fromTop, a.reconciled, a.notRun, a.stuck)
}

// runAgent runs an agent, kills its process up to kills times, and checks the log.
func (s *fixture) runAgent(turns, kills int) (r agentRun) {
	s.Helper()
	p, attended := s.employ(turns)
	r = s.killAgents(p, kills, attended)
	s.checkAgent(p, &r)
	return r
}

// employ begins the session of the agent, and gives it a person.
func (s *fixture) employ(turns int) (p *person, attended <-chan error) {
	s.Helper()
	p = &person{log: s.log(), turns: turns, diary: func() (diary, error) { return readDiary(s.dir) }}
	s.must(p.begin(s.ctx))
	done := make(chan error, 1)
	go func() { done <- p.attend(s.ctx) }()
	return p, done
}

// checkAgent checks the log and the diary after all turns have ended.
func (s *fixture) checkAgent(p *person, r *agentRun) {
	s.Helper()
	want := s.undisturbed(p.turns)
	d, err := readDiary(s.dir)
	s.must(err)
	s.must(d.check(s.ctx, p.log))
	got, err := outcomeOf(s.ctx, p.log)
	s.must(err)
	s.must(sameOutcome(got, want))
	s.must(checkInputs(s.ctx, p.log, p.turns))
	r.sessions, err = checkFamily(s.ctx, p.log)
	s.must(err)
	r.turns, r.executions, r.repeated = p.turns, len(d.executions), len(d.executions)-len(d.class)
	r.answered, r.fromTop, r.reconciled, r.notRun, r.events = p.answered.Load(), p.fromTop.Load(), p.reconciled, p.notRun, p.seen.Load()
	r.audits, r.meanwhile = p.audits.Load(), p.meanwhile.Load()
}

// undisturbed is the outcome of the same turns in a process that nobody kills.
func (s *fixture) undisturbed(turns int) []string {
	s.Helper()
	log := eventlog.Open(memory.New())
	defer log.Close()
	script, err := openScript(s.TempDir(), s.seed, s.levels)
	s.must(err)
	script.pause = 1 // ns
	p := &person{log: log, turns: turns}
	s.must(p.accompany(s.ctx, script.agent(log)))
	lines, err := outcomeOf(s.ctx, log)
	s.must(err)
	_, err = checkFamily(s.ctx, log)
	s.must(err)
	return lines
}

// killAgents starts the agent again and again until all turns have ended. It kills the
// first ones at random moments.
func (s *fixture) killAgents(p *person, kills int, attended <-chan error) (r agentRun) {
	s.Helper()
	for {
		if s.random.IntN(2) == 0 {
			s.must(p.reconcile(s.ctx))
		}
		r.processes++
		stuck := make(chan struct{}, 1)
		c := s.start(job{Do: "agent", How: []string{byServe, byStart, byRun}[s.random.IntN(3)], To: p.turns}, func(line string) {
			if line == "stuck" {
				stuck <- struct{}{}
			}
		})
		over, killed := s.accompany(p, c, r.kills < kills, attended)
		if killed {
			r.kills++
		}
		if len(stuck) > 0 {
			r.stuck++
			s.must(p.reconcile(s.ctx))
		}
		if over {
			return r
		}
	}
}

// accompany waits until the child ends or all turns have ended. It kills the child at a
// random moment, perhaps before it has done anything.
func (s *fixture) accompany(p *person, c *child, mayKill bool, attended <-chan error) (over, killed bool) {
	s.Helper()
	var moment <-chan time.Time
	if mayKill {
		if s.random.IntN(4) > 0 {
			s.waitEvent(p, c)
		}
		moment = time.After(time.Duration(s.random.IntN(80)) * time.Millisecond)
	}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-attended:
			s.must(err)
			_ = c.in.Close()
			s.must(c.finish())
			return true, false
		case <-c.silent:
			s.must(c.finish())
			return false, false
		case <-moment:
			err := c.kill()
			if !c.cmd.ProcessState.Success() { // it may have ended just now
				s.must(err)
			}
			return false, err == nil
		case <-look.C:
			s.must(p.reconcile(s.ctx))
		}
	}
}

// waitEvent waits until the child has appended something, or has ended.
func (s *fixture) waitEvent(p *person, c *child) {
	for before, start := p.seen.Load(), time.Now(); p.seen.Load() == before && time.Since(start) < time.Second+s.backend.lease; {
		select {
		case <-c.silent:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

//go:build unix

package torture

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
)

// pureSteps is the number of effects of a pureAgent.
const pureSteps = 3

// pureAgent is an agent whose intents wait for no disk.
type pureAgent struct {
	mu    sync.Mutex
	begun []int // of each execution of an effect
	done  int   // effects with a result that the turn function has seen
	// work runs in each effect.
	work func(ctx context.Context, step int) error
}

func (p *pureAgent) agent(log *eventlog.Log) *flow.Agent[tally] {
	return &flow.Agent[tally]{Name: "pure", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[tally]) error {
		for step := range pureSteps {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "step", Arguments: step}, func(ctx context.Context) (int, error) {
				p.mu.Lock()
				p.begun = append(p.begun, step)
				p.mu.Unlock()
				if p.work == nil {
					return step, nil
				}
				return step, p.work(ctx, step)
			})
			if err != nil {
				return err
			}
			p.mu.Lock()
			p.done = step + 1
			p.mu.Unlock()
		}
		return tn.Update(func(c *tally) error { c.Turns++; return nil })
	}}
}

func (p *pureAgent) progress() (begun, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.begun), p.done
}

// checkPure checks that the turn has ended, and that each effect has one result.
func checkPure(t testing.TB, log *eventlog.Log) {
	t.Helper()
	results := map[string]int{}
	for e, err := range log.Read(t.Context(), agentSession, eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type.Name() == event.EffectCompleted {
			p, _, err := event.Decode[event.EffectCompletion](&e)
			if err != nil {
				t.Fatal(err)
			}
			results[p.Ordinal]++
		}
	}
	head, err := log.Head(t.Context(), agentSession)
	if err != nil {
		t.Fatal(err)
	}
	suite.CheckEvents(t, log, agentSession, head.Seq)
	if len(results) != pureSteps || results["0"] != 1 || results["1"] != 1 || results["2"] != 1 {
		t.Errorf("results by effect: %v", results)
	}
}

// intents is the number of intents in the log.
func intents(ctx context.Context, log *eventlog.Log) (n int, err error) {
	for e, err := range log.Read(ctx, agentSession, eventlog.All()) {
		if err != nil {
			return n, err
		}
		if e.Type.Name() == event.EffectIntended {
			n++
		}
	}
	return n, nil
}

// The machine of an agent loses power after any operation on the disk. Then an intent of an
// effect that may run again may be missing, and the effect runs again. No effect runs again
// whose result the turn function has seen.
func TestPowerLossOfAnAgent(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	open := func(disk *crashfs.Disk) *eventlog.Log {
		return eventlog.Open(jsonl.New("store", jsonl.Options{FS: disk.Mount()}))
	}
	type moment struct {
		disk        *crashfs.Disk
		begun, done int
	}
	var moments []moment
	var p pureAgent
	disk.OnOp(func(_ crashfs.Op, image func() *crashfs.Disk) {
		begun, done := p.progress()
		moments = append(moments, moment{image(), begun, done})
	})
	in := inputOf(0)
	if _, err := p.agent(open(disk)).Run(t.Context(), agentSession, in); err != nil {
		t.Fatal(err)
	}
	disk.OnOp(nil)
	lost := 0
	for _, m := range moments {
		for seed := range uint64(testsize.Pick(2, 4, 20)) {
			log := open(m.disk.Crash(seed))
			n, err := intents(t.Context(), log)
			if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
				t.Fatal(err)
			}
			if n < m.begun {
				lost++
			}
			var again pureAgent
			if _, err := again.agent(log).Run(t.Context(), agentSession, in); err != nil {
				t.Fatal(err)
			}
			for _, step := range again.begun {
				if step < m.done {
					t.Errorf("effect %d ran again, and the turn function has seen %d results", step, m.done)
				}
			}
			checkPure(t, log)
		}
	}
	if lost == 0 {
		t.Error("no crash lost an intent")
	}
	t.Logf("%d moments; %d crashes lost an intent", len(moments), lost)
}

// The server of an agent crashes while an effect runs, and loses the intent of the effect. The
// process of the agent lives on: it executes the turn again.
func TestServerLosesAnIntent(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"the effect ends with its context": true, "the effect has a result": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t, "-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=0")
			for lost := false; !lost; { // other processes of the server may have synced the intent
				lost = loseIntent(t, server, ends)
			}
		})
	}
}

// loseIntent reports whether the server lost an intent.
func loseIntent(t *testing.T, server *pgtest.Server, ends bool) (lost bool) {
	t.Helper()
	dsn, err := pgtest.With(server.DSN(), "schema", "s"+event.NewID().String())
	if err != nil {
		t.Fatal(err)
	}
	s := newServerFixture(t, postgresBackend, dsn)
	log := s.log()
	var p pureAgent
	crashed := false
	p.work = func(ctx context.Context, step int) error {
		if crashed || step != 1 {
			return nil
		}
		crashed = true
		if err := errors.Join(server.Kill(), server.Run()); err != nil {
			t.Error(err)
		}
		observer := s.log()
		n, err := intents(s.ctx, observer)
		if err := errors.Join(err, observer.Close()); err != nil {
			t.Error(err)
		}
		lost = n < 2
		if ends {
			<-ctx.Done()
			return ctx.Err()
		}
		_ = log.Ping(s.ctx) // finds the broken connections
		return nil
	}
	a := p.agent(log)
	_, err = a.Run(s.ctx, agentSession, inputOf(0))
	for errors.Is(err, eventlog.ErrUnavailable) || errors.Is(err, eventlog.ErrUnknownOutcome) {
		_, err = a.Run(s.ctx, agentSession, inputOf(0))
	}
	if err != nil {
		t.Fatal(err)
	}
	checkPure(t, log)
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	return lost
}

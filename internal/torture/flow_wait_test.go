//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// inAnHour is an error that asks for the next attempt in an hour.
type inAnHour struct{}

func (inAnHour) Error() string             { return "come back in an hour" }
func (inAnHour) RetryAfter() time.Duration { return time.Hour }
func (inAnHour) Permanent() bool           { return false }

// tomorrowAgent is an agent whose effect fails at first, and is tried again in an hour.
func tomorrowAgent(log *eventlog.Log, now func() time.Time) *flow.Agent[tally] {
	a := &flow.Agent[tally]{Name: "script", Log: log, Options: flow.Options{Now: now}}
	a.Turn = func(ctx context.Context, t *flow.Turn[tally]) error {
		e := flow.Effect{Name: "late", Retry: flow.Retry{Attempts: 2, First: time.Millisecond}}
		n, err := flow.Do(ctx, t, e, func(ctx context.Context) (int, error) {
			if n := attempt(ctx); n > 1 {
				return n, nil
			}
			return 0, inAnHour{}
		})
		if err != nil {
			return err
		}
		return t.Update(func(c *tally) error { c.Turns = n; return nil })
	}
	return a
}

// signalAgent is an agent that gives away the token of a wait, and waits.
func signalAgent(log *eventlog.Log, give func(token string)) *flow.Agent[tally] {
	return &flow.Agent[tally]{Name: "script", Log: log, Turn: func(ctx context.Context, t *flow.Turn[tally]) error {
		w, err := t.NewWait(ctx, "signal", 0)
		if err != nil {
			return err
		}
		_, err = flow.Do(ctx, t, flow.Effect{Name: "give"}, func(context.Context) (int, error) { give(w.Token); return 0, nil })
		if err != nil {
			return err
		}
		n, err := flow.Await[int](ctx, t, w)
		if err != nil {
			return err
		}
		return t.Update(func(c *tally) error { c.Turns = n; return nil })
	}}
}

// The agents of waitJob.
const (
	forRetry  = "retry"
	forSignal = "signal"
)

// waitJob runs a turn that waits, and stays until it is killed.
func waitJob(ctx context.Context, b backend, j job) error {
	log := b.log(j.Dir)
	defer log.Close()
	a := tomorrowAgent(log, nil)
	if j.How == forSignal {
		a = signalAgent(log, func(token string) { fmt.Println("token", token) })
	}
	h, err := a.Send(ctx, agentSession, inputOf(0))
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		_, err := h.Wait(ctx)
		if errors.As(err, new(*flow.Hibernated)) && j.How == forRetry {
			fmt.Println("hibernates")
			<-ctx.Done()
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// A process is killed while its turn waits for the next attempt of an effect. Another
// process makes the attempt when it is due, and not before.
func TestRetryAfterKill(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		c, heard := s.lines(job{Do: "wait", How: forRetry})
		s.hear(c, heard, "hibernates")
		s.must(c.kill())
		log := s.log()
		before, err := log.Head(s.ctx, agentSession)
		s.must(err)
		var pause *flow.Hibernated
		_, err = tomorrowAgent(log, nil).Resume(s.ctx, flow.Ref{Session: agentSession})
		if !errors.As(err, &pause) {
			t.Fatalf("an early start: %v", err)
		}
		if after, err := log.Head(s.ctx, agentSession); err != nil || after != before {
			t.Fatalf("an early start appends: %v, %v", after, err)
		}
		due := func() time.Time { return pause.Until.Add(time.Second) }
		out, err := resume(s.ctx, tomorrowAgent(log, due), agentSession)
		s.must(err)
		if out.Custom.Turns != 2 || out.Status != flow.StatusFinished {
			t.Errorf("attempt %d, %s", out.Custom.Turns, out.Status)
		}
		_, err = checkFamily(s.ctx, log)
		s.must(err)
	})
}

// A signal is sent at the moment when its token exists, while the turn that waits for it
// goes on, and perhaps its process is killed. It is not missed.
func TestSignalAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		for n := range max(*killsFlag/4, 2) {
			s.withEmptyStore().signalAtOnce(n)
		}
	})
}

func (s *fixture) signalAtOnce(value int) {
	s.Helper()
	log := s.log()
	tokens := make(chan string, 1)
	c := s.start(job{Do: "wait", How: forSignal}, func(line string) {
		if token, ok := strings.CutPrefix(line, "token "); ok {
			tokens <- token
		}
	})
	select {
	case token := <-tokens:
		ref, err := flow.ParseToken(token, nil)
		s.must(err)
		_, err = flow.Resolve(s.ctx, log, ref.Session, ref.Wait, value, "a person")
		s.must(err)
	case <-c.silent:
		s.Fatalf("the child ended: %s", c.errs)
	}
	time.Sleep(time.Duration(s.random.IntN(8)) * time.Millisecond)
	s.must(c.kill())
	out, err := resume(s.ctx, signalAgent(log, func(string) {}), agentSession)
	s.must(err)
	if out.Custom.Turns != value || out.Status != flow.StatusFinished {
		s.Errorf("value %d, want %d; %s", out.Custom.Turns, value, out.Status)
	}
	s.must(verifySilent(s.ctx, log, agentSession))
}

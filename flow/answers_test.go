package flow_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

func TestTwoPeopleAnswerAtOnce(t *testing.T) {
	for range 20 {
		s := newShop(t, ask("Pay?"))
		s.agent.Run(t.Context(), "s", flow.Text("A1"))
		r := open(t, s, "s")[0]
		var won, late atomic.Int64
		var group sync.WaitGroup
		for _, d := range []event.Decision{event.Approved, event.Denied, event.Approved, event.Denied} {
			group.Go(func() {
				switch _, err := flow.Decide(t.Context(), s.log, "s", answerTo(r, d)); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, flow.ErrAnswered):
					late.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 || late.Load() != 3 {
			t.Fatalf("%d answers count, %d are late", won.Load(), late.Load())
		}
	}
}

func TestAReviewExpires(t *testing.T) {
	for _, lapse := range []event.Lapse{event.LapseWait, event.LapseDeny, event.LapseFail} {
		t.Run(string(lapse), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{log: eventlog.Open(memory.New()), ran: map[string]int{}}
				defer s.log.Close()
				ask := func(context.Context, event.Part) (*flow.Question, error) {
					return &flow.Question{Prompt: "Pay?", Expires: time.Hour, Lapse: lapse}, nil
				}
				s.agent = flow.Agent[notes]{Name: "shop", Log: s.log, Turn: flow.Chat[notes](answerWith(&s.calls), flow.Request{}, s.tool(ask))}
				s.agent.Run(t.Context(), "s", flow.Text("A1"))
				first := open(t, s, "s")[0]
				time.Sleep(time.Until(first.ExpiresAt))
				last := answerTo(first, event.Approved)
				last.Review.InterruptID = "x"
				if _, err := flow.Decide(t.Context(), s.log, "s", last); !errors.Is(err, flow.ErrNotOpen) {
					t.Fatal(err)
				}
				time.Sleep(time.Nanosecond)
				if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(first, event.Approved)); !errors.Is(err, flow.ErrExpired) {
					t.Fatal(err)
				}
				out, err := resume(t.Context(), &s.agent, "s")
				var pause *flow.Hibernated
				switch lapse {
				case event.LapseWait:
					if !errors.As(err, &pause) || len(pause.Reviews) != 1 || pause.Reviews[0].InterruptID == first.InterruptID {
						t.Fatalf("%v %+v", err, pause)
					}
					if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(first, event.Approved)); !errors.Is(err, flow.ErrAnswered) {
						t.Fatal(err)
					}
					if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(pause.Reviews[0], event.Approved)); err != nil {
						t.Fatal(err)
					}
					if out, err = resume(t.Context(), &s.agent, "s"); err != nil || s.runs() != 1 {
						t.Fatal(err)
					}
				case event.LapseDeny:
					if err != nil || !strings.Contains(out.Message.Text(), "expired") || s.runs() != 0 {
						t.Fatalf("%v %+v", err, out.Message)
					}
				case event.LapseFail:
					if !errors.Is(err, flow.ErrExpired) || out.Status != flow.StatusFailed || s.runs() != 0 {
						t.Fatalf("%v %+v", err, out)
					}
				}
			})
		})
	}
}

// The last instant is in time.
func TestAnAnswerAtTheLastInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{log: eventlog.Open(memory.New()), ran: map[string]int{}}
		defer s.log.Close()
		ask := func(context.Context, event.Part) (*flow.Question, error) {
			return &flow.Question{Expires: time.Hour}, nil
		}
		s.agent = flow.Agent[notes]{Name: "shop", Log: s.log, Turn: flow.Chat[notes](answerWith(&s.calls), flow.Request{}, s.tool(ask))}
		s.agent.Run(t.Context(), "s", flow.Text("A1"))
		r := open(t, s, "s")[0]
		time.Sleep(time.Until(r.ExpiresAt))
		if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(r, event.Approved)); err != nil {
			t.Fatal(err)
		}
		if _, err := resume(t.Context(), &s.agent, "s"); err != nil || s.runs() != 1 {
			t.Fatal(err)
		}
	})
}

func TestARewindPastAPaidEffect(t *testing.T) {
	s := newShop(t, nil)
	tool := s.tool(nil)
	tool.Class = ""
	s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, tool)
	first, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Rewind(t.Context(), s.log, "s", fork.BeforeTurn(0)); err != nil {
		t.Fatal(err)
	}
	out, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
	if err != nil || s.runs() != 2 || len(s.ran) != 2 {
		t.Fatalf("%v, keys %v", err, s.ran)
	}
	if out.Spend.Cost != 2*first.Spend.Cost || out.Spend.Usage.InputTokens != 2*first.Spend.Usage.InputTokens || len(out.Messages) != len(first.Messages) {
		t.Fatalf("%+v after %+v", out.Spend, first.Spend)
	}
}

func TestARewindIntoATurnInterruptsIt(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	s.agent.Run(t.Context(), "s", flow.Text("A1"))
	p, err := projection.LoadPending(t.Context(), s.log, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Rewind(t.Context(), s.log, "s", fork.AtSeq(p.Turn.Seq)); err != nil {
		t.Fatal(err)
	}
	out, err := resume(t.Context(), &s.agent, "s")
	if err != nil || out.StopReason != "interrupted" || s.calls.Load() != 1 || s.runs() != 0 {
		t.Fatalf("%v %+v", err, out)
	}
}

// A rewind to the end of an effect keeps all results: the turn continues, and asks for
// the review again.
func TestARewindToAResultContinuesTheTurn(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	s.agent.Run(t.Context(), "s", flow.Text("A1"))
	first := open(t, s, "s")[0]
	if _, err := fork.Rewind(t.Context(), s.log, "s", fork.AtSeq(first.Seq-1)); err != nil {
		t.Fatal(err)
	}
	_, err := resume(t.Context(), &s.agent, "s")
	var pause *flow.Hibernated
	if !errors.As(err, &pause) || len(pause.Reviews) != 1 || s.calls.Load() != 1 || s.runs() != 0 {
		t.Fatalf("%v, asked %d", err, s.calls.Load())
	}
}

func TestAnEditedPromptResumes(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	s.agent.Run(t.Context(), "s", flow.Text("A1"))
	var system string
	m := modelFunc(func(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
		system = r.System
		return answerWith(&s.calls).Generate(ctx, r, emit)
	})
	other := flow.ToolSpec{Name: "other"}
	s.agent.Turn = flow.Chat[notes](m, flow.Request{System: "Be brief."}, s.tool(ask("Really pay?")), other)
	c, err := connectWith(t.Context(), &s.agent, "s", answerTo(open(t, s, "s")[0], event.Approved))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Output(t.Context()); err != nil || system != "Be brief." || s.runs() != 1 || s.calls.Load() != 2 {
		t.Fatalf("%v, system %q, ran %d", err, system, s.runs())
	}
	s.agent.Run(t.Context(), "s", flow.Text("B2"))
	s.agent.Turn = flow.Chat[notes](m, flow.Request{Model: "another"}, s.tool(ask("Pay?")))
	c, err = connectWith(t.Context(), &s.agent, "s", answerTo(open(t, s, "s")[0], event.Approved))
	if err != nil {
		t.Fatal(err)
	}
	var d *flow.DivergenceError
	if _, err := c.Output(t.Context()); !errors.As(err, &d) || d.Member != "name" || d.Got != "another" || s.runs() != 1 {
		t.Fatalf("another model: %v", err)
	}
}

// A server keeps a question open whose review expires, at most once a minute.
func TestAServerAsksAnew(t *testing.T) {
	for _, expires := range []time.Duration{1, time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := &shop{log: eventlog.Open(memory.New()), ran: map[string]int{}}
			defer s.log.Close()
			ask := func(context.Context, event.Part) (*flow.Question, error) {
				return &flow.Question{Expires: expires}, nil
			}
			s.agent = flow.Agent[notes]{Name: "shop", Log: s.log, Turn: flow.Chat[notes](answerWith(&s.calls), flow.Request{}, s.tool(ask))}
			_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
			paused(t, err)
			ctx, stop := context.WithTimeout(t.Context(), 6*(expires+time.Minute)+time.Minute/2)
			defer stop()
			if err := s.agent.Serve(ctx); err != nil {
				t.Fatal(err)
			}
			asked := 0
			for _, name := range typesAfter(t, s.log, 0) {
				if name == string(event.ApprovalRequested) {
					asked++
				}
			}
			if asked < 6 || asked > 7 || len(open(t, s, "s")) != 1 || s.calls.Load() != 1 {
				t.Fatalf("expires after %v: asked %d times, %d open", expires, asked, len(open(t, s, "s")))
			}
		})
	}
}

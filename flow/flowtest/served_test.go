package flowtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/projection"
)

// stage is the agent of a scene while it is recorded.
type stage struct {
	t     *testing.T
	log   *eventlog.Log
	agent *flow.Agent[shop]
	ran   int
}

func newStage(t *testing.T, turn turnFunc) *stage {
	s := &stage{t: t, log: newLog(t)}
	s.agent = s.of(turn, func() { s.ran++ })
	return s
}

func (s *stage) of(turn turnFunc, ran func()) *flow.Agent[shop] {
	return &flow.Agent[shop]{Name: "shop", Log: s.log, Turn: func(ctx context.Context, t *flow.Turn[shop]) error { return turn(ctx, t, ran) }}
}

// run starts the session and runs inputs. It returns the error of the run.
func (s *stage) run(inputs ...string) error {
	if len(inputs) == 0 {
		_, err := resume(s.t.Context(), s.agent, session)
		return err
	}
	var err error
	for _, text := range inputs {
		if err == nil {
			_, err = s.agent.Run(s.t.Context(), session, flow.Text(text))
		}
	}
	return err
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// paused runs inputs and expects a hibernation.
func (s *stage) paused(inputs ...string) *flow.Hibernated {
	s.t.Helper()
	var h *flow.Hibernated
	if err := s.run(inputs...); !errors.As(err, &h) {
		s.t.Fatalf("no hibernation: %v", err)
	}
	return h
}

// replayed replays the session of a stage without a divergence.
func (s *stage) replayed(turn turnFunc, id string) flowtest.Result {
	s.t.Helper()
	agent := s.of(turn, func() { s.t.Error("an effect ran in the replay") })
	agent.Log = nil
	r, err := flowtest.Run(s.t.Context(), agent, s.log, id)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = r.Log.Close() })
	return r
}

type logKey struct{}

// A recording replays, whatever interrupted it, and no effect runs.
func TestRecordingsReplay(t *testing.T) {
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.turn)
			c.drive(t, s)
			r := s.replayed(c.turn, session)
			if want := max(c.turns, 1); r.Turns != want || r.Open != c.open || r.ByPosition {
				t.Errorf("%+v, want %d turns", r, want)
			}
			if got, want := texts(t, r.Log, session), texts(t, s.log, session); !slices.Equal(got, want) {
				t.Errorf("the history is\n%q\nand was\n%q", got, want)
			}
		})
	}
}

// texts are the texts of the history.
func texts(t *testing.T, log *eventlog.Log, id string) (list []string) {
	t.Helper()
	h, err := projection.Load(t.Context(), log, id, projection.History())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := h.State.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range entries {
		list = append(list, fmt.Sprint(x.Message.Role, x.Message.Parts))
	}
	return list
}

// A run that is killed in an effect replays like an unbroken one.
func TestAKilledRunReplays(t *testing.T) {
	for name, kill := range map[string]string{"in the first effect": "one", "in the last effect": "three"} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, steps)
			ctx, stop := context.WithCancel(t.Context())
			killed := func(ctx context.Context, x *flow.Turn[shop], ran func()) error {
				for _, name := range []string{"one", "two", "three"} {
					v, err := flow.Do(ctx, x, flow.Effect{Name: name, Class: event.EffectPure}, func(ctx context.Context) (string, error) {
						if name == kill {
							stop()
							<-ctx.Done()
							return "", ctx.Err()
						}
						return name + " done", flow.Update(ctx, func(s *shop) error { s.Visits++; return nil })
					})
					if err = errors.Join(err, say(x, v)); err != nil {
						return err
					}
				}
				return nil
			}
			if _, err := s.of(killed, nil).Run(ctx, session, flow.Text("Go.")); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if r := s.replayed(steps, session); !r.Open {
				t.Errorf("the killed run: %+v", r)
			}
			s.must(s.run())
			if r := s.replayed(steps, session); r.Open || r.Turns != 1 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A turn that failed and was retried replays like a turn that did not fail.
func TestARetriedTurnReplays(t *testing.T) {
	s := newStage(t, func(ctx context.Context, x *flow.Turn[shop], ran func()) error {
		v, err := do(ctx, x, ran, "one", nil)
		return errors.Join(err, say(x, v), errors.New("a bug"))
	})
	if err := s.run("Go."); err == nil {
		t.Fatal("the turn did not fail")
	}
	s.agent = s.of(steps, func() {})
	_, err := again(t.Context(), s.agent, session)
	s.must(err)
	s.must(s.run("Once more."))
	if r := s.replayed(steps, session); r.Turns != 2 || r.Open {
		t.Errorf("%+v", r)
	}
}

// A transcript without effects is served by position.
func TestATranscriptIsServedByPosition(t *testing.T) {
	s := newStage(t, nil)
	call := event.ToolCall("c1", "find", jsontext.Value(`{"id":"A1"}`))
	_, err := s.log.Append(t.Context(), session, eventlog.New(), event.New(event.Session{}), event.UserMessage("Where is A1?"),
		event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("I look."), call}}),
		event.ToolMessage(event.ToolResult("c1", "find", event.Text("in Leipzig"))), event.AssistantMessage("In Leipzig."),
		event.UserMessage("Thanks."), event.AssistantMessage("Bye."))
	s.must(err)
	chat := func(name string) turnFunc {
		return func(ctx context.Context, x *flow.Turn[shop], ran func()) error {
			tool := flow.Tool(name, "", func(context.Context, order) (string, error) { ran(); return "", nil })
			return flow.Chat[shop](flowtest.Script{}, flow.Request{System: "You are a shop."}, tool)(ctx, x)
		}
	}
	r := s.replayed(chat("find"), session)
	if !r.ByPosition || r.Turns != 2 {
		t.Errorf("%+v", r)
	}
	if got, want := texts(t, r.Log, session), texts(t, s.log, session); !slices.Equal(got, want) {
		t.Errorf("the history is\n%q\nand was\n%q", got, want)
	}
	quiet := s.of(func(ctx context.Context, x *flow.Turn[shop], _ func()) error {
		_, err := x.Model(ctx, flowtest.Script{}, flow.Request{})
		return err
	}, nil)
	_, err = flowtest.Run(t.Context(), quiet, s.log, session)
	var d *flowtest.DivergenceError
	if !errors.As(err, &d) || d.Ordinal != "1.0" || d.Member != "end" {
		t.Errorf("a dropped call: %v", err)
	}
}

// Another review and another wait are divergences.
func TestChangedReviewsAndWaits(t *testing.T) {
	turn := func(prompt, wait string) turnFunc {
		return func(ctx context.Context, x *flow.Turn[shop], ran func()) error {
			if _, err := x.NewWait(ctx, wait, 0); err != nil {
				return err
			}
			var review *flow.Question
			if prompt != "" {
				review = &flow.Question{Prompt: prompt}
			}
			_, err := do(ctx, x, ran, "pay", review)
			return err
		}
	}
	s := newStage(t, turn("Pay?", "signal"))
	h := s.paused("Go.")
	_, err := flow.Decide(t.Context(), s.log, session, answerTo(h.Reviews[0], event.Approved))
	s.must(err)
	s.must(s.run())
	s.replayed(turn("Pay?", "signal"), session)
	for _, c := range []struct{ prompt, wait, ordinal, member, got string }{
		{"Really?", "signal", "1", "review", `review "Really?"`},
		{"", "signal", "1", "review", "no review"},
		{"Pay?", "other", "0", "effect", `new wait "other"`},
	} {
		_, err := flowtest.Run(t.Context(), s.of(turn(c.prompt, c.wait), func() { t.Error("it ran") }), s.log, session)
		var d *flowtest.DivergenceError
		if !errors.As(err, &d) || d.Ordinal != c.ordinal || d.Member != c.member || d.Got != c.got {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

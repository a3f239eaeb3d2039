package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// echo says the texts of all user messages, after a first call of the model that waits
// for gate.
func echo(gate chan struct{}) flow.Model {
	return modelFunc(func(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
		emit(eventlog.Delta{Kind: event.TextPart, Text: "thinking "})
		if gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return flow.Response{}, ctx.Err()
			}
		}
		var said []string
		for _, x := range r.Messages {
			if x.Message.Role == event.User {
				said = append(said, x.Message.Text())
			}
		}
		return flow.Response{Message: event.Message{Parts: []event.Part{event.Text(strings.Join(said, "|"))}, StopReason: "stop"}}, nil
	})
}

// twice asks the model twice in a turn.
func twice(m flow.Model) func(context.Context, *flow.Turn[notes]) error {
	return func(ctx context.Context, tn *flow.Turn[notes]) error {
		for range 2 {
			if _, err := tn.Model(ctx, m, flow.Request{}); err != nil {
				return err
			}
		}
		return nil
	}
}

func openLog(t *testing.T) *eventlog.Log {
	t.Helper()
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { log.Close() })
	return log
}

func start(t *testing.T, a *flow.Agent[notes]) *client[notes] {
	t.Helper()
	c, err := connect(t.Context(), a, "s")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func finish(t *testing.T, c *client[notes]) flow.Output[notes] {
	t.Helper()
	out, err := c.Output(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReceiveWaitsForAHibernatedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, ask("Pay?"))
		c := start(t, &s.agent)
		if err := c.SendText("A1 B2"); err != nil {
			t.Fatal(err)
		}
		receive := func(reviews int) {
			t.Helper()
			var pause *flow.Hibernated
			for _, err := range c.Receive() {
				if err != nil && !errors.As(err, &pause) {
					t.Fatal(err)
				}
			}
			if (pause != nil) != (reviews > 0) || pause != nil && len(pause.Reviews) != reviews {
				t.Fatalf("%v, want %d reviews", pause, reviews)
			}
		}
		receive(2)
		for i, r := range open(t, s, "s") {
			answered := make(chan error)
			go func() {
				time.Sleep(time.Hour)
				_, err := flow.Decide(t.Context(), s.log, "s", answerTo(r, event.Approved))
				answered <- err
			}()
			receive(1 - i)
			if err := <-answered; err != nil {
				t.Fatal(err)
			}
		}
		if out := finish(t, c); s.runs() != 2 {
			t.Fatalf("ran %d, %+v", s.runs(), out.Message)
		}
	})
}

func TestSecondRunnerAndTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		log := eventlog.Open(memory.New())
		defer log.Close()
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: twice(echo(gate))}
		c := start(t, a)
		c.SendText("go")
		synctest.Wait()
		if _, err := connect(t.Context(), a, "s"); !errors.Is(err, flow.ErrAlreadyRunning) {
			t.Fatal(err)
		}
		b := *a
		b.Turn = twice(echo(nil))
		if _, err := flow.TakeOver(t.Context(), log, "s", "me"); err != nil {
			t.Fatal(err)
		}
		out := finish(t, start(t, &b))
		close(gate)
		if _, err := c.Output(t.Context()); !errors.Is(err, flow.ErrOvertaken) {
			t.Fatal(err)
		}
		if out.Status != flow.StatusFinished || len(out.Messages) != 3 {
			t.Fatalf("%+v", out)
		}
	})
}

func TestConcurrentAndNestedEffects(t *testing.T) {
	log := openLog(t)
	for name, want := range map[string]string{"nested": "an effect cannot run effects", "concurrent": "use Batch"} {
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			_, err := flow.Do(ctx, tn, flow.Effect{Name: "outer"}, func(inner context.Context) (int, error) {
				if name == "concurrent" {
					inner = ctx
				}
				return flow.Do(inner, tn, flow.Effect{Name: "inner"}, func(context.Context) (int, error) {
					t.Error("ran")
					return 0, nil
				})
			})
			return err
		}}
		if _, err := a.Run(t.Context(), name, flow.Text("go")); !errors.Is(err, flow.ErrNestedEffect) || !strings.Contains(err.Error(), want) {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	for name, l := range map[string]flow.Limits{"calls": {Calls: 1}, "tokens": {Tokens: 5}, "cost": {Cost: event.Dollar / 1000}} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, nil)
			tool := s.tool(nil)
			tool.Class = ""
			s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, tool)
			s.agent.Options.Limits = l
			out, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
			if err != nil || out.StopReason != "limit" || out.Status != flow.StatusFinished || s.calls.Load() != 1 {
				t.Fatalf("%v %+v", err, out)
			}
		})
	}
}

// overloaded is an error of a model that asks to wait.
type overloaded struct{ after time.Duration }

func (o overloaded) Error() string { return "overloaded" }

func (o overloaded) RetryAfter() time.Duration { return o.after }

func (o overloaded) Permanent() bool { return false }

func TestARetrySurvivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m := modelFunc(func(context.Context, *flow.Request, func(eventlog.Delta)) (flow.Response, error) {
			if asked++; asked == 1 {
				return flow.Response{}, overloaded{2 * time.Hour}
			}
			return flow.Response{Message: event.Message{Parts: []event.Part{event.Text("ok")}}}, nil
		})
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: flow.Chat[notes](m, flow.Request{})}
		defer a.Log.Close()
		_, err := a.Run(t.Context(), "s", flow.Text("go"))
		var pause *flow.Hibernated
		if !errors.As(err, &pause) || time.Until(pause.Until) < time.Hour {
			t.Fatalf("%v %+v", err, pause)
		}
		if _, err := connect(t.Context(), a, "s"); !errors.As(err, &pause) || asked != 1 {
			t.Fatalf("too early: %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Hour)
		defer stop()
		if err := a.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		info, _ := flow.Info(t.Context(), a.Log, "s")
		if asked != 2 || info.Status != flow.StatusFinished {
			t.Fatalf("asked %d, %s", asked, info.Status)
		}
	})
}

func TestCheckpoints(t *testing.T) {
	for checkpoint, want := range map[flow.Checkpoint]string{0: "", flow.AfterPrompt: "after_prompt",
		flow.AfterEachPhase: "after_prompt before_effect", flow.BeforeEachEffect: "after_prompt before_effect before_effect"} {
		s := newShop(t, nil)
		tool := s.tool(nil)
		tool.Class = ""
		s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, tool)
		var kinds []string
		c := startAt(t, s, checkpoint)
		c.SendText("A1")
		for {
			out, err := c.Output(t.Context())
			var pause *flow.Hibernated
			if !errors.As(err, &pause) {
				if err != nil || out.Message.Text() != `done: paid {"order":"A1"}` || s.runs() != 1 || s.calls.Load() != 2 {
					t.Fatalf("%v %+v", err, out)
				}
				break
			}
			kinds = append(kinds, pause.Cursor.Kind)
			c = startAt(t, s, checkpoint)
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("checkpoint %d: %q, want %q", checkpoint, got, want)
		}
	}
}

func startAt(t *testing.T, s *shop, checkpoint flow.Checkpoint) *client[notes] {
	t.Helper()
	s.agent.Options.Checkpoint = checkpoint
	c, err := connect(t.Context(), &s.agent, "s")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStartArguments(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: twice(echo(nil))}
	a.Options.Key = key
	out, err := a.Run(t.Context(), "s", flow.Text("one"))
	if err != nil {
		t.Fatal(err)
	}
	good, _ := out.Ref.Token(key)
	plain, _ := out.Ref.Token(nil)
	other, _ := out.Ref.Token([]byte(strings.Repeat("x", 32)))
	resume := func(session, snapshot string) func() error {
		return func() error {
			_, err := a.Resume(t.Context(), flow.Ref{Session: session, Snapshot: snapshot})
			return err
		}
	}
	parse := func(token string) func() error {
		return func() error { _, err := flow.ParseToken(token, key); return err }
	}
	nameless := &flow.Agent[notes]{Log: a.Log, Turn: a.Turn}
	for name, c := range map[string]struct {
		f    func() error
		want error
	}{
		"empty id":         {resume("", ""), flow.ErrStart},
		"no session":       {resume("x", ""), eventlog.ErrNotFound},
		"no such session":  {resume("x", out.Ref.Snapshot), flow.ErrStart},
		"no such snapshot": {resume("s", "x"), projection.ErrSnapshotNotFound},
		"no name":          {func() error { _, err := nameless.Send(t.Context(), "s", flow.Text("x")); return err }, flow.ErrStart},
		"no messages":      {func() error { _, err := a.Send(t.Context(), "s", flow.Input{}); return err }, event.ErrInvalid},
		"content of a known": {func() error {
			_, err := a.Begin(t.Context(), flow.Content[notes]{Session: "s"})
			return err
		}, eventlog.ErrExists},
		"not a token": {parse("x"), flow.ErrToken},
		"bad base64":  {parse("convlog:snapshot:v1:%"), flow.ErrToken},
		"newer":       {parse(strings.Replace(good, "v1", "v2", 1)), event.ErrVersion},
		"unsigned":    {parse(plain), flow.ErrToken},
		"other key":   {parse(other), flow.ErrToken},
		"changed":     {parse(good[:len(good)-60] + "A" + good[len(good)-59:]), flow.ErrToken},
	} {
		if err := c.f(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := a.Run(t.Context(), "s", flow.Text("two")); err != nil {
		t.Fatal(err)
	}
	ref, err := flow.ParseToken(good, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resumeAt(t.Context(), a, ref); err != nil {
		t.Fatal(err)
	}
	back, err := a.Run(t.Context(), "s", flow.Text("three"))
	if err != nil || back.Message.Text() != "one|three" {
		t.Fatalf("%v %+v", err, back.Message)
	}
	out.Content.Session = ""
	session, err := a.Begin(t.Context(), out.Content)
	if err != nil || session == "s" {
		t.Fatal(session, err)
	}
	fresh, err := a.Run(t.Context(), session, flow.Text("four"))
	if err != nil || fresh.Message.Text() != "one|four" || fresh.Session != session {
		t.Fatalf("%v %+v", err, fresh.Message)
	}
}

func TestAnImportedSession(t *testing.T) {
	s := newShop(t, nil)
	call := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("x1", "old", nil), event.ToolCall("x2", "old", nil)}})
	if _, err := s.log.Append(t.Context(), "s", eventlog.New(), event.New(event.Session{Agent: "other"}), event.UserMessage("hi"),
		event.New(event.TurnStart{Agent: "other"}), call); err != nil {
		t.Fatal(err)
	}
	s.agent.Turn = twice(echo(nil))
	in := flow.Text("go on")
	in.Messages = append([]event.Message{{Role: event.Tool, Parts: []event.Part{event.ToolResult("x1", "old", event.Text("late"))}}}, in.Messages...)
	out, err := s.agent.Run(t.Context(), "s", in)
	if err != nil || out.Message.Text() != "hi|go on" {
		t.Fatalf("%v %+v", err, out.Message)
	}
	var results []event.Part
	for _, m := range out.Messages {
		results = append(results, m.ToolResults()...)
	}
	if len(results) != 2 || results[0].CallID == results[1].CallID || results[0].Interrupted == results[1].Interrupted {
		t.Fatalf("%+v", results)
	}
}

func TestAnAnswerThatSaysNothing(t *testing.T) {
	asked := 0
	m := modelFunc(func(context.Context, *flow.Request, func(eventlog.Delta)) (flow.Response, error) {
		asked++
		return flow.Response{Message: event.Message{StopReason: "blocked", Usage: event.Usage{InputTokens: 3}}, Cost: 5}, nil
	})
	fail := true
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		answer, err := tn.Model(ctx, m, flow.Request{})
		if err == nil && answer.StopReason != "blocked" {
			t.Errorf("%+v", answer)
		}
		if fail {
			return errors.New("later")
		}
		return err
	}}
	if _, err := a.Run(t.Context(), "s", flow.Text("x")); err == nil {
		t.Fatal("no error")
	}
	fail = false
	out, err := again(t.Context(), a, "s")
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || out.StopReason != "blocked" || len(out.Messages) != 1 || out.Spend.Usage.InputTokens != 3 || out.Spend.Cost != 5 {
		t.Fatalf("asked %d, %+v", asked, out)
	}
}

func TestATurnFunctionEndsTheContextOfAnEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			short, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			_, err := flow.Do(short, tn, flow.Effect{Name: "slow"}, func(ctx context.Context) (int, error) {
				ran++
				<-ctx.Done()
				return 0, ctx.Err()
			})
			var failed *flow.EffectError
			if !errors.As(err, &failed) {
				t.Errorf("%v", err)
			}
			return nil
		}}
		defer a.Log.Close()
		if _, err := a.Run(t.Context(), "s", flow.Text("go")); err != nil || ran != 1 {
			t.Fatal(err, ran)
		}
	})
}

func TestACallThatIsNotInTheHistory(t *testing.T) {
	s := newShop(t, nil)
	tool := s.tool(nil)
	tool.Class = ""
	s.agent.Turn = func(ctx context.Context, tn *flow.Turn[notes]) error {
		return tn.Tools(ctx, []flow.ToolSpec{tool}, []event.Part{event.ToolCall("c", "pay", nil)})
	}
	if _, err := s.agent.Run(t.Context(), "s", flow.Text("x")); !errors.Is(err, flow.ErrNotOpen) || s.runs() != 0 {
		t.Fatal(err, s.runs())
	}
}

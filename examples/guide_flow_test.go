package examples

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/capture"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/flow/openai"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// Desk is the custom state of the agents of the guide.
type Desk struct {
	Drawn int       `json:"drawn,omitzero"`
	Due   time.Time `json:"due,omitzero"`
}

func openDesk(t *testing.T) (context.Context, *eventlog.Log) {
	l := eventlog.Open(jsonl.New(t.TempDir()))
	t.Cleanup(func() { l.Close() })
	return t.Context(), l
}

// draw is the turn function of the rules: everything that may differ in the next
// execution is an effect, or follows from the records.
func draw(ctx context.Context, t *flow.Turn[Desk]) error {
	n, err := flow.Do(ctx, t, flow.Effect{Name: "draw", Class: event.EffectPure}, func(context.Context) (int, error) {
		return rand.IntN(100), nil // recorded: the same number whenever the turn is run
	})
	if err != nil {
		return err
	}
	due := t.Now().Add(24 * time.Hour) // the time of the record, not of this execution
	if err := t.Update(func(d *Desk) error { d.Drawn, d.Due = n, due; return nil }); err != nil {
		return err
	}
	return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Drawn; receipt " + t.NewID())}})
}

// weigh is the trap of the lost variable. It tells seen what each execution saw.
func weigh(ctx context.Context, t *flow.Turn[Desk], seen func(lost, kept int)) error {
	var lost int
	_, err := flow.Do(ctx, t, flow.Effect{Name: "weigh"}, func(context.Context) (bool, error) {
		lost = 7 // wrong: 0 when the turn is run again
		return true, nil
	})
	if err != nil {
		return err
	}
	kept, err := flow.Do(ctx, t, flow.Effect{Name: "weigh again"}, func(context.Context) (int, error) {
		return 7, nil // right: 7 in every execution
	})
	if err != nil {
		return err
	}
	seen(lost, kept)
	return t.Sleep(ctx, time.Second)
}

func TestGuideTrap(t *testing.T) {
	t.Parallel()
	ctx, l := openDesk(t)
	var seen []int
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: func(ctx context.Context, t *flow.Turn[Desk]) error {
		return weigh(ctx, t, func(lost, kept int) { seen = append(seen, lost, kept) })
	}}
	agent.Options.InProcess = -1 // the sleep hibernates, so that the turn is run again
	h, err := agent.Send(ctx, "s", flow.Text("Weigh."))
	check(t, err)
	for _, err = h.Wait(ctx); errors.As(err, new(*flow.Hibernated)); _, err = h.Wait(ctx) {
	}
	check(t, err)
	if !slices.Equal(seen, []int{7, 7, 0, 7}) {
		t.Errorf("the executions saw %v", seen)
	}
}

// newer is a turn function whose code has changed since a turn began.
func newer(ctx context.Context, t *flow.Turn[Desk]) error {
	audited, err := t.Patched("audit before the draw")
	if err != nil {
		return err
	}
	if audited {
		if _, err := flow.Do(ctx, t, flow.Effect{Name: "audit"}, audit); err != nil {
			return err
		}
	}
	return draw(ctx, t)
}

func audit(context.Context) (bool, error) { return true, nil }

func TestGuideRules(t *testing.T) {
	ctx, l := openDesk(t)
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: draw, Version: "2026-11-23"}
	out, err := agent.Run(ctx, "s", flow.Text("Draw."))
	check(t, err)
	if out.Custom.Due.IsZero() || out.Message == nil {
		t.Errorf("%+v", out)
	}
	agent.Turn = newer
	_, err = agent.Run(ctx, "s", flow.Text("Draw again."))
	check(t, err)
}

type Payment struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

func pay(_ context.Context, p Payment) (string, error) { return "paid", nil }

// payer asks for a payment, and says the result.
func payer() flow.Model {
	return flowtest.Script{
		flowtest.Say("", event.ToolCall("call-1", "pay", jsontext.Value(`{"order":"A1","cents":1250}`))),
		flowtest.Say("Done."),
	}
}

func newPayDesk(l *eventlog.Log) *flow.Agent[Desk] {
	refund := flow.Tool("pay", "Pays money back.", pay, flow.Once)
	refund.Review = func(_ context.Context, call event.Part) (*flow.Question, error) {
		var p Payment
		if err := json.Unmarshal(call.Arguments, &p); err != nil || p.Cents < 1000 {
			return nil, err // small sums need no review
		}
		return &flow.Question{Prompt: "Pay it back?", Detail: p, Expires: 24 * time.Hour, Lapse: event.LapseDeny}, nil
	}
	model := payer()
	return &flow.Agent[Desk]{Name: "desk", Log: l, Turn: flow.Chat[Desk](model, flow.Request{System: "Be kind."}, refund)}
}

func TestGuideReviews(t *testing.T) {
	ctx, l := openDesk(t)
	agent := newPayDesk(l)
	_, err := agent.Run(ctx, "order-42", flow.Text("Refund A1."))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) {
		t.Fatal(err)
	}
	pending, err := projection.LoadPending(ctx, l, "order-42")
	check(t, err)
	yes := flow.Answer{Review: pending.Approvals[0], Decision: event.Approved, By: "ada"}
	yes.Arguments = jsontext.Value(`{"order":"A1","cents":1000}`) // with another amount
	_, err = flow.Decide(ctx, l, "order-42", yes)
	check(t, err)
	out, err := resume(ctx, agent, "order-42")
	check(t, err)
	same(t, "Done.", out.Message.Text())
}

// answer asks a person in the terminal about each open review.
func answer(ctx context.Context, l *eventlog.Log, pause *flow.Hibernated, terminal *bufio.Scanner) error {
	for _, r := range pause.Reviews {
		fmt.Printf("%s %s: %s [y/N] ", r.Name, r.Arguments, r.Prompt)
		decision := event.Denied
		if terminal.Scan() && terminal.Text() == "y" {
			decision = event.Approved
		}
		if _, err := flow.Decide(ctx, l, pause.Ref.Session, flow.Answer{Review: r, Decision: decision, By: "ada"}); err != nil {
			return err
		}
	}
	return nil
}

func TestGuideTerminal(t *testing.T) {
	ctx, l := openDesk(t)
	agent := newPayDesk(l)
	h, err := agent.Send(ctx, "order-42", flow.Text("Refund A1."))
	check(t, err)
	_, err = h.Wait(ctx)
	var pause *flow.Hibernated
	if !errors.As(err, &pause) || string(pause.Reviews[0].Arguments) != `{"order":"A1","cents":1250}` || pause.Reviews[0].Prompt != "Pay it back?" {
		t.Fatalf("%v %+v", err, pause)
	}
	check(t, answer(ctx, l, pause, bufio.NewScanner(strings.NewReader("y\n"))))
	out, err := h.Wait(ctx)
	check(t, err)
	same(t, "Done.", out.Text())
}

// wait waits for a payment, an hour at most, and then rests.
func wait(send func(token string) error) func(context.Context, *flow.Turn[Desk]) error {
	return func(ctx context.Context, t *flow.Turn[Desk]) error {
		paid, err := t.NewWait(ctx, "payment", time.Hour)
		if err != nil {
			return err
		}
		_, err = flow.Do(ctx, t, flow.Effect{Name: "send link"}, func(context.Context) (bool, error) {
			return true, send(paid.Token)
		})
		if err != nil {
			return err
		}
		cents, err := flow.Await[int](ctx, t, paid)
		if errors.Is(err, flow.ErrExpired) {
			cents, err = 0, nil // an hour is over
		}
		if err != nil {
			return err
		}
		if err := t.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
		return t.Update(func(d *Desk) error { d.Drawn = cents; return nil })
	}
}

func TestGuideWaits(t *testing.T) {
	ctx, l := openDesk(t)
	key := []byte("a secret of 32 bytes or more ...")
	var token string
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: wait(func(s string) error { token = s; return nil })}
	agent.Options.Key = key
	_, err := agent.Run(ctx, "order-42", flow.Text("Send me the link."))
	if !errors.As(err, new(*flow.Hibernated)) {
		t.Fatal(err)
	}
	ref, err := flow.ParseToken(token, key)
	check(t, err)
	_, err = flow.Resolve(ctx, l, ref.Session, ref.Wait, 1250, "the bank")
	check(t, err)
	out, err := resume(ctx, agent, "order-42")
	check(t, err)
	if out.Custom.Drawn != 1250 {
		t.Errorf("%+v", out.Custom)
	}
}

func TestGuideConnections(t *testing.T) {
	ctx, l := openDesk(t)
	model := flowtest.Script{flowtest.Say("In Leipzig.")}
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: flow.Chat[Desk](model, flow.Request{})}
	mail := flow.Text("Where is my parcel?")
	mail.ID = "mail-17" // sent twice, it is stored once
	h, err := agent.Send(ctx, "order-42", mail)
	check(t, err)
	hint := flow.Text("It is A1, not A7.")
	hint.Steer = true // into the running turn, before its next model call
	_, err = agent.Send(ctx, "order-42", hint)
	check(t, err)
	for chunk, err := range h.Receive() {
		check(t, err)
		t.Log(chunk.Text())
	}
	before, err := h.Abort(ctx, "ada", "the customer left")
	check(t, err)
	t.Log(before)
	ref := h.Detach()
	snapshot, err := agent.Snapshot(ctx, ref)
	check(t, err)
	t.Log(snapshot.Status)
	later := flow.Text("Thanks.")
	later.PostOnly = true // for another process, which serves the session
	_, err = agent.Send(ctx, "order-42", later)
	check(t, err)
	out, err := agent.Run(ctx, "order-42", mail)
	check(t, err)
	users := 0
	for _, m := range out.Messages {
		if m.Role == event.User {
			users++
		}
	}
	if users == 0 { // the hint is a second one, if it came before the turn ended
		t.Error("the output of the turn lacks its input")
	}
}

func TestGuideRetries(t *testing.T) {
	ctx, l := openDesk(t)
	broken := true
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: func(ctx context.Context, t *flow.Turn[Desk]) error {
		e := flow.Effect{Name: "post", Retry: flow.Retry{Attempts: 3, First: time.Millisecond}, Timeout: time.Minute}
		if _, err := flow.Do(ctx, t, e, audit); err != nil {
			return err
		}
		if broken {
			return errors.New("a bug")
		}
		return nil
	}}
	agent.Options.Limits = flow.Limits{Calls: 20, Tokens: 200_000, Cost: 2 * event.Dollar, Time: time.Hour}
	order := flow.Text("Go.")
	order.ID = "order-17"
	_, err := agent.Run(ctx, "s", order)
	if !errors.As(err, new(*flow.TurnError)) {
		t.Fatal(err)
	}
	broken = false
	out, err := agent.Run(ctx, "s", order) // the same turn, with the same keys
	check(t, err)
	if out.Status != flow.StatusFinished {
		t.Error(out.Status)
	}
}

// A recorded error is a result: a retry gets it again.
func TestGuideRetryOfARecordedError(t *testing.T) {
	ctx, l := openDesk(t)
	runs := 0
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: func(ctx context.Context, t *flow.Turn[Desk]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "post"}, func(context.Context) (int, error) {
			if runs++; runs < 3 {
				return 0, errors.New("down")
			}
			return runs, nil
		})
		return err
	}}
	order := flow.Text("Go.")
	order.ID = "order-17"
	for n := range 3 {
		_, err := agent.Run(ctx, "s", order)
		if failed := errors.As(err, new(*flow.TurnError)); failed != (n < 2) || runs != n+1 {
			t.Fatal(err, runs)
		}
	}
}

func TestGuideSnapshots(t *testing.T) {
	ctx, l := openDesk(t)
	agent := newPayDesk(l)
	agent.Options.Checkpoint = flow.AfterPrompt
	_, err := agent.Run(ctx, "s", flow.Text("Refund A1."))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) {
		t.Fatal(err)
	}
	key := []byte("a secret of 32 bytes or more ...")
	agent.Options.Key = key
	token, err := pause.Ref.Token(key)
	check(t, err)
	ref, err := flow.ParseToken(token, key)
	check(t, err)
	h, err := agent.Resume(ctx, ref) // goes on after the checkpoint, up to the review
	check(t, err)
	_, err = h.Wait(ctx)
	if !errors.As(err, &pause) || len(pause.Reviews) != 1 {
		t.Fatal(err)
	}
	if _, err = agent.Resume(ctx, ref); !errors.Is(err, flow.ErrConsumed) {
		t.Fatal(err)
	}
	session, err := agent.Begin(ctx, flow.Content[Desk]{Session: "s2", Custom: Desk{Drawn: 7}})
	check(t, err)
	same(t, "s2", session)
	child, err := fork.At(ctx, l, "s", fork.AtSnapshot(pause.Ref.Snapshot), fork.Options{ID: "s3", Force: true})
	check(t, err)
	_, err = resume(ctx, agent, child.ID) // asks anew: the answer to the original does not count
	if !errors.As(err, &pause) || pause.Ref.Session != "s3" {
		t.Fatal(err)
	}
}

func serve(agent *flow.Agent[Desk]) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return agent.Serve(ctx)
}

func TestGuideServes(t *testing.T) {
	ctx, l := openDesk(t)
	model := flowtest.Script{flowtest.Say("In Leipzig.")}
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: flow.Chat[Desk](model, flow.Request{})}
	mail := flow.Text("Where is my parcel?")
	mail.ID = "mail-17"
	mail.PostOnly = true
	webhook := &flow.Agent[Desk]{Name: "desk", Log: l} // no turn function: another process serves
	_, err := webhook.Send(ctx, "order-42", mail)
	check(t, err)
	done := make(chan error)
	go func() { done <- serve(agent) }()
	for e, err := range l.Watch(ctx, "order-42", 1) {
		check(t, err)
		if e.Type.Name() == event.TurnCompleted {
			break
		}
	}
	self, err := os.FindProcess(os.Getpid())
	check(t, err)
	check(t, self.Signal(syscall.SIGTERM))
	check(t, <-done)
	info, err := flow.Info(ctx, l, "order-42")
	check(t, err)
	if info.Status != flow.StatusFinished {
		t.Error(info.Status)
	}
}

func TestGuideTakesOverAndReconciles(t *testing.T) {
	ctx, l := openDesk(t)
	begun := make(chan struct{}, 1)
	agent := &flow.Agent[Desk]{Name: "desk", Log: l, Turn: func(ctx context.Context, t *flow.Turn[Desk]) error {
		n, err := flow.Do(ctx, t, flow.Effect{Name: "pay", Class: event.EffectReconcile}, func(ctx context.Context) (int, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if err != nil {
			return err
		}
		return t.Update(func(d *Desk) error { d.Drawn = n; return nil })
	}}
	first, err := agent.Send(ctx, "order-42", flow.Text("Pay."))
	check(t, err)
	<-begun
	if _, err = agent.Resume(ctx, flow.Ref{Session: "order-42"}); !errors.Is(err, flow.ErrAlreadyRunning) {
		t.Fatal(err)
	}
	_, err = flow.TakeOver(ctx, l, "order-42", "ada")
	check(t, err)
	if _, err = first.Wait(ctx); !errors.Is(err, flow.ErrOvertaken) {
		t.Fatal(err)
	}
	if _, err = resume(ctx, agent, "order-42"); !errors.Is(err, flow.ErrNeedsReconcile) {
		t.Fatal(err)
	}
	info, err := flow.Info(ctx, l, "order-42")
	check(t, err)
	for _, x := range info.Effects {
		_, err = flow.Reconcile(ctx, l, "order-42", x.Key, flow.Outcome{Result: 1250, By: "ada", Reason: "the bank has it"})
		check(t, err)
	}
	out, err := resume(ctx, agent, "order-42")
	check(t, err)
	if out.Custom.Drawn != 1250 {
		t.Error(out.Custom)
	}
}

// A triage agent gives a question to an agent for refunds, and to a tool that is an agent.
func TestGuideChildren(t *testing.T) {
	ctx, l := openDesk(t)
	refunds := &flow.Agent[Desk]{Name: "refunds"}
	refunds.Turn = func(ctx context.Context, t *flow.Turn[Desk]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "pay", Review: &flow.Question{Prompt: "Pay it back?"}}, audit)
		if err != nil {
			return err
		}
		return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Paid.")}})
	}
	triage := &flow.Agent[Desk]{Name: "triage", Log: l}
	triage.Turn = func(ctx context.Context, t *flow.Turn[Desk]) error {
		said, err := flow.Do(ctx, t, flow.Effect{Name: "ask refunds"}, func(ctx context.Context) (string, error) {
			out, err := flow.RunChild(ctx, refunds, t.Input(), flow.ChildOptions{Mode: event.ChildFork})
			if err != nil {
				return "", err
			}
			return out.Message.Text(), nil
		})
		if err != nil {
			return err
		}
		return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("Refunds says: " + said)}})
	}
	tool := flow.AgentTool("refunds", "Pays money back.", refunds, flow.ChildOptions{Mode: event.ChildHandoff, Context: "The customer is Ada."})
	if tool.Name != "refunds" {
		t.Errorf("the tool is named %q", tool.Name)
	}
	_, err := triage.Run(ctx, "order-42", flow.Text("My parcel is lost."))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) {
		t.Fatal(err)
	}
	review := pause.Reviews[0] // of session review.SessionID
	_, err = flow.Decide(ctx, l, "order-42", flow.Answer{Review: review, Decision: event.Approved})
	if err != nil {
		t.Fatal(err)
	}
	out, err := resume(ctx, triage, "order-42")
	if err != nil || out.Message.Text() != "Refunds says: Paid." {
		t.Fatal(out.Message, err)
	}
}

// resume continues a session.
func resume(ctx context.Context, agent *flow.Agent[Desk], session string) (flow.Output[Desk], error) {
	h, err := agent.Resume(ctx, flow.Ref{Session: session})
	if err != nil {
		return flow.Output[Desk]{}, err
	}
	return h.Wait(ctx)
}

func TestGuideRaw(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"In Leipzig."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	l := eventlog.Open(jsonl.New(t.TempDir()))
	defer l.Close()
	key := "sk-key"
	model := &openai.Client{Key: key, HTTP: &http.Client{Transport: &capture.Transport{}}}
	model.BaseURL, model.Model = server.URL, "m"
	agent := &flow.Agent[struct{}]{Name: "support", Log: l, Turn: flow.Chat[struct{}](model, flow.Request{})}
	_, err := agent.Run(t.Context(), "order-42", flow.Text("Where is my parcel?"))
	check(t, err)
	done, err := erase.Raw(t.Context(), l, time.Time{}, nil)
	check(t, err)
	if len(done.Erased) != 2 || len(done.Blobs) != 2 {
		t.Errorf("erased %+v", done)
	}
}

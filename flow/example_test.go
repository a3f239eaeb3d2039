package flow_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/store/memory"
)

type trip struct {
	Booked []string `json:"booked,omitzero"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// An effect runs once. If the process is killed after it, the next run gets the recorded
// result.
func ExampleDo() {
	log := eventlog.Open(memory.New())
	defer log.Close()
	agent := &flow.Agent[trip]{Name: "trips", Log: log, Turn: func(ctx context.Context, t *flow.Turn[trip]) error {
		seat, err := flow.Do(ctx, t, flow.Effect{Name: "book", Arguments: "Leipzig"}, func(context.Context) (string, error) {
			return "seat 12", nil // a call of a server
		})
		if err != nil {
			return err
		}
		return t.Update(func(s *trip) error { s.Booked = append(s.Booked, seat); return nil })
	}}
	out, err := agent.Run(context.Background(), "ada", flow.Text("Book a seat to Leipzig."))
	must(err)
	fmt.Println(out.Custom.Booked, out.Status)
	// Output: [seat 12] finished
}

// The effects of a batch run at the same time. One that fails does not end the others.
func ExampleBatch() {
	log := eventlog.Open(memory.New())
	defer log.Close()
	agent := &flow.Agent[trip]{Name: "trips", Log: log, Turn: func(ctx context.Context, t *flow.Turn[trip]) error {
		var calls []flow.Call[string]
		for _, town := range []string{"Leipzig", "Atlantis", "Halle"} {
			calls = append(calls, flow.Call[string]{
				Effect: flow.Effect{Name: "book", Arguments: town, Retry: flow.Retry{Attempts: 3}},
				Do: func(context.Context) (string, error) {
					if town == "Atlantis" {
						return "", flow.Permanent(errors.New("no trains"))
					}
					return "a seat to " + town, nil
				},
			})
		}
		results, err := flow.Batch(ctx, t, 2, calls...) // two at a time
		for _, r := range results {
			fmt.Printf("%q %v\n", r.Value, r.Err)
		}
		return err
	}}
	_, err := agent.Run(context.Background(), "ada", flow.Text("Book three seats."))
	must(err)
	// Output:
	// "a seat to Leipzig" <nil>
	// "" effect "book": no trains
	// "a seat to Halle" <nil>
}

// A person must approve an effect. Until then the turn hibernates, and no process runs.
func ExampleReview() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer log.Close()
	agent := &flow.Agent[trip]{Name: "trips", Log: log, Turn: func(ctx context.Context, t *flow.Turn[trip]) error {
		e := flow.Effect{Name: "pay", Arguments: 1250, Class: event.EffectUnsafeOnce, Review: &flow.Question{Prompt: "Pay?"}}
		_, err := flow.Do(ctx, t, e, func(context.Context) (int, error) { fmt.Println("paid"); return 1250, nil })
		if errors.Is(err, flow.ErrDenied) {
			return nil
		}
		return err
	}}
	_, err := agent.Run(ctx, "ada", flow.Text("Book a seat."))
	var pause *flow.Hibernated
	if errors.As(err, &pause) {
		fmt.Println("asks about", pause.Reviews[0].Name)
	}
	// In any process:
	_, err = flow.Decide(ctx, log, "ada", flow.Answer{Review: pause.Reviews[0], Decision: event.Approved})
	must(err)
	h, err := agent.Resume(ctx, flow.Ref{Session: "ada"})
	must(err)
	out, err := h.Wait(ctx)
	must(err)
	fmt.Println(out.Status)
	// Output:
	// asks about pay
	// paid
	// finished
}

// A turn waits for something outside, at most a day. Whoever has the token resolves it.
func ExampleAwait() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer log.Close()
	tokens := make(chan string, 1)
	agent := &flow.Agent[trip]{Name: "trips", Log: log, Turn: func(ctx context.Context, t *flow.Turn[trip]) error {
		arrival, err := t.NewWait(ctx, "arrival", 24*time.Hour)
		if err != nil {
			return err
		}
		_, err = flow.Do(ctx, t, flow.Effect{Name: "subscribe"}, func(context.Context) (bool, error) {
			tokens <- arrival.Token // for example in the address of a callback
			return true, nil
		})
		if err != nil {
			return err
		}
		town, err := flow.Await[string](ctx, t, arrival)
		if errors.Is(err, flow.ErrExpired) {
			town, err = "nowhere", nil
		}
		if err != nil {
			return err // the turn hibernates
		}
		fmt.Println("arrived in", town)
		return nil
	}}
	_, err := agent.Run(ctx, "ada", flow.Text("Tell me when I am there."))
	fmt.Println(errors.As(err, new(*flow.Hibernated)))

	wait, err := flow.ParseToken(<-tokens, nil)
	must(err)
	_, err = flow.Resolve(ctx, log, wait.Session, wait.Wait, "Leipzig", "the railway")
	must(err)
	h, err := agent.Resume(ctx, flow.Ref{Session: "ada"})
	must(err)
	_, err = h.Wait(ctx)
	must(err)
	// Output:
	// true
	// arrived in Leipzig
}

// An agent that answers with a model and its tools. The script replaces a model; see
// flow/openai and flow/anthropic.
func ExampleChat() {
	log := eventlog.Open(memory.New())
	defer log.Close()
	type town struct {
		Name string `json:"name"`
	}
	weather := flow.Tool("weather", "The weather of a town.", func(_ context.Context, t town) (string, error) {
		return "rain in " + t.Name, nil
	})
	script := flowtest.Script{
		flowtest.Say("", event.ToolCall("call-1", "weather", []byte(`{"name":"Leipzig"}`))),
		flowtest.Say("Take an umbrella."),
	}
	agent := &flow.Agent[trip]{Name: "trips", Log: log, Turn: flow.Chat[trip](script, flow.Request{System: "Be brief."}, weather)}
	h, err := agent.Send(context.Background(), "ada", flow.Text("What shall I pack?"))
	must(err)
	for chunk, err := range h.Receive() {
		must(err)
		if chunk.Message != nil {
			fmt.Println(chunk.Message.Role, chunk.Message.Text(), len(chunk.Message.ToolCalls()), "calls")
		}
	}
	// Output:
	// assistant  1 calls
	// tool  0 calls
	// assistant Take an umbrella. 0 calls
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// runAgent is the program logtool-agent STORE SESSION [retry] TEXT: it runs one turn of
// a small agent, or continues the open turn if TEXT is empty. The words of the text say
// what the turn does. The program prints how it ended.
func runAgent() {
	if err := converse(os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func converse(args []string) error {
	at, err := parsePlace(args[0], isFile, isDir)
	if err != nil {
		return err
	}
	retry := args[2] == "retry"
	return at.with(forWriting, func(log *eventlog.Log) error {
		a := &flow.Agent[struct{}]{Name: "shop", Log: log, Turn: shop(retry), Options: flow.Options{Runner: "till-1", InProcess: -1}}
		out, err := runTurn(context.Background(), a, args[1], args[len(args)-1], retry)
		if err != nil {
			return err
		}
		fmt.Println(out.Status)
		return nil
	})
}

// runTurn runs a turn, continues the open turn, or tries the turn that failed again.
func runTurn(ctx context.Context, a *flow.Agent[struct{}], session, text string, retry bool) (flow.Output[struct{}], error) {
	in := flow.Text(text)
	for e, err := range a.Log.Read(ctx, session, eventlog.All()) {
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return flow.Output[struct{}]{}, err
		}
		if p, ok, _ := event.Decode[event.TurnStart](&e); ok && retry {
			in.ID = p.InputID
		}
	}
	if text != "" {
		return a.Run(ctx, session, in)
	}
	h, err := a.Resume(ctx, flow.Ref{Session: session})
	if err != nil {
		return flow.Output[struct{}]{}, err
	}
	return h.Wait(ctx)
}

// shop is the turn function. The word fail makes the turn fail, except if it is retried.
func shop(retry bool) func(context.Context, *flow.Turn[struct{}]) error {
	return func(ctx context.Context, t *flow.Turn[struct{}]) error {
		words := strings.Fields(t.Input().Messages[0].Text())
		if slices.Contains(words, "count") {
			if _, err := flow.Do(ctx, t, flow.Effect{Name: "count", Arguments: words}, func(context.Context) (int, error) { return len(words), nil }); err != nil {
				return err
			}
		}
		if err := flow.Chat[struct{}](clerk{}, flow.Request{Model: "m-1"}, tools(words)...)(ctx, t); err != nil {
			return err
		}
		if slices.Contains(words, "wait") {
			w, err := t.NewWait(ctx, "parcel", 1000*time.Hour)
			if err != nil {
				return err
			}
			value, err := flow.Await[jsontext.Value](ctx, t, w)
			if err != nil {
				return err
			}
			if err := t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("The parcel is " + string(value) + ".")}}); err != nil {
				return err
			}
		}
		if slices.Contains(words, "fail") && !retry {
			return errors.New("the till is locked")
		}
		return nil
	}
}

// clerk is a model that calls each tool that the user names, and then tells the results.
type clerk struct{}

func (clerk) Generate(_ context.Context, r *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
	m := event.Message{Role: event.Assistant, Model: r.Model, StopReason: "stop", Usage: event.Usage{InputTokens: 10, OutputTokens: 2}}
	last := r.Messages[len(r.Messages)-1].Message
	if last.Role == event.User {
		for i, word := range strings.Fields(last.Text()) {
			if slices.ContainsFunc(r.Tools, func(t flow.ToolSpec) bool { return t.Name == word }) {
				m.Parts = append(m.Parts, event.ToolCall(fmt.Sprintf("call-%d-%d", len(r.Messages), i), word, jsontext.Value(`{"order":"A1"}`)))
			}
		}
	}
	if len(m.Parts) == 0 {
		m.Parts = []event.Part{event.Text("All done.")}
	}
	return flow.Response{Message: m, Cost: event.Dollar / 100}, nil
}

// tools are the tools of the agent. The word soon makes reviews expire at once.
func tools(words []string) []flow.ToolSpec {
	tool := func(name string, class event.EffectClass, run func(ctx context.Context, arguments string) (string, error)) flow.ToolSpec {
		return flow.ToolSpec{Name: name, Class: class, Retry: flow.Retry{Attempts: 3, First: time.Nanosecond},
			Run: func(ctx context.Context, call event.Part) ([]event.Part, error) {
				text, err := run(ctx, string(call.Arguments))
				return []event.Part{event.Text(text)}, err
			}}
	}
	pay := tool("pay", event.EffectUnsafeOnce, func(_ context.Context, arguments string) (string, error) { return "paid " + arguments, nil })
	pay.Review = func(context.Context, event.Part) (*flow.Question, error) {
		r := &flow.Question{Prompt: "Pay this order?"}
		if slices.Contains(words, "soon") {
			r.Expires = time.Nanosecond
		}
		return r, nil
	}
	return []flow.ToolSpec{
		pay,
		tool("look", event.EffectPure, func(context.Context, string) (string, error) { return "It costs 3.", nil }),
		tool("flaky", event.EffectIdempotent, func(ctx context.Context, _ string) (string, error) {
			if run, _ := flow.FromContext(ctx); run.Attempt == 1 {
				return "", errors.New("the line is busy")
			}
			return "It rings.", nil
		}),
		tool("delegate", event.EffectIdempotent, delegate(event.ChildFresh, "pay")),
		tool("inherit", event.EffectIdempotent, delegate(event.ChildFork, "pay")),
		tool("send", event.EffectIdempotent, delegate(event.ChildFresh, "ship")),
		tool("ship", event.EffectReconcile, func(context.Context, string) (string, error) {
			os.Exit(7)
			return "", nil
		}),
		tool("hang", event.EffectPure, func(ctx context.Context, _ string) (string, error) {
			fmt.Println("hanging")
			<-ctx.Done()
			return "", ctx.Err()
		}),
	}
}

// delegate lets another agent do a task.
func delegate(mode event.ChildMode, task string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) {
		_, err := flow.RunChild(ctx, &flow.Agent[struct{}]{Name: "till", Turn: shop(false)}, flow.Text(task), flow.ChildOptions{Mode: mode})
		return "It is done.", err
	}
}

package replaytest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay/replaytest"
	"github.com/convlog/convlog/store/memory"
)

var update = flag.Bool("update", false, "record the sessions of testdata anew")

// model and tool are the functions of an agent that a test replaces.
type (
	model = func(context.Context, []event.Message) (event.Event, error)
	tool  = func(context.Context, event.Part) (event.Part, error)
)

// answer is an agent: it asks the model until the model calls no more tools.
func answer(ctx context.Context, log *eventlog.Log, question string, ask model, run tool) error {
	next := event.UserMessage(question)
	var history []event.Message
	for {
		if _, err := log.Append(ctx, session, eventlog.Any(), next); err != nil {
			return err
		}
		said, _, err := event.Decode[event.Message](&next)
		if err != nil {
			return err
		}
		history = append(history, said)
		if said.Role == event.Assistant && len(said.ToolCalls()) == 0 {
			return nil
		}
		if next, err = answerTo(ctx, history, ask, run); err != nil {
			return err
		}
	}
}

func answerTo(ctx context.Context, history []event.Message, ask model, run tool) (event.Event, error) {
	var results []event.Part
	for _, call := range history[len(history)-1].ToolCalls() {
		result, err := run(ctx, call)
		if err != nil {
			return event.Event{}, err
		}
		results = append(results, result)
	}
	if len(results) > 0 {
		return event.ToolMessage(results...), nil
	}
	return ask(ctx, history)
}

// liveModel calls a tool, and then tells the user its result.
func liveModel(_ context.Context, history []event.Message) (event.Event, error) {
	results := history[len(history)-1].ToolResults()
	if len(results) == 0 {
		call := event.ToolCall(fmt.Sprint("call_", len(history)), "orders", jsontext.Value(`{"order":"A1"}`))
		return event.New(event.Message{Role: event.Assistant, Parts: []event.Part{call}}), nil
	}
	e := event.AssistantMessage("Your order: " + results[0].Content[0].Text)
	e.Cost = 7
	return e, nil
}

func liveTool(_ context.Context, call event.Part) (event.Part, error) {
	return event.ToolResult(call.CallID, call.Name, event.Text("on its way")), nil
}

func noModel(context.Context, []event.Message) (event.Event, error) {
	return event.Event{}, errors.New("the model is asked")
}

// rerun runs the agent with a recording, which it checks at the end.
func rerun(t testing.TB, path, question string, opts ...replaytest.Options) error {
	recording := replaytest.Open(t, path, opts...)
	log := eventlog.Open(memory.New())
	defer func() { _ = log.Close() }()
	live, run := model(nil), tool(nil)
	if len(opts) > 0 && opts[0].Update {
		live, run = liveModel, liveTool
	}
	err := answer(t.Context(), log, question, replaytest.Model(recording, live), recording.Tool(run))
	recording.Check(t, log, session)
	return err
}

func TestRecordAndReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refund.jsonl")
	if err := rerun(t, path, "Where is A1?", replaytest.Options{Update: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a recording is read again
		if err := rerun(t, path, "Where is A1?"); err != nil {
			t.Fatal(err)
		}
	}
}

// The recording in testdata is made by this test: go test -run Recorded -update.
func TestRecordedSession(t *testing.T) {
	if err := rerun(t, "testdata/order.jsonl", "Where is A1?", replaytest.Options{Update: *update}); err != nil {
		t.Fatal(err)
	}
}

// A changed agent fails the test where it differs.
func TestChangedRunFails(t *testing.T) {
	f := fail(func(f *fake) { _ = rerun(f, "testdata/order.jsonl", "Where is A2?") })
	if want := "at event 1, message_added, in data.parts[0].text"; !strings.Contains(f.errors, want) {
		t.Errorf("got %q, want %q", f.errors, want)
	}
}

// A call that is not in the recording is an error, and does not reach a model.
func TestNotRecorded(t *testing.T) {
	recording := replaytest.Open(t, "testdata/order.jsonl")
	ask := replaytest.Model(recording, noModel)
	for range 2 {
		if _, err := ask(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ask(t.Context(), nil); !errors.Is(err, replaytest.ErrNotRecorded) {
		t.Errorf("a third answer: %v", err)
	}
	run := recording.Tool(nil)
	call := event.ToolCall("call_1", "orders", nil)
	if _, err := run(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"call_1", "call_9"} {
		call.CallID = id
		if _, err := run(t.Context(), call); !errors.Is(err, replaytest.ErrNotRecorded) || !strings.Contains(err.Error(), id) {
			t.Errorf("a result of %s: %v", id, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ask(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("asked with an ended context: %v", err)
	}
	if _, err := run(ended, call); !errors.Is(err, context.Canceled) {
		t.Errorf("run with an ended context: %v", err)
	}
}

// A run that fails writes no recording.
func TestFailedRunIsNotRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refund.jsonl")
	f := fail(func(f *fake) {
		f.failed = true
		_ = rerun(f, path, "Where is A1?", replaytest.Options{Update: true})
	})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || f.fatal != "" {
		t.Errorf("stat: %v; %q", err, f.fatal)
	}
}

package runlog_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/store/memory"
)

// An effect is one op: a tool call with its effect and its review, a model call that was
// tried again, a wait with the effect that records its end.
func TestAnEffectIsOneOp(t *testing.T) {
	g := &garden.Garden{T: t, Log: eventlog.Open(memory.New())}
	defer g.Log.Close()
	turn := do(g, event.TurnStart{})
	intent := func(key, kind, name string, attempt int, arguments string) event.EffectIntent {
		return event.EffectIntent{Key: key, TurnID: turn, Kind: kind, Name: name, Class: event.EffectPure, Attempt: attempt, Arguments: jsontext.Value(arguments)}
	}
	done := func(key string, attempt int) event.EffectCompletion {
		return event.EffectCompletion{Key: key, TurnID: turn, Attempt: attempt}
	}
	failed := done("m", 1)
	failed.RetryAt, failed.Error = time.Unix(9, 0).UTC(), &event.EffectError{Message: "busy"}
	do(g, intent("m", "model", "m-1", 1, "{}"), event.StepStart{TurnID: turn, Model: "m-1"}, failed,
		intent("m", "model", "m-1", 2, "{}"), intent("m", "model", "m-1", 3, "{}"),
		event.Message{Role: event.Assistant, Model: "m-1", Parts: []event.Part{event.ToolCall("c", "pay", jsontext.Value(`{"n":1}`))}},
		event.StepCompletion{TurnID: turn, Model: "m-1"}, done("m", 3))
	pause := func(kind, id, wait string) event.TurnHibernation {
		return event.TurnHibernation{TurnID: turn, SnapshotID: "p" + id, Cursor: event.Cursor{ID: id, Kind: kind, InterruptID: wait}}
	}
	do(g, event.ApprovalRequest{InterruptID: "i", EffectID: "t", CallID: "c", Name: "pay", TurnID: turn, CursorID: "1", Prompt: "Pay?"},
		pause("review", "1", ""),
		event.ApprovalResolution{InterruptID: "i", Decision: event.Approved, By: "ann", Arguments: jsontext.Value(`{"n":2}`)},
		event.TurnResumption{TurnID: turn, CursorID: "1"},
		intent("t", "tool", "pay", 1, `{"n":2}`), event.ToolStart{CallID: "c", Name: "pay", IdempotencyKey: "t"},
		event.ToolCompletion{CallID: "c", Name: "pay", IdempotencyKey: "t"},
		event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c", "pay", event.Text("paid"))}}, done("t", 1))
	do(g, event.Wait{WaitID: "w", TurnID: turn, Reason: "parcel"}, pause("wait", "2", "w"),
		event.Wait{Resolved: true, WaitID: "w", Outcome: event.WaitWasResolved},
		intent("x", "wait", "wait", 1, `"w"`), done("x", 1), says(event.Text("the program says so")))
	run, err := runlog.Load(t.Context(), g.Log, "s")
	if err != nil {
		t.Fatal(err)
	}
	ops := run.Turns[0].Ops
	if len(run.Ops) > 0 || len(ops) != 3 || len(run.Turns[0].Pauses) > 0 {
		t.Fatalf("%d ops in the turn, %d outside", len(ops), len(run.Ops))
	}
	model, tool, wait := ops[0], ops[1], ops[2]
	if model.Kind != runlog.LLMOp || model.Status != runlog.OpOK || len(model.Attempts) != 2 ||
		model.Attempts[0].Error != "busy" || model.Attempts[1].Number != 2 || model.Attempts[1].Error != "" ||
		model.Attempts[1].Seq != model.Attempts[0].Seq+1 {
		t.Errorf("%+v", model)
	}
	if tool.Kind != runlog.ToolOp || tool.Status != runlog.OpOK || len(tool.Reviews) != 1 || len(tool.Pauses) != 1 || tool.Pauses[0].Resumed.IsZero() {
		t.Errorf("%+v", tool)
	}
	if r := tool.Reviews[0]; r.Decision != event.Approved || r.By != "ann" || r.Prompt != "Pay?" || string(r.Arguments) != `{"n":2}` {
		t.Errorf("%+v", r)
	}
	if wait.Name != "wait parcel" || wait.Status != runlog.OpOK || len(wait.Pauses) != 1 || !wait.Pauses[0].Resumed.IsZero() {
		t.Errorf("%+v", wait)
	}
}

// An effect whose error is taken back has an op for the attempts before and one for those
// after.
func TestAResultThatIsTakenBack(t *testing.T) {
	g := &garden.Garden{T: t, Log: eventlog.Open(memory.New())}
	defer g.Log.Close()
	turn := do(g, event.TurnStart{})
	intent := event.EffectIntent{Key: "k", TurnID: turn, Ordinal: "0", Kind: "effect", Name: "post", Class: event.EffectPure, Attempt: 1}
	failed := event.EffectCompletion{Key: "k", TurnID: turn, Ordinal: "0", Attempt: 1, Error: &event.EffectError{Message: "down"}}
	again := failed
	again.RetryAt = time.Unix(9, 0).UTC()
	second := intent
	second.Attempt = 2
	do(g, intent, failed, again, second, event.EffectCompletion{Key: "k", TurnID: turn, Ordinal: "0", Attempt: 2, Result: jsontext.Value("7")})
	run, err := runlog.Load(t.Context(), g.Log, "s")
	if err != nil {
		t.Fatal(err)
	}
	ops := run.Turns[0].Ops
	if len(ops) != 2 || ops[0].Status != runlog.OpFailed || ops[0].Error != "down" || ops[1].Status != runlog.OpOK || string(ops[1].Response) != "7" {
		t.Fatalf("%+v", ops)
	}
}

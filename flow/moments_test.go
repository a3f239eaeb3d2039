package flow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// counting is an agent whose tool counts in the state. A turn has two answers with calls, of
// two calls and of one, and a last answer.
func counting(t *testing.T) *flow.Agent[notes] {
	t.Helper()
	tool := flow.Tool("count", "Counts.", func(ctx context.Context, _ struct{}) (string, error) {
		return "counted", flow.Update(ctx, func(n *notes) error { n.Count++; return nil })
	})
	n := 0
	say := func(text string, calls int) func(context.Context, *flow.Request) (flow.Response, error) {
		return func(ctx context.Context, r *flow.Request) (flow.Response, error) {
			var parts []event.Part
			for range calls {
				n++
				parts = append(parts, event.ToolCall(fmt.Sprint("c", n), "count", nil))
			}
			return flowtest.Say(text, parts...)(ctx, r)
		}
	}
	model := flowtest.Script{say("", 2), say("", 1), say("done", 0)}
	return &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: flow.Chat[notes](model, flow.Request{}, tool)}
}

// countIn is the state of the agent among the states of an opportunity.
func countIn(t *testing.T, states projection.States) string {
	t.Helper()
	if states == nil {
		return "none"
	}
	custom, _ := projection.State(states, projection.Custom())
	n, err := projection.Typed[notes](custom.Get("a"), 0, nil)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprint(n.Count)
}

// The policy is asked once at each end of the calls of an answer, of a turn and of a run, and
// gets the state and the state of the snapshot before.
func TestMomentsOfSnapshots(t *testing.T) {
	a := counting(t)
	var asked []string
	a.Options.Snapshots.Policy = func(o *projection.Opportunity) bool {
		before, err := o.PreviousStates()
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, fmt.Sprintf("%s %d %d: %s, %s", o.Trigger, o.TurnIndex, o.Index, countIn(t, before), countIn(t, o.Live)))
		return true
	}
	for n, want := range [][]string{
		{"tool_iteration_end 0 0: none, 2", "tool_iteration_end 0 1: 2, 3", "turn_end 0 2: 3, 3", "invocation_end 0 3: 3, 3"},
		{"tool_iteration_end 1 3: 3, 5", "tool_iteration_end 1 4: 5, 6", "turn_end 1 5: 6, 6", "invocation_end 1 6: 6, 6"},
	} {
		asked = nil
		out, err := a.Run(t.Context(), "s", flow.Text("go"))
		if err != nil || !slices.Equal(asked, want) {
			t.Fatalf("run %d: %v, asked\n%s", n, err, strings.Join(asked, "\n"))
		}
		var made []string
		for s, err := range projection.Snapshots(t.Context(), a.Log, "s", false) {
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, s.Snapshot.SnapshotID)
		}
		slices.Reverse(made)
		if len(made) != 3*(n+1) || !slices.Equal(out.Snapshots, made[3*n:]) && !slices.Equal(out.Snapshots, made[:3]) {
			t.Fatalf("run %d: made %v, output %v", n, made, out.Snapshots)
		}
	}
}

// A start from the snapshot after the calls of an answer leaves the rest of the turn: the next
// input has the state and the messages of the snapshot, which is the parent of the next one. A
// fork at the snapshot continues the turn, and no call runs again.
func TestAStartAfterTheCallsOfAnAnswer(t *testing.T) {
	a := counting(t)
	a.Options.Snapshots.Policy = func(o *projection.Opportunity) bool { return o.Trigger == projection.ToolIterationEnd }
	out, err := a.Run(t.Context(), "s", flow.Text("go"))
	if err != nil || len(out.Snapshots) != 2 || out.Custom.Count != 3 {
		t.Fatalf("%v %+v", err, out)
	}
	at := flow.Ref{Session: "s", Snapshot: out.Snapshots[0]}
	before, err := a.Snapshot(t.Context(), at)
	if err != nil || before.Custom.Count != 2 || len(before.Messages) != 4 {
		t.Fatalf("%v %+v", err, before)
	}
	if _, err := fork.At(t.Context(), a.Log, "s", fork.AtSnapshot(at.Snapshot), fork.Options{ID: "f", Force: true}); err != nil {
		t.Fatal(err)
	}
	forked, err := resume(t.Context(), a, "f")
	if err != nil || forked.Custom.Count != 3 || forked.Text() != "done" || forked.StopReason != "stop" {
		t.Fatalf("%v %+v", err, forked)
	}
	if out, err = resumeAt(t.Context(), a, at); err != nil || out.Custom.Count != 2 || out.StopReason != "interrupted" {
		t.Fatalf("%v %+v", err, out)
	}
	if out, err = a.Run(t.Context(), "s", flow.Text("on")); err != nil || out.Custom.Count != 5 || len(out.Messages) != 4+7 {
		t.Fatalf("%v %+v", err, out)
	}
	next, err := a.Snapshot(t.Context(), flow.Ref{Session: "s", Snapshot: out.Snapshots[0]})
	if err != nil || next.Parent != at.Snapshot || next.Index != before.Index+1 {
		t.Fatalf("%v %+v", err, next)
	}
}

// At the end of a run, a change since the end of the turn gets a snapshot. A failed turn gets
// none.
func TestTheEndOfARun(t *testing.T) {
	a := counting(t)
	chat := a.Turn
	a.Turn = func(ctx context.Context, tn *flow.Turn[notes]) error {
		if tn.Input().Messages[0].Text() == "fail" {
			return fmt.Errorf("no")
		}
		return chat(ctx, tn)
	}
	var asked []string
	a.Options.Snapshots.Policy = func(o *projection.Opportunity) bool {
		asked = append(asked, o.Trigger)
		return o.Trigger == projection.InvocationEnd
	}
	out, err := a.Run(t.Context(), "s", flow.Text("go"))
	if err != nil || len(out.Snapshots) != 1 {
		t.Fatalf("%v %+v", err, out)
	}
	asked = nil
	if _, err := a.Run(t.Context(), "s", flow.Text("fail")); err == nil || len(asked) != 0 {
		t.Fatalf("%v, asked %v", err, asked)
	}
}

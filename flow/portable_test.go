package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

// Values that JSON cannot encode: with such arguments nothing runs and nothing is recorded; an
// effect with such a result has run, and the error is its result in every execution; a state
// stays as it was.
func TestValuesThatAreNotPortable(t *testing.T) {
	type state struct{ Share float64 }
	executions, ran, again := 0, 0, true
	a := &flow.Agent[state]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[state]) error {
		executions++
		one := func(context.Context) (int, error) { ran++; return 1, nil }
		if _, err := flow.Do(ctx, tn, flow.Effect{Name: "arguments", Arguments: make(chan int)}, one); !errors.Is(err, flow.ErrNotPortable) {
			t.Errorf("arguments: %v", err)
		}
		if err := tn.Update(func(s *state) error { s.Share = math.NaN(); return nil }); !errors.Is(err, flow.ErrNotPortable) {
			t.Errorf("state: %v", err)
		}
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "result"}, func(context.Context) (func(), error) { ran++; return func() {}, nil })
		if failed := new(flow.EffectError); !errors.As(err, &failed) || failed.Code != "failed" || ran != executions {
			t.Errorf("result: %v, ran %d", err, ran)
		}
		if again {
			return errors.New("again")
		}
		return tn.Update(func(s *state) error { s.Share++; return nil })
	}}
	in := flow.Text("go")
	in.ID = "i"
	if _, err := a.Run(t.Context(), "s", in); err == nil {
		t.Fatal("no error")
	}
	again = false
	out, err := a.Run(t.Context(), "s", in)
	if err != nil || out.Custom.Share != 1 || executions != 2 || ran != 2 {
		t.Fatalf("%v %+v, %d executions, ran %d", err, out.Custom, executions, ran)
	}
}

// A state with a member that the type of the agent lacks stops the run before anything runs, and
// the turn stays open. A migration drops the member.
func TestAMemberThatTheStateLacks(t *testing.T) {
	log := openLog(t)
	raw := func() string {
		custom, err := projection.Load(t.Context(), log, "s", projection.Custom())
		if err != nil {
			t.Fatal(err)
		}
		return string(custom.State.Get("a").Raw())
	}
	whole := event.CustomPatch{Name: "a", Patch: jsontext.Value(`[{"op":"add","path":"","value":{"Count":1,"color":"red"}}]`)}
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.New(event.Session{Agent: "a"}), event.New(whole)); err != nil {
		t.Fatal(err)
	}
	count := func(_ context.Context, tn *flow.Turn[notes]) error {
		return tn.Update(func(n *notes) error { n.Count++; return nil })
	}
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: count}
	if _, err := a.Run(t.Context(), "s", flow.Text("go")); err == nil || errors.As(err, new(*flow.TurnError)) || raw() != `{"Count":1,"color":"red"}` {
		t.Fatalf("%v %s", err, raw())
	}
	a.StateVersion, a.Migrations = 1, projection.Migrations{0: func(old jsontext.Value) (jsontext.Value, error) {
		var n notes
		err := json.Unmarshal(old, &n)
		return jsontext.Value(fmt.Sprintf(`{"Count":%d}`, n.Count)), err
	}}
	if _, err := resume(t.Context(), a, "s"); err != nil || raw() != `{"Count":2}` {
		t.Fatalf("%v %s", err, raw())
	}
}

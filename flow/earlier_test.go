package flow_test

import (
	"context"
	"os"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
)

// A folder that the build of commit e58251aa wrote: an erased event, a fork, and a turn that
// asks "Pay?" after a completed effect. This program opens all of it, and the turn ends.
func TestAFolderOfAnEarlierBuild(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/earlier")); err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(jsonl.New(dir, jsonl.Options{}))
	defer log.Close()
	agent := &flow.Agent[notes]{Name: "trips", Log: log, Turn: func(ctx context.Context, turn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, turn, flow.Effect{Name: "choose", Class: event.EffectPure}, func(context.Context) (string, error) {
			t.Error("the completed effect runs again")
			return "", nil
		})
		if err != nil {
			return err
		}
		e := flow.Effect{Name: "pay", Arguments: 1250, Class: event.EffectUnsafeOnce, Review: &flow.Question{Prompt: "Pay?"}}
		_, err = flow.Do(ctx, turn, e, func(context.Context) (int, error) { return 1250, nil })
		return err
	}}
	_, err := connect(t.Context(), agent, "ada")
	asks := paused(t, err)
	if _, err := flow.Decide(t.Context(), log, "ada", answerTo(asks.Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	if out, err := resumeAt(t.Context(), agent, flow.Ref{Session: "ada"}); err != nil || out.Status != flow.StatusFinished {
		t.Fatalf("%v %+v", err, out)
	}
	for parent, err := range log.Ancestors(t.Context(), "aside") {
		if err != nil || parent.Session != "ada" && parent.Session != "aside" {
			t.Errorf("the parent of the fork: %v %+v", err, parent)
		}
	}
	first, err := log.Event(t.Context(), "ada", 1)
	if err != nil || !first.Redacted() {
		t.Errorf("the erased event: %v %+v", err, first)
	}
	for defect, err := range verify.Store(t.Context(), log) {
		t.Error(defect, err)
	}
}

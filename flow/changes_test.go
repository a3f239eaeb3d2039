package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// coded runs a turn function that is written as a text, one step a line:
//
//	do NAME ARGUMENT     an effect
//	text NAME ARGUMENT   an effect with a result of another type
//	once NAME ARGUMENT   an effect of class reconcile
//	review NAME ARGUMENT an effect with a review
//	batch NAME …         a batch; a name that ends with ? has a review
//	wait NAME, await     the two halves of a wait
//	sleep, model         Turn.Sleep and Turn.Model
//	patched NAME: STEP   a step that is guarded
//
// The effect "hang" does not return in the first execution.
type coded struct {
	log  *eventlog.Log
	hang bool
	ran  []string
	wait flow.Pending
}

func (c *coded) agent(code string) *flow.Agent[notes] {
	a := &flow.Agent[notes]{Name: "a", Log: c.log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		for line := range strings.SplitSeq(code, "; ") {
			if err := c.step(ctx, tn, strings.Fields(line)); err != nil {
				return err
			}
		}
		return nil
	}}
	a.Options.InProcess = -1
	return a
}

func (c *coded) step(ctx context.Context, tn *flow.Turn[notes], words []string) (err error) {
	run := func(ctx context.Context, name string) error {
		c.ran = append(c.ran, name)
		if name == "hang" && c.hang {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	e := flow.Effect{Name: words[min(1, len(words)-1)], Arguments: words[min(2, len(words)-1)]}
	switch words[0] {
	case "do", "review", "once":
		if words[0] == "review" {
			e.Review = &flow.Question{Prompt: "May I?"}
		}
		if words[0] == "once" {
			e.Class = event.EffectReconcile
		}
		_, err = flow.Do(ctx, tn, e, func(ctx context.Context) (int, error) { return 1, run(ctx, e.Name) })
	case "text":
		_, err = flow.Do(ctx, tn, e, func(ctx context.Context) (string, error) { return "1", run(ctx, e.Name) })
	case "batch":
		var calls []flow.Call[int]
		for _, name := range words[1:] {
			name, asks := strings.CutSuffix(name, "?")
			call := flow.Call[int]{Effect: flow.Effect{Name: name}, Do: func(ctx context.Context) (int, error) { return 1, run(ctx, name) }}
			if asks {
				call.Review = &flow.Question{Prompt: "May I?"}
			}
			calls = append(calls, call)
		}
		_, err = flow.Batch(ctx, tn, 1, calls...)
	case "wait":
		c.wait, err = tn.NewWait(ctx, words[1], 0)
	case "await":
		_, err = flow.Await[int](ctx, tn, c.wait)
	case "sleep":
		err = tn.Sleep(ctx, time.Hour)
	case "model":
		_, err = tn.Model(ctx, flowtest.Script{flowtest.Say("Yes.")}, flow.Request{})
	case "patched":
		ok, failed := tn.Patched(strings.TrimSuffix(words[1], ":"))
		if err = failed; ok && err == nil {
			err = c.step(ctx, tn, words[2:])
		}
	default:
		err = fmt.Errorf("no step %q", words[0])
	}
	return err
}

// begin runs the first code up to its open record, and answers what it waits for.
func (c *coded) begin(t *testing.T, code string, checkpoint flow.Checkpoint) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c.hang = true
	a := c.agent(code)
	a.Options.Checkpoint = checkpoint
	h, err := a.Send(ctx, "s", flow.Text("go"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	time.Sleep(time.Minute)
	stop()
	_, _ = h.Wait(t.Context())
	c.hang = false
	c.answer(t)
	time.Sleep(2 * time.Hour) // a sleep ends
	c.ran = nil
}

func (c *coded) answer(t *testing.T) {
	t.Helper()
	info, err := flow.Info(t.Context(), c.log, "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range info.Approvals {
		if _, err := flow.Decide(t.Context(), c.log, "s", answerTo(r, event.Approved)); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range info.Waits {
		if w.Until.IsZero() {
			if _, err := flow.Resolve(t.Context(), c.log, "s", w.WaitID, 1, "the bank"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each change of the code between two runs either goes on, or is refused with the place and
// the difference, and nothing runs. Then the old code still ends the turn.
func TestChangesOfCode(t *testing.T) {
	const (
		effect = "do a 1; do hang 1; do c 1"
		review = "do a 1; review b 1; do c 1"
		waits  = "do a 1; wait w; do link 1; await; do c 1"
		sleeps = "do a 1; sleep; do c 1"
		batch  = "do a 1; batch b hang d; do c 1"
		asks   = "do a 1; batch b? d; do c 1"
		marked = "patched p: do new 1; do hang 1; do c 1"
	)
	for _, row := range []struct {
		change, open, code string
		want               string // the member of the difference; else what runs
	}{
		// A killed effect is open.
		{"nothing", effect, effect, "runs hang c"},
		{"inserted before", effect, "do new 1; do a 1; do hang 1; do c 1", "name"},
		{"inserted at", effect, "do a 1; do new 1; do hang 1; do c 1", "name"},
		{"inserted after", effect, "do a 1; do hang 1; do new 1; do c 1", "runs hang new c"},
		{"a wait inserted before", effect, "wait w; do a 1; do hang 1", "kind"},
		{"a wait inserted at", effect, "do a 1; wait w; do hang 1", "kind"},
		{"a sleep inserted at", effect, "do a 1; sleep; do hang 1", "kind"},
		{"a guarded step inserted before", effect, "patched p: do new 1; do a 1; do hang 1; do c 1", "runs hang c"},
		{"a guarded step inserted after", effect, "do a 1; do hang 1; patched p: do new 1; do c 1", "runs hang new c"},
		{"removed before", effect, "do hang 1; do c 1", "name"},
		{"removed at", effect, "do a 1; do c 1", "name"},
		{"removed at the end", effect, "do a 1", "end"},
		{"removed after", effect, "do a 1; do hang 1", "runs hang"},
		{"moved", effect, "do hang 1; do a 1; do c 1", "name"},
		{"another argument before", effect, "do a 2; do hang 1; do c 1", "arguments"},
		{"another argument at", effect, "do a 1; do hang 2; do c 1", "arguments"},
		{"another argument after", effect, "do a 1; do hang 1; do c 2", "runs hang c"},
		{"effect to model", effect, "do a 1; model; do c 1", "kind"},
		{"effect to batch", effect, "do a 1; batch hang; do c 1", "batch"},
		{"effect to wait", effect, "do a 1; wait hang; await", "kind"},
		{"effect to review", effect, "do a 1; review hang 1; do c 1", "runs hang c"},
		{"a more careful class", effect, "do a 1; once hang 1; do c 1", "unknown"},
		{"another type of a result", effect, "text a 1; do hang 1; do c 1", "result"},
		// A review was answered.
		{"inserted before a review", review, "do a 1; do new 1; review b 1; do c 1", "name"},
		{"review to wait", review, "do a 1; wait b; await; do c 1", "kind"},
		{"review to batch", review, "do a 1; batch b?; do c 1", "batch"},
		{"review to sleep", review, "do a 1; sleep; do c 1", "kind"},
		{"review to effect", review, "do a 1; do b 1; do c 1", "runs b c"},
		{"another argument of a review", review, "do a 1; review b 2; do c 1", "arguments"},
		{"a review removed", review, "do a 1; do c 1", "name"},
		// A wait was answered.
		{"inserted before a wait", waits, "do a 1; do new 1; wait w; do link 1; await; do c 1", "kind"},
		{"inserted before an await", waits, "do a 1; wait w; do link 1; do new 1; await; do c 1", "kind"},
		{"a wait removed", waits, "do a 1; do link 1; do c 1", "kind"},
		{"an await removed", waits, "do a 1; wait w; do link 1; do c 1", "kind"},
		{"another name of a wait", waits, "do a 1; wait v; do link 1; await; do c 1", "name"},
		{"wait to batch", waits, "do a 1; batch b; do link 1; do c 1", "kind"},
		{"await to review", waits, "do a 1; wait w; do link 1; review b 1; do c 1", "kind"},
		{"a wait moved", waits, "do a 1; do link 1; wait w; await; do c 1", "kind"},
		{"another type of a value", waits, strings.Replace(waits, "await", "text w w", 1), "kind"},
		{"inserted after an await", waits, waits + "; do new 1", "runs c new"},
		// A sleep is over.
		{"inserted before a sleep", sleeps, "do a 1; do new 1; sleep; do c 1", "kind"},
		{"sleep to wait", sleeps, "do a 1; wait w; await; do c 1", "name"},
		{"a sleep removed", sleeps, "do a 1; do c 1", "kind"},
		{"a second sleep", sleeps, "do a 1; sleep; do c 1; sleep", "waits c"},
		// A killed batch is open.
		{"a batch grown", batch, "do a 1; batch b hang d new; do c 1", "batch"},
		{"a batch smaller", batch, "do a 1; batch b hang; do c 1", "batch"},
		{"batch to effect", batch, "do a 1; do b 1; do c 1", "batch"},
		{"batch to wait", batch, "do a 1; wait b; await", "kind"},
		{"a batch in another order", batch, "do a 1; batch hang b d; do c 1", "name"},
		{"a batch with an answered review to effect", asks, "do a 1; do b 1; do c 1", "batch"},
		{"a batch with an answered review, first removed", asks, "do a 1; batch d; do c 1", "name"},
		{"a batch with an answered review, grown", asks, "do a 1; batch b? d new; do c 1", "runs b d new c"},
		{"a batch with an answered review to wait", asks, "do a 1; wait b; await", "kind"},
		// Older code with a guarded change is replaced.
		{"a guard removed, its step kept", marked, "do new 1; do hang 1; do c 1", "kind"},
		{"another guard", marked, "patched q: do new 1; do hang 1; do c 1", "kind"},
		{"a guard removed with its step", marked, "do hang 1; do c 1", "kind"},
	} {
		t.Run(row.change, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &coded{log: eventlog.Open(memory.New())}
				defer c.log.Close()
				c.begin(t, row.open, 0)
				_, err := resume(t.Context(), c.agent(row.code), "s")
				c.check(t, row.want, err)
				if !strings.Contains(row.want, " ") {
					c.ends(t, row.open)
				}
			})
		})
	}
}

func (c *coded) check(t *testing.T, want string, err error) {
	t.Helper()
	var d *flow.DivergenceError
	var pause *flow.Hibernated
	outcome, ran, _ := strings.Cut(want, " ")
	switch outcome {
	case "runs":
		if err != nil || !slices.Equal(c.ran, strings.Fields(ran)) {
			t.Fatalf("%v, ran %v", err, c.ran)
		}
	case "waits":
		if !errors.As(err, &pause) || !slices.Equal(c.ran, strings.Fields(ran)) {
			t.Fatalf("%v, ran %v", err, c.ran)
		}
	case "unknown":
		if !errors.Is(err, flow.ErrNeedsReconcile) || len(c.ran) > 0 {
			t.Fatalf("%v, ran %v", err, c.ran)
		}
	default:
		if !errors.As(err, &d) || d.Member != want || d.Seq == 0 || d.Session != "s" || len(c.ran) > 0 {
			t.Fatalf("%v, ran %v", err, c.ran)
		}
	}
}

// ends checks that the first code ends the turn.
func (c *coded) ends(t *testing.T, code string) {
	t.Helper()
	if info, err := flow.Info(t.Context(), c.log, "s"); err != nil || info.Turn == nil || slices.ContainsFunc(info.Waits, func(w projection.OpenWait) bool { return w.Until.IsZero() }) {
		t.Fatalf("the turn does not stay open: %v %+v", err, info)
	}
	if out, err := resume(t.Context(), c.agent(code), "s"); err != nil || out.Status != flow.StatusFinished {
		t.Fatalf("the first code does not end the turn: %v", err)
	}
	if len(c.ran) == 0 || slices.Contains(c.ran, "a") {
		t.Fatalf("ran %v", c.ran)
	}
}

// A checkpoint has the kind and the name of the effect that comes next.
func TestChangesOfCodeAtACheckpoint(t *testing.T) {
	for code, want := range map[string]string{
		"do a 1; do b 1":           "waits a", // the checkpoint before b
		"do new 1; do a 1; do b 1": "name",
		"wait w; await":            "kind",
		"batch a":                  "batch",
		"sleep; do a 1":            "kind",
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &coded{log: eventlog.Open(memory.New())}
				defer c.log.Close()
				c.begin(t, "do a 1; do b 1", flow.BeforeEachEffect)
				a := c.agent(code)
				a.Options.Checkpoint = flow.BeforeEachEffect
				_, err := resume(t.Context(), a, "s")
				c.check(t, want, err)
			})
		})
	}
}

// A review that nobody answered is not left out by newer code.
func TestAReviewIsRemovedBeforeItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := eventlog.Open(memory.New())
		defer log.Close()
		ran := 0
		agent := func(review *flow.Question) *flow.Agent[notes] {
			return &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
				_, err := flow.Do(ctx, tn, flow.Effect{Name: "pay", Review: review}, func(context.Context) (int, error) { ran++; return 1, nil })
				return err
			}}
		}
		lapses := agent(&flow.Question{Prompt: "Pay?", Expires: time.Minute})
		var pause *flow.Hibernated
		if _, err := lapses.Run(t.Context(), "s", flow.Text("go")); !errors.As(err, &pause) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		var d *flow.DivergenceError
		if _, err := resume(t.Context(), agent(nil), "s"); !errors.As(err, &d) || d.Member != "review" || d.Recorded != "Pay?" || ran > 0 {
			t.Fatalf("%v, ran %d", err, ran)
		}
	})
}

// A fork of a turn that has passed a wait continues after the wait.
func TestAForkAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []string{
			"do a 1; wait w; do link 1; await; model; review hang 1",
			"do a 1; wait w; model; do link 1; await",
		} {
			c := &coded{log: eventlog.Open(memory.New())}
			defer c.log.Close()
			_, err := c.agent(code).Run(t.Context(), "s", flow.Text("go"))
			var pause *flow.Hibernated
			if !errors.As(err, &pause) || len(pause.Waits) != 1 {
				t.Fatal(err)
			}
			if strings.HasSuffix(code, "review hang 1") {
				c.answer(t)
				if _, err := resume(t.Context(), c.agent(code), "s"); !errors.As(err, &pause) || len(pause.Reviews) != 1 {
					t.Fatal(err)
				}
			}
			if _, err := fork.At(t.Context(), c.log, "s", fork.Head(), fork.Options{ID: "f", Force: true}); err != nil {
				t.Fatal(err)
			}
			c.ran = nil
			if _, err := resume(t.Context(), c.agent(code), "f"); !errors.As(err, &pause) || pause.Ref.Session != "f" {
				t.Fatal(err)
			}
			for _, w := range pause.Waits {
				if _, err := flow.Resolve(t.Context(), c.log, "f", w.WaitID, 1, "the bank"); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range pause.Reviews {
				if _, err := flow.Decide(t.Context(), c.log, "f", answerTo(r, event.Approved)); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := resume(t.Context(), c.agent(code), "f"); err != nil || out.Status != flow.StatusFinished || slices.Contains(c.ran, "link") {
				t.Fatalf("%q: %v %v, ran %v", code, out.Status, err, c.ran)
			}
		}
	})
}

package flow_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

func TestAReviewOfAGrandchild(t *testing.T) {
	for _, mode := range []event.ChildMode{event.ChildFresh, event.ChildHandoff, event.ChildFork} {
		for _, through := range []string{"top", "low"} {
			t.Run(string(mode)+" through "+through, func(t *testing.T) {
				f := newFamily(t)
				f.mode = mode
				_, err := f.top.Run(t.Context(), "s", flow.Text("the bill"))
				var pause *flow.Hibernated
				if !errors.As(err, &pause) || len(pause.Reviews) != 1 || pause.Reviews[0].SessionID == "" {
					t.Fatalf("the first run: %v, %+v", err, pause)
				}
				before, _ := f.log.Head(t.Context(), "s")
				if _, err := connect(t.Context(), f.top, "s"); !errors.As(err, &pause) {
					t.Fatalf("a start without an answer: %v", err)
				}
				if after, _ := f.log.Head(t.Context(), "s"); after != before {
					t.Errorf("a start without an answer appended: %v, then %v", before, after)
				}
				review, at := pause.Reviews[0], "s"
				if through == "low" {
					at = review.SessionID
				}
				if _, err := flow.Decide(t.Context(), f.log, at, answerTo(review, event.Approved)); err != nil {
					t.Fatal(err)
				}
				if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(review, event.Denied)); !errors.Is(err, flow.ErrAnswered) {
					t.Errorf("a second answer: %v", err)
				}
				out, err := resume(t.Context(), f.top, "s")
				if err != nil || out.Message.Text() != "middle: low: paid the bill" || f.paid.Load() != 1 {
					t.Fatalf("the last run: %v, %+v, paid %d times", err, out.Message, f.paid.Load())
				}
				if len(out.Artifacts) != 1 || out.Artifacts[0].Name != "receipt" || out.Artifacts[0].SessionID != review.SessionID {
					t.Errorf("artifacts: %+v", out.Artifacts)
				}
				f.check(t, 3)
			})
		}
	}
}

// One of two people who answer at the same time, one in the parent and one in the child,
// decides.
func TestTwoPlacesToAnswer(t *testing.T) {
	for range 20 {
		f := newFamily(t)
		_, err := f.top.Run(t.Context(), "s", flow.Text("the bill"))
		var pause *flow.Hibernated
		if !errors.As(err, &pause) {
			t.Fatal(err)
		}
		review := pause.Reviews[0]
		var stood atomic.Int64
		var group sync.WaitGroup
		for _, at := range []string{"s", review.SessionID} {
			for _, decision := range []event.Decision{event.Approved, event.Denied} {
				group.Go(func() {
					switch _, err := flow.Decide(t.Context(), f.log, at, answerTo(review, decision)); {
					case err == nil:
						stood.Add(1)
					case !errors.Is(err, flow.ErrAnswered):
						t.Error(err)
					}
				})
			}
		}
		group.Wait()
		if stood.Load() != 1 {
			t.Fatalf("%d answers stood", stood.Load())
		}
	}
}

// A client of the parent answers a review of a grandchild while the parent's runner lives.
func TestAConnectionOfTheParentAnswersAReviewBelow(t *testing.T) {
	for _, direct := range []bool{false, true} {
		f := newFamily(t)
		c, err := connect(t.Context(), f.top, "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SendText("the bill"); err != nil {
			t.Fatal(err)
		}
		var pause *flow.Hibernated
		for _, err := range c.Receive() {
			errors.As(err, &pause)
		}
		if pause == nil || len(pause.Reviews) != 1 {
			t.Fatalf("hibernation: %+v", pause)
		}
		answer := answerTo(pause.Reviews[0], event.Approved)
		if direct {
			_, err = flow.Decide(t.Context(), f.log, pause.Reviews[0].SessionID, answer)
		} else {
			_, err = flow.Decide(t.Context(), f.log, "s", answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		for chunk, err := range c.Receive() {
			if err != nil {
				t.Fatal(err)
			}
			ended = ended || chunk.EndTurn != nil
		}
		if !ended || f.paid.Load() != 1 {
			t.Errorf("ended %v, paid %d", ended, f.paid.Load())
		}
		if _, err := c.Output(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A server continues the parent after an answer in the session of a grandchild. A server
// of the child's agent leaves the child to its parent.
func TestServeContinuesAParent(t *testing.T) {
	f := newFamily(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 3)
	for _, a := range []*flow.Agent[notes]{f.top, f.middle, f.low} {
		b := *a
		b.Log = f.log
		go func() { served <- b.Serve(ctx) }()
	}
	bill := flow.Text("the bill")
	bill.PostOnly = true
	if _, err := f.top.Send(t.Context(), "s", bill); err != nil {
		t.Fatal(err)
	}
	info := waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return i.Status == flow.StatusHibernated && i.Runner == "" })
	if len(info.Approvals) != 1 {
		t.Fatalf("open reviews: %+v", info.Approvals)
	}
	if _, err := flow.Decide(t.Context(), f.log, info.Approvals[0].SessionID, answerTo(info.Approvals[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return i.Status == flow.StatusFinished })
	stop()
	for range 3 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if f.paid.Load() != 1 {
		t.Errorf("paid %d times", f.paid.Load())
	}
	f.check(t, 3)
}

func waitFor(t *testing.T, log *eventlog.Log, session string, is func(flow.RunInfo) bool) flow.RunInfo {
	t.Helper()
	for {
		info, err := flow.Info(t.Context(), log, session)
		if err != nil {
			t.Fatal(err)
		}
		if is(info) {
			return info
		}
		time.Sleep(time.Millisecond)
	}
}

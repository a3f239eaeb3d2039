package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// waiting runs the family until the grandchild waits for its review.
func (f *family) waiting(t *testing.T) *flow.Hibernated {
	t.Helper()
	_, err := f.top.Run(t.Context(), "s", flow.Text("the bill"))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) || len(pause.Reviews) != 1 {
		t.Fatalf("%v, %+v", err, pause)
	}
	return pause
}

// Answers are recorded all or none if one of them names no review, also in a session that
// has children.
func TestAnUnknownReviewBesideAChild(t *testing.T) {
	f := newFamily(t)
	review := f.waiting(t).Reviews[0]
	for _, id := range []string{"nothing", ""} {
		unknown := answerTo(projection.OpenApproval{InterruptID: id}, event.Approved)
		_, err := flow.Decide(t.Context(), f.log, "s", unknown, answerTo(review, event.Approved))
		if !errors.Is(err, flow.ErrNotOpen) || !strings.Contains(err.Error(), `of session "s"`) {
			t.Errorf("an answer to review %q: %v", id, err)
		}
		if info, err := flow.Info(t.Context(), f.log, review.SessionID); err != nil || len(info.Approvals) != 1 {
			t.Errorf("the other answer was recorded: %+v, %v", info.Approvals, err)
		}
	}
}

// A parent shows the review of a child while another child runs, and takes its answer.
func TestAReviewBesideARunningChild(t *testing.T) {
	f, began := newFamily(t), make(chan struct{}, 1)
	slow := sleeper(began)
	f.top.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
		run := func(a *flow.Agent[notes]) flow.Call[int] {
			return flow.Call[int]{Effect: flow.Effect{Name: a.Name}, Do: func(ctx context.Context) (int, error) {
				_, err := flow.RunChild(ctx, a, t.Input(), flow.ChildOptions{})
				return 0, err
			}}
		}
		_, err := flow.Batch(ctx, t, 2, run(f.middle), run(slow))
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	c, err := connect(ctx, f.top, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendText("the bill"); err != nil {
		t.Fatal(err)
	}
	<-began
	info := waitFor(t, f.log, "s", func(i flow.RunInfo) bool { return len(i.Approvals) == 1 })
	if info.Status != flow.StatusRunning {
		t.Errorf("the parent is %s", info.Status)
	}
	review := info.Approvals[0]
	if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(review, event.Approved)); err != nil {
		t.Error(err)
	}
	if info, err = flow.Info(t.Context(), f.log, "s"); err != nil || len(info.Approvals) != 0 {
		t.Errorf("reviews after the answer: %+v, %v", info.Approvals, err)
	}
	stop()
	<-c.Done()
}

// A fork or a copy of a parent that waits has no part in the child of the original: its
// abort does not abort the child, and its own run has children of its own.
func TestAForkOfAParentThatWaits(t *testing.T) {
	for name, branch := range map[string]func(context.Context, *eventlog.Log) (string, error){
		"fork": func(ctx context.Context, log *eventlog.Log) (string, error) {
			head, err := log.Head(ctx, "s")
			if err != nil {
				return "", err
			}
			x, err := fork.At(ctx, log, "s", fork.AtSeq(head.Seq), fork.Options{Force: true})
			return x.ID, err
		},
		"copy": func(ctx context.Context, log *eventlog.Log) (string, error) {
			x, err := fork.Copy(ctx, log, "s", fork.CopyOptions{})
			return x.ID, err
		},
	} {
		for _, abort := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " abort ", abort), func(t *testing.T) {
				f := newFamily(t)
				review := f.waiting(t).Reviews[0]
				id, err := branch(t.Context(), f.log)
				if err != nil {
					t.Fatal(err)
				}
				if info, err := flow.Info(t.Context(), f.log, id); err != nil || len(info.Approvals) != 0 {
					t.Errorf("the branch is %s, and shows %+v, %v", info.Status, info.Approvals, err)
				}
				if abort {
					if _, err := flow.Abort(t.Context(), f.log, id, event.Abort{}); err != nil {
						t.Fatal(err)
					}
				} else {
					_, err := resume(t.Context(), f.top, id)
					var pause *flow.Hibernated
					if !errors.As(err, &pause) || len(pause.Reviews) != 1 || pause.Reviews[0].SessionID == review.SessionID {
						t.Fatalf("the run of the branch: %v, %+v", err, pause)
					}
				}
				if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(review, event.Approved)); err != nil {
					t.Fatal(err)
				}
				out, err := resume(t.Context(), f.top, "s")
				if err != nil || out.Message.Text() != "middle: low: paid the bill" || f.paid.Load() != 1 {
					t.Errorf("the original: %v, %+v, paid %d times", err, out.Message, f.paid.Load())
				}
			})
		}
	}
}

// A parent that was rewound to before its turn has no child, and takes the next input.
func TestARewindOfAParentThatWaits(t *testing.T) {
	f := newFamily(t)
	review := f.waiting(t).Reviews[0]
	if _, err := fork.Rewind(t.Context(), f.log, "s", fork.BeforeTurn(0)); err != nil {
		t.Fatal(err)
	}
	if info, err := flow.Info(t.Context(), f.log, "s"); err != nil || len(info.Approvals) != 0 || info.Turn != nil {
		t.Errorf("%+v, %v", info, err)
	}
	_, err := f.top.Run(t.Context(), "s", flow.Text("the bill"))
	var pause *flow.Hibernated
	if !errors.As(err, &pause) || len(pause.Reviews) != 1 || pause.Reviews[0].SessionID == review.SessionID {
		t.Fatalf("%v, %+v", err, pause)
	}
	if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(pause.Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	if out, err := resume(t.Context(), f.top, "s"); err != nil || f.paid.Load() != 1 {
		t.Errorf("%v, %+v, paid %d times", err, out.Message, f.paid.Load())
	}
}

// A parent that starts from the snapshot of its hibernation finds its child where it is.
func TestAParentFromItsSnapshot(t *testing.T) {
	f := newFamily(t)
	pause := f.waiting(t)
	if _, err := resumeAt(t.Context(), f.top, flow.Ref{Session: "s", Snapshot: pause.Ref.Snapshot}); !errors.As(err, &pause) {
		t.Fatal(err)
	}
	if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(pause.Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	if out, err := resumeAt(t.Context(), f.top, flow.Ref{Session: "s", Snapshot: pause.Ref.Snapshot}); err != nil || f.paid.Load() != 1 {
		t.Fatalf("%v, %+v, paid %d times", err, out.Message, f.paid.Load())
	}
	_, err := resumeAt(t.Context(), f.top, flow.Ref{Session: "s", Snapshot: pause.Ref.Snapshot})
	if !errors.Is(err, flow.ErrConsumed) {
		t.Errorf("the second continuation: %v", err)
	}
	f.check(t, 3)
}

// A child that was removed begins anew, in a session with the same id.
func TestARemovedChild(t *testing.T) {
	for _, mode := range []event.ChildMode{event.ChildFresh, event.ChildHandoff, event.ChildFork} {
		for _, answered := range []bool{true, false} {
			t.Run(fmt.Sprint(mode, " answered ", answered), func(t *testing.T) {
				f := newFamily(t)
				f.mode = mode
				f.top.Turn = delegate(f.low, &f.mode)
				review := f.waiting(t).Reviews[0]
				if answered {
					if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(review, event.Approved)); err != nil {
						t.Fatal(err)
					}
				}
				if err := erase.Remove(t.Context(), f.log, review.SessionID); err != nil {
					t.Fatal(err)
				}
				if info, err := flow.Info(t.Context(), f.log, "s"); err != nil || len(info.Approvals) != 0 {
					t.Errorf("%+v, %v", info.Approvals, err)
				}
				if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(review, event.Approved)); err == nil {
					t.Error("an answer to a removed child")
				}
				_, err := resume(t.Context(), f.top, "s")
				var pause *flow.Hibernated
				if !errors.As(err, &pause) || len(pause.Reviews) != 1 || pause.Reviews[0].InterruptID == review.InterruptID {
					t.Fatalf("%v, %+v", err, pause)
				}
				if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(pause.Reviews[0], event.Approved)); err != nil {
					t.Fatal(err)
				}
				if out, err := resume(t.Context(), f.top, "s"); err != nil || f.paid.Load() != 1 {
					t.Errorf("%v, %+v, paid %d times", err, out.Message, f.paid.Load())
				}
				f.check(t, 3) // with the notes of the store
			})
		}
	}
}

// An erased text of a child, in the child or in its parent, does not come back.
func TestErasedAnswersOfAChild(t *testing.T) {
	for _, open := range []bool{true, false} {
		t.Run(fmt.Sprint("open ", open), func(t *testing.T) {
			f := newFamily(t)
			if !open {
				pause := f.waiting(t)
				if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(pause.Reviews[0], event.Approved)); err != nil {
					t.Fatal(err)
				}
				if _, err := resume(t.Context(), f.top, "s"); err != nil {
					t.Fatal(err)
				}
			} else {
				f.waiting(t)
			}
			for s, err := range f.log.Sessions(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				var seqs []int64
				for e, err := range f.log.Read(t.Context(), s.ID, eventlog.All()) {
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(string(e.Data), "the bill") {
						seqs = append(seqs, e.Seq)
					}
				}
				if len(seqs) > 0 {
					if _, err := erase.Redact(t.Context(), f.log, s.ID, seqs, erase.RedactOptions{Reason: "asked"}); err != nil {
						t.Fatal(s.ID, err)
					}
				}
			}
			info, err := flow.Info(t.Context(), f.log, "s")
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range info.Approvals {
				if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(r, event.Approved)); err != nil {
					t.Error(err)
				}
			}
			out, err := resume(t.Context(), f.top, "s")
			if err != nil || f.paid.Load() != 1 {
				t.Errorf("%s: %v, paid %d times", out.Status, err, f.paid.Load())
			}
			for s := range f.log.Sessions(t.Context()) {
				for e, err := range f.log.Read(t.Context(), s.ID, eventlog.All()) {
					if err != nil || strings.Contains(string(e.Data), "the bill") {
						t.Errorf("%s #%d %s: %s, %v", s.ID, e.Seq, e.Type, e.Data, err)
					}
				}
			}
		})
	}
}

// Newer code runs another agent in the effect of an open child: name, version and state
// differ.
func TestAnotherAgentForAnOpenChild(t *testing.T) {
	type cart struct{ Items []string }
	f := newFamily(t)
	f.top.Turn = delegate(f.low, &f.mode)
	review := f.waiting(t).Reviews[0]
	if _, err := flow.Decide(t.Context(), f.log, "s", answerTo(review, event.Approved)); err != nil {
		t.Fatal(err)
	}
	newer := &flow.Agent[cart]{Name: "newer", Version: "2", StateVersion: 7, Turn: func(ctx context.Context, t *flow.Turn[cart]) error {
		return errors.New("other code ran")
	}}
	f.top.Turn = func(ctx context.Context, t *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "delegate"}, func(ctx context.Context) (string, error) {
			_, err := flow.RunChild(ctx, newer, t.Input(), flow.ChildOptions{})
			return "", err
		})
		return err
	}
	_, err := resume(t.Context(), f.top, "s")
	if !errors.Is(err, flow.ErrStart) || !strings.Contains(err.Error(), `belongs to agent "low", not "newer"`) {
		t.Errorf("another agent for the child: %v", err)
	}
	f.top.Turn = delegate(f.low, &f.mode)
	if out, err := resume(t.Context(), f.top, "s"); err != nil || out.Message.Text() != "low: paid the bill" || f.paid.Load() != 1 {
		t.Errorf("the agent of before: %v, %+v, paid %d times", err, out.Message, f.paid.Load())
	}
	f.check(t, 2)
}

// An abort at one level and an answer at another at the same instant, also while the
// family continues, leave no open child, and the effect runs at most once.
func TestAbortAndAnswerAcrossLevels(t *testing.T) {
	for i := range 30 {
		f := newFamily(t)
		review := f.waiting(t).Reviews[0]
		aborted := []string{"s", review.SessionID}[i%2]
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := flow.Abort(t.Context(), f.log, aborted, event.Abort{}); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			_, err := flow.Decide(t.Context(), f.log, "s", answerTo(review, event.Approved))
			if err != nil && !errors.Is(err, flow.ErrAnswered) && !errors.Is(err, flow.ErrNotOpen) {
				t.Error(err)
			}
		})
		group.Go(func() { _, _ = resume(t.Context(), f.top, "s") })
		group.Wait()
		_, err := resume(t.Context(), f.top, "s")
		var failed *flow.TurnError
		if err != nil && !errors.As(err, &failed) {
			t.Errorf("round %d: %v", i, err)
		}
		if f.paid.Load() > 1 {
			t.Errorf("round %d: paid %d times", i, f.paid.Load())
		}
		f.check(t, 3)
	}
}

// A runner that was killed after a request to abort its turn leaves the children open. The
// next abort, of the session or of its parent, ends them.
func TestAbortAfterAKilledAbort(t *testing.T) {
	for _, requested := range []string{"top", "middle"} {
		t.Run(requested, func(t *testing.T) {
			f := newFamily(t)
			review := f.waiting(t).Reviews[0]
			at := "s"
			if requested == "middle" {
				low, err := flow.Info(t.Context(), f.log, review.SessionID)
				if err != nil {
					t.Fatal(err)
				}
				at = low.Parent
			}
			info, err := flow.Info(t.Context(), f.log, at)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.log.Append(t.Context(), at, eventlog.Any(), event.New(event.Abort{TurnID: info.Turn.ID})); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second one finds nothing to end
				if _, err := flow.Abort(t.Context(), f.log, "s", event.Abort{}); err != nil {
					t.Fatal(err)
				}
			}
			for info, err := range flow.Runs(t.Context(), f.log) {
				if err != nil || info.Status != flow.StatusAborted || info.Aborted != nil {
					t.Errorf("%s: %s, %+v, %v", info.Session, info.Status, info.Aborted, err)
				}
			}
			f.check(t, 3)
		})
	}
}

package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

// An answer or an abort that comes while a runner hibernates finds the runner alive, and starts
// none: the runner continues the turn. It comes before the release of the session, or of a child
// whose parents have not hibernated.
func TestAnAnswerBeforeTheRelease(t *testing.T) {
	for _, at := range []event.Type{event.RunReleased, event.TurnHibernated} {
		for _, what := range []string{"in the top", "in the child", "abort"} {
			for _, released := range []string{"top", "middle", "low"} {
				if at == event.TurnHibernated && released == "low" {
					continue // the same append asks the review
				}
				t.Run(what+" before "+string(at)+" of "+released, func(t *testing.T) {
					answerBefore(t, at, what, released)
				})
			}
		}
	}
}

func answerBefore(t *testing.T, at event.Type, what, released string) {
	f := newFamily(t)
	data := memory.New()
	others := eventlog.Open(data.Handle())
	defer others.Close()
	told := false
	f.log = eventlog.Open(data, eventlog.Options{Hook: func(ctx context.Context, session string, e *event.Event) error {
		if told || e.Type != at {
			return nil
		}
		info, err := flow.Info(ctx, others, session)
		if err != nil || info.Agent != released {
			return err
		}
		told = true
		return tell(ctx, others, what)
	}})
	t.Cleanup(func() { f.log.Close() })
	f.top.Log = f.log
	h, err := f.top.Send(t.Context(), "s", flow.Text("the bill"))
	if err != nil {
		t.Fatal(err)
	}
	h.Detach() // Wait would continue the turn, whoever has the session
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range f.log.Watch(ctx, "s", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.TurnCompleted {
			break
		}
	}
	out, err := h.Wait(t.Context())
	if !told {
		t.Fatal("nothing was told")
	}
	if what == "abort" {
		if !errors.Is(err, flow.ErrAborted) || out.StopReason != "aborted" || f.paid.Load() != 0 {
			t.Fatalf("%v, %q, paid %d times", err, out.StopReason, f.paid.Load())
		}
		return
	}
	if err != nil || out.Message.Text() != "middle: low: paid the bill" || f.paid.Load() != 1 {
		t.Fatalf("%v, %+v, paid %d times", err, out.Message, f.paid.Load())
	}
}

// tell answers the open review of the tree of session s, or aborts its turn.
func tell(ctx context.Context, log *eventlog.Log, what string) error {
	if what == "abort" {
		_, err := flow.Abort(ctx, log, "s", event.Abort{By: "test"})
		return err
	}
	session := "s"
	for {
		info, err := flow.Info(ctx, log, session)
		if err != nil {
			return err
		}
		if len(info.Approvals) > 0 && (what == "in the top" || len(info.Children) == 0) {
			_, err := flow.Decide(ctx, log, session, answerTo(info.Approvals[0], event.Approved))
			return err
		}
		if len(info.Children) == 0 {
			return errors.New("no session has a review")
		}
		session = info.Children[0].SessionID
	}
}

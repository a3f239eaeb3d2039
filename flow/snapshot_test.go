package flow_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// A process is killed between a hibernation, or the end of a turn, and its snapshot. The
// reference in the log can be read and continued.
func TestASnapshotThatWasNotMade(t *testing.T) {
	for name, kill := range map[string]bool{"killed": true, "declined": false} {
		t.Run(name, func(t *testing.T) {
			data := memory.New()
			defer data.Close()
			other := eventlog.Open(data.Handle())
			defer other.Close()
			var handle *memory.Store
			newShopAt := func() *shop {
				handle = data.Handle()
				s := &shop{log: eventlog.Open(&hookStore{handle, func(events []event.Event) {
					if kill && events[0].Type.Name() == event.ProjectionSnapshotted {
						handle.Close()
					}
				}}), ran: map[string]int{}}
				t.Cleanup(func() { s.log.Close() })
				s.agent = flow.Agent[notes]{Name: "shop", Log: s.log, Turn: flow.Chat[notes](answerWith(&s.calls), flow.Request{}, s.tool(ask("Pay?")))}
				s.agent.Options.Snapshots.Policy = func(o *projection.Opportunity) bool { return kill && o.Trigger != projection.ToolIterationEnd }
				return s
			}
			s := newShopAt()
			_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
			if kill == errors.As(err, new(*flow.Hibernated)) {
				t.Fatal(err)
			}
			next := newShopAt()
			_, err = connect(t.Context(), &next.agent, "s")
			h := paused(t, err)
			if _, err := projection.Find(t.Context(), other, "s", h.Ref.Snapshot); !errors.Is(err, projection.ErrSnapshotNotFound) {
				t.Fatal(err)
			}
			read, err := next.agent.Snapshot(t.Context(), h.Ref)
			if err != nil || read.Status != flow.StatusHibernated || len(read.Messages) != 3 || read.Ref != h.Ref {
				t.Fatalf("%v %+v", err, read)
			}
			if _, err := resumeAt(t.Context(), &next.agent, flow.Ref{Session: "s", Snapshot: h.Ref.Snapshot}); paused(t, err).Ref != h.Ref {
				t.Fatal(err)
			}
			if _, err := flow.Decide(t.Context(), other, "s", answerTo(h.Reviews[0], event.Approved)); err != nil {
				t.Fatal(err)
			}
			token, err := h.Ref.Token(nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = resumeAt(t.Context(), &next.agent, parsed(t, token))
			if !kill && err != nil || next.runs() != 1 {
				t.Fatalf("%v, ran %d", err, next.runs())
			}
			last := newShopAt()
			kill = false
			if _, err := resumeAt(t.Context(), &last.agent, parsed(t, token)); !errors.Is(err, flow.ErrConsumed) {
				t.Fatal(err)
			}
			checkReserved(t, last)
		})
	}
}

func parsed(t *testing.T, token string) flow.Ref {
	t.Helper()
	ref, err := flow.ParseToken(token, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// checkReserved continues after the end of the turn of a session, by the id that its
// turn_started reserved.
func checkReserved(t *testing.T, s *shop) {
	t.Helper()
	var start event.TurnStart
	for e, err := range s.log.Read(t.Context(), "s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type.Name() == event.TurnStarted {
			if start, _, err = event.Decode[event.TurnStart](&e); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.agent.Turn = twice(echo(nil))
	if _, err := s.agent.Run(t.Context(), "s", flow.Text("later")); err != nil {
		t.Fatal(err)
	}
	if _, err := resumeAt(t.Context(), &s.agent, flow.Ref{Session: "s", Snapshot: start.SnapshotID}); err != nil {
		t.Fatal(err)
	}
	out, err := s.agent.Run(t.Context(), "s", flow.Text("instead"))
	if err != nil || out.Message.Text() != "A1|instead" {
		t.Fatalf("%v %+v", err, out.Message)
	}
}

// A checkpoint that a rewind took off the path is continued by one start.
func TestACheckpointOffThePath(t *testing.T) {
	s := newShop(t, nil)
	tool := s.tool(nil)
	tool.Class = ""
	s.agent.Turn = flow.Chat[notes](answerWith(&s.calls), flow.Request{}, tool)
	c := startAt(t, s, flow.AfterPrompt)
	if err := c.SendText("A1"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Output(t.Context())
	h := paused(t, err)
	s.agent.Options.Checkpoint = 0
	if _, err := fork.Rewind(t.Context(), s.log, "s", fork.BeforeTurn(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.agent.Run(t.Context(), "s", flow.Text("B2")); err != nil {
		t.Fatal(err)
	}
	out, err := resumeAt(t.Context(), &s.agent, flow.Ref{Session: "s", Snapshot: h.Ref.Snapshot})
	if err != nil || out.Message.Text() != `done: paid {"order":"A1"}` {
		t.Fatalf("%v %+v", err, out.Message)
	}
	if _, err := resumeAt(t.Context(), &s.agent, flow.Ref{Session: "s", Snapshot: h.Ref.Snapshot}); !errors.Is(err, flow.ErrConsumed) {
		t.Fatal(err)
	}
}

// A review that a rewind took off the path is open: a start from its snapshot waits for
// the answer, and continues with it.
func TestAReviewOffThePath(t *testing.T) {
	s := newShop(t, ask("Pay?"))
	_, err := s.agent.Run(t.Context(), "s", flow.Text("A1"))
	h := paused(t, err)
	if _, err := fork.Rewind(t.Context(), s.log, "s", fork.BeforeTurn(0)); err != nil {
		t.Fatal(err)
	}
	_, err = resumeAt(t.Context(), &s.agent, flow.Ref{Session: "s", Snapshot: h.Ref.Snapshot})
	again := paused(t, err)
	if !slices.EqualFunc(again.Reviews, h.Reviews, func(a, b projection.OpenApproval) bool { return a.InterruptID == b.InterruptID }) {
		t.Fatalf("%+v", again.Reviews)
	}
	if _, err := flow.Decide(t.Context(), s.log, "s", answerTo(h.Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	if out, err := resumeAt(t.Context(), &s.agent, flow.Ref{Session: "s", Snapshot: h.Ref.Snapshot}); err != nil || s.runs() != 1 {
		t.Fatalf("%v %+v", err, out.Message)
	}
}

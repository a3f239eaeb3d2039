package eventlog

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
)

// gated is a store in memory with one session. Its appends wait at a gate; the test
// opens the gate and chooses the outcome.
type gated struct {
	Store
	events []event.Event
	enter  chan struct{}
	answer chan error
}

func (g *gated) Append(_ context.Context, _ string, _ event.Head, events []event.Event, _ bool) error {
	g.enter <- struct{}{}
	if err := <-g.answer; err != nil {
		return err
	}
	for i := range events {
		e, err := event.Parse(slices.Clone(events[i].Line()), "")
		if err != nil {
			return err
		}
		g.events = append(g.events, e)
	}
	return nil
}

func (g *gated) Read(_ context.Context, _ string, r Span) iter.Seq2[event.Event, error] {
	events := slices.DeleteFunc(slices.Clone(g.events), func(e event.Event) bool {
		return e.Seq < r.From || r.To > 0 && e.Seq > r.To
	})
	if r.Backward {
		slices.Reverse(events)
	}
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

type outcome struct {
	head event.Head
	err  error
}

// batchOf makes one batch of appends of the same event, one for each of expects: it
// queues them while the store is busy with another append. The store answers the batch
// with answer.
func batchOf(t *testing.T, answer error, expects func(event.Head) []Expect) (stored []event.Event, outcomes []outcome) {
	t.Helper()
	g := &gated{enter: make(chan struct{}), answer: make(chan error)}
	l := Open(g)
	note := func(text string) event.Event {
		return event.UserMessage(text)
	}
	add := func(x Expect, e event.Event, results chan<- outcome) {
		head, err := l.Append(context.Background(), "s", x, e)
		results <- outcome{head, err}
	}
	first, second, rest := make(chan outcome, 1), make(chan outcome, 1), make(chan outcome, 9)
	go add(Any(), note("zero"), first)
	<-g.enter
	g.answer <- nil
	zero := <-first
	go add(Any(), note("one"), second)
	<-g.enter
	same, h := note("two"), l.findHot("s")
	one := event.Head{Seq: 2, Hash: h.state.staged.head.Hash}
	queue := expects(one)
	for i, x := range queue {
		go add(x, same, rest)
		for waiting := 0; waiting <= i; time.Sleep(time.Millisecond) {
			h.mu.Lock()
			waiting = len(h.queue)
			h.mu.Unlock()
		}
	}
	g.answer <- nil
	if got := <-second; got.err != nil || zero.err != nil || got.head != one {
		t.Fatalf("got %v, %v", got, zero)
	}
	<-g.enter
	g.answer <- answer
	for range queue {
		outcomes = append(outcomes, <-rest)
	}
	return g.events, outcomes
}

// Retries of one event that meet in a batch are one event, and share its fate.
func TestSameEventTwiceInABatch(t *testing.T) {
	failed := errors.New("no")
	for name, expects := range map[string]func(event.Head) []Expect{
		"Any":      func(event.Head) []Expect { return []Expect{Any(), Any(), Any()} },
		"At":       func(h event.Head) []Expect { return []Expect{At(h), At(h)} },
		"AnyAfter": func(h event.Head) []Expect { return []Expect{Any(), Any().After(h), At(h)} },
	} {
		t.Run(name, func(t *testing.T) {
			stored, outcomes := batchOf(t, nil, expects)
			if len(stored) != 3 {
				t.Errorf("%d events are stored, want 3", len(stored))
			}
			for _, o := range outcomes {
				if o.err != nil || o.head != stored[2].Head() {
					t.Errorf("got %v, %v", o.head, o.err)
				}
			}
			stored, outcomes = batchOf(t, failed, expects)
			for _, o := range outcomes {
				if !errors.Is(o.err, failed) || len(stored) != 2 {
					t.Errorf("nothing was written, and the answer is %v, %v", o.head, o.err)
				}
			}
		})
	}
}

// A caller may leave during a second try. After an unknown outcome of the first one, its
// events may be stored after the head of the first.
func TestLeaveAfterAnUnknownOutcome(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	first := event.Head{Seq: 3}
	h := &hotSession{id: "s", base: event.Head{Seq: 9}}
	_, err := new(Log).leave(h, &request{ctx: ctx, expect: Any(), inBatch: true, after: &first})
	var unknown *UnknownOutcomeError
	if !errors.As(err, &unknown) || unknown.Head != first {
		t.Errorf("%v, want an unknown outcome after event 3", err)
	}
}

// A batch waits for the disk if one of its requests does.
func TestUnsyncedBatch(t *testing.T) {
	loose, synced := &request{staged: true, expect: Expect{unsynced: true}}, &request{staged: true}
	refused := &request{}
	for _, c := range []struct {
		batch []*request
		want  bool
	}{{[]*request{loose, loose}, true}, {[]*request{loose, synced}, false}, {[]*request{refused, loose}, true}, {[]*request{synced}, false}} {
		if got := unsynced(c.batch); got != c.want {
			t.Errorf("%d requests: unsynced is %v", len(c.batch), got)
		}
	}
}

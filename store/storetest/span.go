package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var spanCases = []testCase{
	{
		Name:        "selects",
		Explanation: "A span selects by inclusive seqs, in its direction, at most its limit: the same as picking from all events.",
		Run:         testSpanSelects,
	},
	{
		Name:        "consistent with the head at its start",
		Explanation: "A read that has begun yields the events up to the head it began at, however many are appended meanwhile.",
		Run:         testSpanConsistent,
	},
	{
		Name:        "stopped early",
		Explanation: "A read may be stopped at any event, and the store goes on as before.",
		Run:         testSpanStopped,
	},
	{
		Name:        "cancelled on the way",
		Explanation: "A read whose context ends on the way stops with the context's error.",
		Run:         testSpanCancelled,
	},
	{
		Name:        "events may be kept",
		Explanation: "What a read yielded stays as it was while the sequence goes on and others write.",
		Run:         testSpanKept,
	},
}

func testSpanSelects(t *env) {
	s := t.Store()
	const n = 23
	head := t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 10))
	t.Put(s, head, suite.BatchAfter("a", head, n-10))
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		r := eventlog.Span{From: random.Int64N(n+4) - 1, To: random.Int64N(n+4) - 1, Backward: random.IntN(2) == 0, Limit: random.IntN(7)}
		r.From, r.To = max(r.From, 0), max(r.To, 0)
		if got, want := suite.SeqsIn(t.Span(s, "a", r)), selected(r, n); !slices.Equal(got, want) {
			t.Fatalf("%+v of %d events: got %v, want %v", r, n, got, want)
		}
	}
}

// selected is what r selects from the seqs 1..n.
func selected(r eventlog.Span, n int64) []int64 {
	seqs := []int64{}
	for seq := int64(1); seq <= n; seq++ {
		if seq >= r.From && (r.To == 0 || seq <= r.To) {
			seqs = append(seqs, seq)
		}
	}
	if r.Backward {
		slices.Reverse(seqs)
	}
	if r.Limit > 0 {
		seqs = seqs[:min(len(seqs), r.Limit)]
	}
	return seqs
}

func testSpanConsistent(t *env) {
	s := t.Store()
	for _, backward := range []bool{false, true} {
		session := fmt.Sprintf("backward-%v", backward)
		head := t.Put(s, event.Head{}, suite.BatchAfter(session, event.Head{}, 2500))
		n := 0
		for _, err := range s.Read(t.Ctx, session, eventlog.Span{Backward: backward}) {
			t.Must(err)
			if n++; n%100 == 1 {
				head = t.Put(s, head, suite.BatchAfter(session, head, 1))
			}
		}
		t.Same("events of the read", 2500, n)
	}
}

func testSpanStopped(t *env) {
	s := t.Store()
	head := t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 40))
	for stop := range 45 {
		n := 0
		for _, err := range s.Read(t.Ctx, "a", eventlog.Span{Backward: stop%2 == 0}) {
			t.Must(err)
			if n++; n > stop {
				break
			}
		}
		head = t.Put(s, head, suite.BatchAfter("a", head, 1))
	}
}

func testSpanCancelled(t *env) {
	s := t.Store()
	t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 3000))
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	n := 0
	var last error
	for _, err := range s.Read(ctx, "a", eventlog.Span{}) {
		if last = err; err == nil {
			n++
		}
		if n == 10 {
			cancel()
		}
	}
	t.WantErr(context.Canceled, last)
	if n >= 3000 {
		t.Errorf("all %d events were read in spite of the cancellation", n)
	}
}

func testSpanKept(t *env) {
	s := t.Store()
	batch := suite.BatchAfter("a", event.Head{}, 600)
	head := t.Put(s, event.Head{}, batch)
	var kept []event.Event
	for e, err := range s.Read(t.Ctx, "a", eventlog.Span{}) {
		t.Must(err)
		kept = append(kept, e)
	}
	for range 5 {
		head = t.Put(s, head, suite.BatchAfter("a", head, 100))
		t.Span(s, "a", eventlog.Span{})
	}
	t.Same("the events kept", suite.LinesOf(batch), suite.LinesOf(kept))
}

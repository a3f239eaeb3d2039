package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var spanCases = []testCase{
	{
		name:        "selects",
		explanation: "A span selects by inclusive seqs, in its direction, at most its limit: the same as picking from all events.",
		run:         testSpanSelects,
	},
	{
		name:        "consistent with the head at its start",
		explanation: "A read that has begun yields the events up to the head it began at, however many are appended meanwhile.",
		run:         testSpanConsistent,
	},
	{
		name:        "stopped early",
		explanation: "A read may be stopped at any event, and the store goes on as before.",
		run:         testSpanStopped,
	},
	{
		name:        "cancelled on the way",
		explanation: "A read whose context ends on the way stops with the context's error.",
		run:         testSpanCancelled,
	},
	{
		name:        "events may be kept",
		explanation: "What a read yielded stays as it was while the sequence goes on and others write.",
		run:         testSpanKept,
	},
}

func testSpanSelects(t *env) {
	s := t.store()
	const n = 23
	head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 10))
	t.put(s, head, batchAfter("a", head, n-10))
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		r := eventlog.Span{From: random.Int64N(n+4) - 1, To: random.Int64N(n+4) - 1, Backward: random.IntN(2) == 0, Limit: random.IntN(7)}
		r.From, r.To = max(r.From, 0), max(r.To, 0)
		if got, want := seqsIn(t.span(s, "a", r)), selected(r, n); !slices.Equal(got, want) {
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
	s := t.store()
	for _, backward := range []bool{false, true} {
		session := fmt.Sprintf("backward-%v", backward)
		head := t.put(s, event.Head{}, batchAfter(session, event.Head{}, 2500))
		n := 0
		for _, err := range s.Read(t.ctx, session, eventlog.Span{Backward: backward}) {
			t.must(err)
			if n++; n%100 == 1 {
				head = t.put(s, head, batchAfter(session, head, 1))
			}
		}
		t.same("events of the read", 2500, n)
	}
}

func testSpanStopped(t *env) {
	s := t.store()
	head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 40))
	for stop := range 45 {
		n := 0
		for _, err := range s.Read(t.ctx, "a", eventlog.Span{Backward: stop%2 == 0}) {
			t.must(err)
			if n++; n > stop {
				break
			}
		}
		head = t.put(s, head, batchAfter("a", head, 1))
	}
}

func testSpanCancelled(t *env) {
	s := t.store()
	t.put(s, event.Head{}, batchAfter("a", event.Head{}, 3000))
	ctx, cancel := context.WithCancel(t.ctx)
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
	t.wantErr(context.Canceled, last)
	if n >= 3000 {
		t.Errorf("all %d events were read in spite of the cancellation", n)
	}
}

func testSpanKept(t *env) {
	s := t.store()
	batch := batchAfter("a", event.Head{}, 600)
	head := t.put(s, event.Head{}, batch)
	var kept []event.Event
	for e, err := range s.Read(t.ctx, "a", eventlog.Span{}) {
		t.must(err)
		kept = append(kept, e)
	}
	for range 5 {
		head = t.put(s, head, batchAfter("a", head, 100))
		t.span(s, "a", eventlog.Span{})
	}
	t.same("the events kept", linesOf(batch), linesOf(kept))
}

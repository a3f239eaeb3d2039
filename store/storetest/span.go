package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var spanCases = []testCase{
	{
		Name:        "selects",
		Explanation: "A span selects inclusive seqs in its direction, up to its limit.",
		Run:         testSpanSelects,
	},
	{
		Name:        "ends at the head of its start",
		Explanation: "A read yields the events up to the head at its start, even if others append during the read.",
		Run:         testSpanConsistent,
	},
	{
		Name:        "stopped early",
		Explanation: "A caller can stop a read at any event, and the store still works.",
		Run:         testSpanStopped,
	},
	{
		Name:        "cancelled read",
		Explanation: "A read stops with the context's error when its context ends during the read.",
		Run:         testSpanCancelled,
	},
	{
		Name:        "events do not change",
		Explanation: "Events that a read yielded do not change later, during the read or other writes.",
		Run:         testSpanKept,
	},
	{
		Name:        "transient",
		Explanation: "A transient read yields the same events as another read, each valid until the caller asks for the next one.",
		Run:         testSpanTransient,
	},
	{
		Name:        "snapshots",
		Explanation: "A span of snapshots leaves out no snapshot and no head_moved event, also of another version or redacted, and yields no event out of order.",
		Run:         testSpanSnapshots,
	},
}

func testSpanSelects(t *env) {
	s := t.Store()
	const n = 23
	head := t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 10))
	t.AppendLines(s, head, suite.BatchAfter("a", head, n-10))
	random := rand.New(rand.NewPCG(1, 2))
	for range testsize.Fewer(300) {
		r := eventlog.Span{From: random.Int64N(n+4) - 1, To: random.Int64N(n+4) - 1, Backward: random.IntN(2) == 0, Limit: random.IntN(7)}
		r.From, r.To = max(r.From, 0), max(r.To, 0)
		if got, want := suite.SeqsOf(t.Span(s, "a", r)), selectSeqs(r, n); !slices.Equal(got, want) {
			t.Fatalf("%+v of %d events: got %v, want %v", r, n, got, want)
		}
	}
}

// selectSeqs returns the seqs that r selects from 1..n.
func selectSeqs(r eventlog.Span, n int64) []int64 {
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
	count := testsize.Pick(800, 1200, 2500)
	for _, backward := range []bool{false, true} {
		session := fmt.Sprintf("backward-%v", backward)
		head := t.AppendLines(s, event.Head{}, suite.BatchAfter(session, event.Head{}, count))
		n := 0
		for _, err := range s.Read(t.Ctx, session, eventlog.Span{Backward: backward}) {
			t.Must(err)
			if n++; n%100 == 1 {
				head = t.AppendLines(s, head, suite.BatchAfter(session, head, 1))
			}
		}
		t.WantEqual("events of the read", count, n)
	}
}

func testSpanStopped(t *env) {
	s := t.Store()
	head := t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 40))
	for stop := range 45 {
		n := 0
		for _, err := range s.Read(t.Ctx, "a", eventlog.Span{Backward: stop%2 == 0}) {
			t.Must(err)
			if n++; n > stop {
				break
			}
		}
		head = t.AppendLines(s, head, suite.BatchAfter("a", head, 1))
	}
}

func testSpanCancelled(t *env) {
	s := t.Store()
	t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, testsize.Pick(800, 1500, 3000)))
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
		t.Errorf("a cancelled read returned all %d events", n)
	}
}

func testSpanKept(t *env) {
	s := t.Store()
	batch := suite.BatchAfter("a", event.Head{}, 600)
	head := t.AppendLines(s, event.Head{}, batch)
	var events []event.Event
	for e, err := range s.Read(t.Ctx, "a", eventlog.Span{}) {
		t.Must(err)
		events = append(events, e)
	}
	for range 5 {
		head = t.AppendLines(s, head, suite.BatchAfter("a", head, 100))
		t.Span(s, "a", eventlog.Span{})
	}
	t.WantEqual("events after the writes", suite.LinesOf(batch), suite.LinesOf(events))
}

func testSpanTransient(t *env) {
	s := t.Store()
	batch := suite.BatchAfter("a", event.Head{}, testsize.Pick(800, 1500, 3000))
	t.AppendLines(s, event.Head{}, batch)
	for _, backward := range []bool{false, true} {
		var events []event.Event
		for e, err := range s.Read(t.Ctx, "a", eventlog.Span{Backward: backward, Transient: true}) {
			t.Must(err)
			events = append(events, e.Clone())
		}
		if backward {
			slices.Reverse(events)
		}
		t.WantEqual("events of a transient read", suite.LinesOf(batch), suite.LinesOf(events))
	}
}

func testSpanSnapshots(t *env) {
	s := t.Store()
	lines := make([]suite.Line, 150)
	var want []int64
	for i := range lines {
		lines[i] = suite.Line{Data: "1"}
		if i%3 == 1 {
			types := []string{"head_moved", "projection_snapshotted", "head_moved/2", "projection_snapshotted/12"}
			lines[i].Typ = types[i%len(types)]
			want = append(want, int64(i)+1)
		}
	}
	events := suite.ChainAfter("a", event.Head{}, lines...)
	head := t.AppendLines(s, event.Head{}, events)
	t.AppendLines(s, event.Head{}, suite.ChainAfter("b", event.Head{}, suite.Line{Typ: "head_moved", Data: "1"}))
	if eraser, ok := eventlog.As[eventlog.Eraser](s); ok {
		t.Must(eraser.Rewrite(t.Ctx, "a", head, []event.Event{suite.RedactedLine(events[4])}, nil))
	}
	slices.Reverse(want)
	for _, r := range []eventlog.Span{{}, {From: 20, To: 131}, {To: 5}, {From: 150}} {
		r.Backward, r.Snapshots = true, true
		indexed := []int64{}
		before := int64(1) << 62
		for _, e := range t.Span(s, "a", r) {
			if e.Seq >= before || e.Seq < r.From || r.To > 0 && e.Seq > r.To {
				t.Errorf("%+v yields event %d after event %d", r, e.Seq, before)
			}
			before = e.Seq
			if name := e.Type.Name(); name == event.HeadMoved || name == event.ProjectionSnapshotted {
				indexed = append(indexed, e.Seq)
			}
		}
		within := slices.DeleteFunc(slices.Clone(want), func(seq int64) bool { return seq < r.From || r.To > 0 && seq > r.To })
		t.WantEqual(fmt.Sprintf("snapshots of %+v", r), within, indexed)
	}
	_, err := suite.Collect(s.Read(t.Ctx, "missing", eventlog.Span{Backward: true, Snapshots: true}))
	t.WantErr(eventlog.ErrNotFound, err)
}

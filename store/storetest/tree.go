package storetest

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var treeCases = []testCase{
	{
		name:        "active path",
		explanation: "The active path is the chain from the newest event back: what a head_moved left behind is not on it, and stays in the log.",
		run:         testTreePath,
	},
	{
		name:        "a call that was left behind",
		explanation: "A call that left the active path is no longer pending; when the path returns to it, it is again.",
		run:         testTreeCall,
	},
	{
		name:        "a result that was left behind",
		explanation: "A result that left the active path no longer ends its call.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), calls("c1"), result("c1"))
			t.append(t.log(), "a", eventlog.Any(), moved(1))
			t.append(t.reopen(), "a", eventlog.Any(), result("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c1"))
		},
	},
	{
		name:        "moves that go nowhere",
		explanation: "A head_moved to a seq that is not there is refused.",
		run: func(t *env) {
			t.fill(t.log(), "a", 3)
			for _, to := range []int64{-1, 4, 5, 1 << 40} {
				t.refused(event.ErrInvalidTree, t.log(), "a", eventlog.Any(), moved(to))
			}
			t.append(t.log(), "a", eventlog.Any(), moved(0))
			t.same("path", []int64{4}, seqsIn(t.path(t.log(), "a")))
		},
	},
	{
		name:        "long reasons",
		explanation: "Events that shape the tree are never spilled: path and lineage are read without bodies, however long a reason is.",
		run:         testTreeReasons,
	},
	{
		name:        "a fork reads through its parent",
		explanation: "A fork's shared prefix is read through its parent, in every range, and its chain goes on from there.",
		run:         testTreeFork,
	},
	{
		name:        "a fork of nothing",
		explanation: "A fork of a missing session, of a seq that is not there, or from another history is refused.",
		run:         testTreeForkRefused,
	},
	{
		name:        "a fork inside an append",
		explanation: "A fork point inside an atomic append is refused.",
		run: func(t *env) {
			t.append(t.log(), "p", eventlog.New(), notes(3)...)
			t.refused(event.ErrInvalidTree, t.log(), "f", eventlog.New(), t.forkAt("p", 2))
			t.append(t.log(), "f", eventlog.New(), t.forkAt("p", 3))
		},
	},
	{
		name:        "calls of the parent",
		explanation: "A call that is pending at the fork point ends in the fork and in the parent independently.",
		run: func(t *env) {
			t.append(t.log(), "p", eventlog.New(), calls("c1"))
			t.append(t.log(), "f", eventlog.New(), t.forkAt("p", 1))
			t.append(t.log(), "f", eventlog.Any(), result("c1"))
			t.append(t.reopen(), "p", eventlog.Any(), result("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "f", eventlog.Any(), result("c1"))
		},
	},
}

// path reads the active path.
func (t *env) path(l *eventlog.Log, session string) []event.Event {
	t.Helper()
	events, err := collect(l.Read(t.ctx, session, eventlog.All().OnPath()))
	t.must(err)
	return events
}

func testTreePath(t *env) {
	l := t.log()
	t.fill(l, "a", 5)
	t.append(l, "a", eventlog.Any(), moved(2)) // 6, after 1 2
	t.fill(l, "a", 2)                          // 7 8
	t.same("after one move", []int64{1, 2, 6, 7, 8}, seqsIn(t.path(l, "a")))
	t.append(l, "a", eventlog.Any(), moved(4)) // 9, after 1 2 3 4
	t.fill(l, "a", 1)                          // 10
	t.same("after the second", []int64{1, 2, 3, 4, 9, 10}, seqsIn(t.path(l, "a")))
	t.append(l, "a", eventlog.Any(), moved(7)) // 11, after 1 2 6 7
	t.same("back on the first", []int64{1, 2, 6, 7, 11}, seqsIn(t.path(t.reopen(), "a")))
	t.same("all of it", between(1, 11), seqsIn(t.read(t.log(), "a", eventlog.All())))
	t.sound(t.log(), "a")
}

func testTreeCall(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), user("go"))
	t.append(l, "a", eventlog.Any(), calls("c1"))
	t.append(l, "a", eventlog.Any(), moved(1))
	t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), result("c1"))
	l = t.reopen()
	t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), result("c1"))
	t.append(l, "a", eventlog.Any(), moved(2))
	t.append(l, "a", eventlog.Any(), result("c1"))
	t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), result("c1"))
	t.sound(l, "a")
}

// forkAt makes the first event of a fork of the main log's session.
func (t *env) forkAt(parent string, seq int64) event.Event {
	t.Helper()
	e, err := t.log().Event(t.ctx, parent, seq)
	t.must(err)
	return forkOf(parent, &e)
}

func forkOf(parent string, e *event.Event) event.Event {
	return newEvent(event.SessionForked, fmt.Sprintf(`{"parent":%q,"seq":%d,"event_id":"%s","hash":"%s"}`, parent, e.Seq, e.ID, e.Hash()))
}

func testTreeFork(t *env) {
	l := t.log()
	t.fill(l, "p", 6)
	t.append(l, "f", eventlog.New(), t.forkAt("p", 4)) // seq 5
	t.fill(l, "f", 3)                                  // 6 7 8
	t.append(l, "g", eventlog.New(), t.forkAt("f", 6)) // seq 7
	t.fill(l, "g", 1)                                  // 8
	l = t.reopen()
	g := t.read(l, "g", eventlog.All())
	t.same("seqs", between(1, 8), seqsIn(g))
	t.same("own seqs", []int64{7, 8}, seqsIn(t.read(l, "g", eventlog.All().Own())))
	t.same("sessions", "p p p p f f g g", sessionsOf(g))
	t.same("the last five", between(4, 8), seqsIn(t.read(l, "g", eventlog.Last(5))))
	t.same("from the middle", between(3, 6), seqsIn(t.read(l, "g", eventlog.Between(3, 6))))
	t.same("backward", []int64{8, 7, 6, 5, 4, 3, 2, 1}, seqsIn(t.read(l, "g", eventlog.All().Backward())))
	t.append(l, "g", eventlog.Any(), moved(2))
	t.same("path", []int64{1, 2, 9}, seqsIn(t.path(l, "g")))
	for _, session := range []string{"p", "f", "g"} {
		t.sound(l, session)
	}
}

func sessionsOf(events []event.Event) (names string) {
	for i := range events {
		if i > 0 {
			names += " "
		}
		names += events[i].SessionID
	}
	return names
}

func testTreeReasons(t *env) {
	l := t.log()
	t.fill(l, "p", 3)
	reason := text("why", 300<<10)
	t.append(l, "p", eventlog.Any(), newEvent(event.HeadMoved, `{"to":1,"reason":"`+reason+`"}`))
	fork := event.New(event.Fork{Parent: "p", Seq: 4, EventID: t.eventAt(l, "p", 4).ID,
		Hash: t.eventAt(l, "p", 4).Hash(), Reason: reason})
	t.append(l, "f", eventlog.New(), fork)
	t.twice(func(l *eventlog.Log) {
		t.same("path", []int64{1, 4}, seqsIn(t.path(l, "p")))
		t.same("path of the fork", []int64{1, 4, 5}, seqsIn(t.path(l, "f")))
		t.sound(l, "f")
	})
	t.refused(event.ErrInvalidSize, t.log(), "p", eventlog.Any(),
		newEvent(event.HeadMoved, `{"to":1,"reason":"`+text("why", 5<<20)+`"}`))
}

func (t *env) eventAt(l *eventlog.Log, session string, seq int64) *event.Event {
	t.Helper()
	e, err := l.Event(t.ctx, session, seq)
	t.must(err)
	return &e
}

func testTreeForkRefused(t *env) {
	l := t.log()
	t.fill(l, "p", 3)
	t.fill(l, "q", 3)
	foreign, err := l.Event(t.ctx, "q", 2)
	t.must(err)
	beyond := foreign
	beyond.Seq = 9
	t.refused(eventlog.ErrNotFound, l, "f", eventlog.New(), forkOf("missing", &foreign))
	t.refused(event.ErrInvalidTree, l, "f", eventlog.New(), forkOf("p", &foreign))
	t.refused(eventlog.ErrEventNotFound, l, "f", eventlog.New(), forkOf("p", &beyond))
	t.refused(eventlog.ErrConflict, l, "q", eventlog.New(), t.forkAt("p", 2))
	t.refused(event.ErrInvalidTree, l, "q", eventlog.Any(), t.forkAt("p", 2))
	t.missing(l, "f")
}

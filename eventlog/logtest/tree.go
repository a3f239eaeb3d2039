package logtest

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var treeCases = []testCase{
	{
		Name:        "active path",
		Explanation: "The active path is the chain from the newest event back. Events that a head_moved rewound are not on the path and stay in the log.",
		Run:         testTreePath,
	},
	{
		Name:        "call off the path",
		Explanation: "A call off the active path is not pending. When the path returns to the call, the call is pending again.",
		Run:         testTreeCall,
	},
	{
		Name:        "result off the path",
		Explanation: "A result off the active path does not end its call.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1"), suite.Result("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.HeadMove(1))
			t.Append(t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c1"))
		},
	},
	{
		Name:        "invalid moves",
		Explanation: "A head_moved to a missing seq is rejected.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 3)
			for _, to := range []int64{-1, 4, 5, 1 << 40} {
				t.WantAppendError(event.ErrInvalidTree, t.Main(), "a", eventlog.Any(), suite.HeadMove(to))
			}
			t.Append(t.Main(), "a", eventlog.Any(), suite.HeadMove(0))
			t.WantEqual("path", []int64{4}, suite.SeqsOf(t.Path(t.Main(), "a")))
		},
	},
	{
		Name:        "long reasons",
		Explanation: "Events that shape the tree are never spilled, even with a long reason: the path and the lineage are read without blobs.",
		Run:         testTreeReasons,
	},
	{
		Name:        "fork",
		Explanation: "Every range of a fork includes the events shared with its parent, and the fork's chain continues the parent's chain.",
		Run:         testTreeFork,
	},
	{
		Name:        "invalid fork",
		Explanation: "A fork of a missing session, of a missing seq, or of another history is rejected.",
		Run:         testTreeForkRefused,
	},
	{
		Name:        "fork inside an append",
		Explanation: "A fork point inside an append is rejected.",
		Run: func(t *env) {
			t.Append(t.Main(), "p", eventlog.New(), suite.Notes(3)...)
			t.WantAppendError(event.ErrInvalidTree, t.Main(), "f", eventlog.New(), t.ForkAt("p", 2))
			t.Append(t.Main(), "f", eventlog.New(), t.ForkAt("p", 3))
		},
	},
	{
		Name:        "calls of the parent",
		Explanation: "A call that is pending at the fork point ends independently in the fork and in the parent.",
		Run: func(t *env) {
			t.Append(t.Main(), "p", eventlog.New(), suite.Calls("c1"))
			t.Append(t.Main(), "f", eventlog.New(), t.ForkAt("p", 1))
			t.Append(t.Main(), "f", eventlog.Any(), suite.Result("c1"))
			t.Append(t.Reopen(), "p", eventlog.Any(), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "f", eventlog.Any(), suite.Result("c1"))
		},
	},
}

func testTreePath(t *env) {
	l := t.Main()
	t.Fill(l, "a", 5)
	t.Append(l, "a", eventlog.Any(), suite.HeadMove(2)) // 6, after 1 2
	t.Fill(l, "a", 2)                                   // 7 8
	t.WantEqual("after one move", []int64{1, 2, 6, 7, 8}, suite.SeqsOf(t.Path(l, "a")))
	t.Append(l, "a", eventlog.Any(), suite.HeadMove(4)) // 9, after 1 2 3 4
	t.Fill(l, "a", 1)                                   // 10
	t.WantEqual("after the second", []int64{1, 2, 3, 4, 9, 10}, suite.SeqsOf(t.Path(l, "a")))
	t.Append(l, "a", eventlog.Any(), suite.HeadMove(7)) // 11, after 1 2 6 7
	t.WantEqual("back on the first", []int64{1, 2, 6, 7, 11}, suite.SeqsOf(t.Path(t.Reopen(), "a")))
	t.WantEqual("all of it", between(1, 11), suite.SeqsOf(t.Read(t.Main(), "a", eventlog.All())))
	t.WantVerified(t.Main(), "a")
}

func testTreeCall(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.User("go"))
	t.Append(l, "a", eventlog.Any(), suite.Calls("c1"))
	t.Append(l, "a", eventlog.Any(), suite.HeadMove(1))
	t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), suite.Result("c1"))
	l = t.Reopen()
	t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(l, "a", eventlog.Any(), suite.HeadMove(2))
	t.Append(l, "a", eventlog.Any(), suite.Result("c1"))
	t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), suite.Result("c1"))
	t.WantVerified(l, "a")
}

func testTreeFork(t *env) {
	l := t.Main()
	t.Fill(l, "p", 6)
	t.Append(l, "f", eventlog.New(), t.ForkAt("p", 4)) // seq 5
	t.Fill(l, "f", 3)                                  // 6 7 8
	t.Append(l, "g", eventlog.New(), t.ForkAt("f", 6)) // seq 7
	t.Fill(l, "g", 1)                                  // 8
	l = t.Reopen()
	g := t.Read(l, "g", eventlog.All())
	t.WantEqual("seqs", between(1, 8), suite.SeqsOf(g))
	t.WantEqual("own seqs", []int64{7, 8}, suite.SeqsOf(t.Read(l, "g", eventlog.All().Own())))
	t.WantEqual("sessions", "p p p p f f g g", sessionsOf(g))
	t.WantEqual("the last five", between(4, 8), suite.SeqsOf(t.Read(l, "g", eventlog.Last(5))))
	t.WantEqual("from the middle", between(3, 6), suite.SeqsOf(t.Read(l, "g", eventlog.Between(3, 6))))
	t.WantEqual("backward", []int64{8, 7, 6, 5, 4, 3, 2, 1}, suite.SeqsOf(t.Read(l, "g", eventlog.All().Backward())))
	t.WantEqual("backward, transient", []int64{8, 7, 6, 5, 4, 3, 2, 1}, suite.SeqsOf(t.Read(l, "g", eventlog.All().Backward().Transient())))
	t.Append(l, "g", eventlog.Any(), suite.HeadMove(2))
	t.WantEqual("path", []int64{1, 2, 9}, suite.SeqsOf(t.Path(l, "g")))
	for _, session := range []string{"p", "f", "g"} {
		t.WantVerified(l, session)
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
	l := t.Main()
	t.Fill(l, "p", 3)
	reason := suite.Text("why", 300<<10)
	t.Append(l, "p", eventlog.Any(), suite.NewEvent(event.HeadMoved, `{"to":1,"reason":"`+reason+`"}`))
	fork := event.New(event.Fork{Parent: "p", Seq: 4, EventID: t.EventAt(l, "p", 4).ID,
		Hash: t.EventAt(l, "p", 4).Hash(), Reason: reason})
	t.Append(l, "f", eventlog.New(), fork)
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		t.WantEqual("path", []int64{1, 4}, suite.SeqsOf(t.Path(l, "p")))
		t.WantEqual("path of the fork", []int64{1, 4, 5}, suite.SeqsOf(t.Path(l, "f")))
		t.WantVerified(l, "f")
	})
	t.WantAppendError(event.ErrInvalidSize, t.Main(), "p", eventlog.Any(),
		suite.NewEvent(event.HeadMoved, `{"to":1,"reason":"`+suite.Text("why", 5<<20)+`"}`))
}

func testTreeForkRefused(t *env) {
	l := t.Main()
	t.Fill(l, "p", 3)
	t.Fill(l, "q", 3)
	foreign, err := l.Event(t.Ctx, "q", 2)
	t.Must(err)
	beyond := foreign
	beyond.Seq = 9
	t.WantAppendError(eventlog.ErrNotFound, l, "f", eventlog.New(), suite.ForkOf("missing", &foreign))
	t.WantAppendError(event.ErrInvalidTree, l, "f", eventlog.New(), suite.ForkOf("p", &foreign))
	t.WantAppendError(eventlog.ErrEventNotFound, l, "f", eventlog.New(), suite.ForkOf("p", &beyond))
	t.WantAppendError(eventlog.ErrConflict, l, "q", eventlog.New(), t.ForkAt("p", 2))
	t.WantAppendError(event.ErrInvalidTree, l, "q", eventlog.Any(), t.ForkAt("p", 2))
	t.WantMissing(l, "f")
}

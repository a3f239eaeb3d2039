package storetest

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
)

var handleCases = []testCase{
	{
		Name:        "take turns",
		Explanation: "A handle sees the appends of another handle at once and appends after them.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesTurns,
	},
	{
		Name:        "call and result",
		Explanation: "A call through one handle and its result through another handle are both stored. A second result is rejected.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesCall,
	},
	{
		Name:        "stale head",
		Explanation: "A head that another handle has moved is a conflict, even if this handle wrote the head.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesStale,
	},
	{
		Name:        "two conversations",
		Explanation: "Two handles that write conversations into one session at the same time lose neither calls nor results.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesConversations,
	},
	{
		Name:        "retry through another handle",
		Explanation: "An append that is retried through another handle is stored once.",
		Needs:       []suite.Need{suite.Handles},
		Run: func(t *env) {
			a, b := t.Main(), t.Second()
			head := t.Fill(a, "a", 2)
			t.Fill(b, "b", 1)
			events := suite.Notes(3)
			want := t.Append(a, "a", eventlog.At(head), events...)
			t.WantEqual("head", want, t.Append(b, "a", eventlog.At(head), events...))
			t.WantEqual("head with Any", want, t.Append(b, "a", eventlog.Any(), events...))
			t.WantEqual("events", 5, len(t.Lines(a, "a")))
		},
	},
	{
		Name:        "removed by another handle",
		Explanation: "If another handle removes and recreates a session, the head from before is a conflict.",
		Needs:       []suite.Need{suite.Handles, suite.Eraser},
		Run:         testHandlesRemoved,
	},
	{
		Name:        "redacted by another handle",
		Explanation: "A handle sees a redaction by another handle at once and appends after it.",
		Needs:       []suite.Need{suite.Handles, suite.Eraser},
		Run:         testHandlesRedacted,
	},
	{
		Name:        "closing one handle",
		Explanation: "Closing one handle does not affect another handle.",
		Needs:       []suite.Need{suite.Handles},
		Run: func(t *env) {
			a, b := t.Main(), t.Second()
			t.Fill(a, "a", 2)
			t.Fill(b, "a", 2)
			t.Must(a.Close())
			t.Fill(b, "a", 2)
			t.WantEqual("seqs", []int64{1, 2, 3, 4, 5, 6}, suite.SeqsOf(t.Read(b, "a", eventlog.All())))
			t.WantVerified(b, "a")
		},
	},
}

func testHandlesTurns(t *env) {
	logs := []*eventlog.Log{t.Main(), t.Second()}
	head := event.Head{}
	for n := range 40 {
		head = t.Append(logs[n%2], "a", eventlog.At(head), suite.Notes(1+n%3)...)
		t.WantEqual("head of the other", head, t.Head(logs[1-n%2], "a"))
	}
	t.WantEqual("lines", t.Lines(logs[0], "a"), t.Lines(logs[1], "a"))
	t.WantVerified(logs[1], "a")
}

func testHandlesCall(t *env) {
	a, b := t.Main(), t.Second()
	t.Append(a, "a", eventlog.New(), suite.User("go"))
	t.Append(b, "a", eventlog.Any(), suite.Note(1))
	t.Append(a, "a", eventlog.Any(), suite.Calls("c1", "c2"))
	t.Append(b, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(a, "a", eventlog.Any(), suite.Note(2))
	t.WantAppendError(event.OrphanResult, a, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(a, "a", eventlog.Any(), suite.Result("c2"))
	t.WantAppendError(event.OrphanResult, b, "a", eventlog.Any(), suite.Result("c2"))
	t.WantEqual("events", 6, len(t.Lines(b, "a")))
	t.WantVerified(b, "a")
}

func testHandlesStale(t *env) {
	a, b := t.Main(), t.Second()
	old := t.Fill(a, "a", 3)
	actual := t.Fill(b, "a", 1)
	t.WantConflict(t.WantAppendError(eventlog.ErrConflict, a, "a", eventlog.At(old), suite.Note(1)), old, actual)
	t.Append(a, "a", eventlog.At(actual), suite.Note(2))
	t.WantAppendError(eventlog.ErrConflict, b, "a", eventlog.At(actual), suite.Note(3))
}

func testHandlesConversations(t *env) {
	logs := []*eventlog.Log{t.Main(), t.Second()}
	turns := testsize.Fewer(25)
	errs := suite.Concurrently(2, func(i int) error {
		for n := range turns {
			id := fmt.Sprintf("call-%d-%d", i, n)
			for _, e := range []event.Event{suite.Calls(id), suite.Result(id)} {
				if _, err := logs[i].Append(t.Ctx, "a", eventlog.Any(), e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
	t.WantEqual("events", 4*turns, len(t.Lines(logs[0], "a")))
	for i := range logs {
		t.WantAppendError(event.OrphanResult, logs[i], "a", eventlog.Any(), suite.Result(fmt.Sprintf("call-%d-%d", 1-i, turns-1)))
		t.WantVerified(logs[i], "a")
	}
}

func testHandlesRemoved(t *env) {
	a, b := t.Main(), t.Second()
	events := suite.Notes(3)
	old := t.Append(a, "a", eventlog.New(), events...)
	t.Must(erase.Remove(t.Ctx, b, "a"))
	t.WantMissing(a, "a")
	t.WantAppendError(eventlog.ErrNotFound, a, "a", eventlog.At(old), suite.Note(1))
	t.Append(b, "a", eventlog.New(), events...)
	t.WantAppendError(eventlog.ErrConflict, a, "a", eventlog.At(old), suite.Note(1))
	t.Append(a, "a", eventlog.Any(), suite.Note(1))
	t.WantEqual("seqs", []int64{1, 2, 3, 4}, suite.SeqsOf(t.Read(b, "a", eventlog.All())))
	t.WantVerified(b, "a")
}

func testHandlesRedacted(t *env) {
	a, b := t.Main(), t.Second()
	t.Append(a, "a", eventlog.New(), suite.User("the secret"))
	t.Fill(a, "a", 2)
	_, err := erase.Redact(t.Ctx, b, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	t.Append(a, "a", eventlog.Any(), suite.Note(9))
	events := t.Read(a, "a", eventlog.All())
	t.WantEqual("seqs", []int64{1, 2, 3, 4, 5}, suite.SeqsOf(events))
	t.WantEqual("redacted", true, events[0].Redacted())
	t.WantVerified(a, "a")
	t.WantEqual("lines", t.Lines(b, "a"), t.Lines(a, "a"))
}

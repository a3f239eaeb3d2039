package storetest

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/upkeep/erase"
)

var handleCases = []testCase{
	{
		Name:        "take turns",
		Explanation: "What one handle appends the other sees at once, and appends behind it.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesTurns,
	},
	{
		Name:        "a result does not vanish",
		Explanation: "A call through one handle and its result through the other both stand, and the result is accepted once.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesCall,
	},
	{
		Name:        "stale memory",
		Explanation: "A head that another handle has moved on from is a conflict, although this handle wrote it last.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesStale,
	},
	{
		Name:        "conversations interleaved",
		Explanation: "Two handles that hold conversations in one session at once lose neither a call nor a result.",
		Needs:       []suite.Need{suite.Handles},
		Run:         testHandlesConversations,
	},
	{
		Name:        "retry through the other",
		Explanation: "An append retried through another handle is stored once.",
		Needs:       []suite.Need{suite.Handles},
		Run: func(t *env) {
			a, b := t.Main(), t.Second()
			head := t.Fill(a, "a", 2)
			t.Fill(b, "b", 1)
			events := suite.Notes(3)
			want := t.Append(a, "a", eventlog.At(head), events...)
			t.Same("head", want, t.Append(b, "a", eventlog.At(head), events...))
			t.Same("head with Any", want, t.Append(b, "a", eventlog.Any(), events...))
			t.Same("events", 5, len(t.Lines(a, "a")))
		},
	},
	{
		Name:        "removed by the other",
		Explanation: "A session that another handle removed and created anew never satisfies the head this handle remembers.",
		Needs:       []suite.Need{suite.Handles, suite.Eraser},
		Run:         testHandlesRemoved,
	},
	{
		Name:        "rewritten by the other",
		Explanation: "A redaction through another handle is seen at once, and this handle appends behind it.",
		Needs:       []suite.Need{suite.Handles, suite.Eraser},
		Run:         testHandlesRedacted,
	},
	{
		Name:        "closing one",
		Explanation: "Closing one handle does not disturb the other.",
		Needs:       []suite.Need{suite.Handles},
		Run: func(t *env) {
			a, b := t.Main(), t.Second()
			t.Fill(a, "a", 2)
			t.Fill(b, "a", 2)
			t.Must(a.Close())
			t.Fill(b, "a", 2)
			t.Same("seqs", []int64{1, 2, 3, 4, 5, 6}, suite.SeqsIn(t.Read(b, "a", eventlog.All())))
			t.Sound(b, "a")
		},
	},
}

func testHandlesTurns(t *env) {
	logs := []*eventlog.Log{t.Main(), t.Second()}
	head := event.Head{}
	for n := range 40 {
		head = t.Append(logs[n%2], "a", eventlog.At(head), suite.Notes(1+n%3)...)
		t.Same("head of the other", head, t.Head(logs[1-n%2], "a"))
	}
	t.Same("lines", t.Lines(logs[0], "a"), t.Lines(logs[1], "a"))
	t.Sound(logs[1], "a")
}

func testHandlesCall(t *env) {
	a, b := t.Main(), t.Second()
	t.Append(a, "a", eventlog.New(), suite.User("go"))
	t.Append(b, "a", eventlog.Any(), suite.Note(1))
	t.Append(a, "a", eventlog.Any(), suite.Calls("c1", "c2"))
	t.Append(b, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(a, "a", eventlog.Any(), suite.Note(2))
	t.Refused(event.ErrInvalidResult, a, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(a, "a", eventlog.Any(), suite.Result("c2"))
	t.Refused(event.ErrInvalidResult, b, "a", eventlog.Any(), suite.Result("c2"))
	t.Same("events", 6, len(t.Lines(b, "a")))
	t.Sound(b, "a")
}

func testHandlesStale(t *env) {
	a, b := t.Main(), t.Second()
	old := t.Fill(a, "a", 3)
	actual := t.Fill(b, "a", 1)
	t.Conflict(t.Refused(eventlog.ErrConflict, a, "a", eventlog.At(old), suite.Note(1)), old, actual)
	t.Append(a, "a", eventlog.At(actual), suite.Note(2))
	t.Refused(eventlog.ErrConflict, b, "a", eventlog.At(actual), suite.Note(3))
}

func testHandlesConversations(t *env) {
	logs := []*eventlog.Log{t.Main(), t.Second()}
	const turns = 25
	errs := suite.Together(2, func(i int) error {
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
	t.Same("events", 4*turns, len(t.Lines(logs[0], "a")))
	for i := range logs {
		t.Refused(event.ErrInvalidResult, logs[i], "a", eventlog.Any(), suite.Result(fmt.Sprintf("call-%d-3", 1-i)))
		t.Sound(logs[i], "a")
	}
}

func testHandlesRemoved(t *env) {
	a, b := t.Main(), t.Second()
	events := suite.Notes(3)
	old := t.Append(a, "a", eventlog.New(), events...)
	t.Must(erase.Remove(t.Ctx, b, "a"))
	t.Missing(a, "a")
	t.Refused(eventlog.ErrNotFound, a, "a", eventlog.At(old), suite.Note(1))
	t.Append(b, "a", eventlog.New(), events...)
	t.Refused(eventlog.ErrConflict, a, "a", eventlog.At(old), suite.Note(1))
	t.Append(a, "a", eventlog.Any(), suite.Note(1))
	t.Same("seqs", []int64{1, 2, 3, 4}, suite.SeqsIn(t.Read(b, "a", eventlog.All())))
	t.Sound(b, "a")
}

func testHandlesRedacted(t *env) {
	a, b := t.Main(), t.Second()
	t.Append(a, "a", eventlog.New(), suite.User("the secret"))
	t.Fill(a, "a", 2)
	_, err := erase.Redact(t.Ctx, b, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	t.Append(a, "a", eventlog.Any(), suite.Note(9))
	events := t.Read(a, "a", eventlog.All())
	t.Same("seqs", []int64{1, 2, 3, 4, 5}, suite.SeqsIn(events))
	t.Same("redacted", true, events[0].Redacted())
	t.Sound(a, "a")
	t.Same("lines", t.Lines(b, "a"), t.Lines(a, "a"))
}

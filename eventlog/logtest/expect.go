package logtest

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var expectCases = []testCase{
	{
		Name:        "New",
		Explanation: "New creates a session once. On an existing session it is a conflict with the actual head.",
		Run: func(t *env) {
			head := t.Append(t.Main(), "a", eventlog.New(), suite.Note(1))
			t.WantConflict(t.WantAppendError(eventlog.ErrConflict, t.Main(), "a", eventlog.New(), suite.Note(2)), event.Head{}, head)
			t.WantConflict(t.WantAppendError(eventlog.ErrConflict, t.Reopen(), "a", eventlog.New(), suite.Note(2)), event.Head{}, head)
		},
	},
	{
		Name:        "Any",
		Explanation: "Any appends at any head and creates a missing session.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.Any(), suite.Note(1))
			t.Append(t.Reopen(), "a", eventlog.Any(), suite.Note(2))
			t.WantEqual("events", 2, len(t.Lines(t.Main(), "a")))
		},
	},
	{
		Name:        "At",
		Explanation: "At appends at exactly its head, also after a reopen.",
		Run: func(t *env) {
			head := t.Append(t.Main(), "a", eventlog.At(event.Head{}), suite.Note(1))
			head = t.Append(t.Main(), "a", eventlog.At(head), suite.Note(2))
			head = t.Append(t.Reopen(), "a", eventlog.At(head), suite.Note(3))
			t.WantEqual("seq", int64(3), head.Seq)
		},
	},
	{
		Name:        "At too low",
		Explanation: "A head before the session's head is a conflict with the expected and the actual head.",
		Run:         testExpectTooLow,
	},
	{
		Name:        "At too high",
		Explanation: "A head after the session's head is a conflict with the expected and the actual head.",
		Run: func(t *env) {
			actual := t.Fill(t.Main(), "a", 3)
			beyond := event.Head{Seq: 9, Hash: actual.Hash}
			t.WantConflict(t.WantAppendError(eventlog.ErrConflict, t.Main(), "a", eventlog.At(beyond), suite.Note(1)), beyond, actual)
			t.WantConflict(t.WantAppendError(eventlog.ErrConflict, t.Reopen(), "a", eventlog.At(beyond), suite.Note(1)), beyond, actual)
		},
	},
	{
		Name:        "At another history",
		Explanation: "A head with the right seq and another hash is a conflict, because a seq alone does not identify a history.",
		Run: func(t *env) {
			actual := t.Fill(t.Main(), "a", 3)
			foreign := t.Fill(t.Main(), "b", 3)
			t.WantConflict(t.WantAppendError(eventlog.ErrConflict, t.Main(), "a", eventlog.At(foreign), suite.Note(1)), foreign, actual)
		},
	},
	{
		Name:        "At on a missing session",
		Explanation: "At on a missing session is ErrNotFound and does not create the session.",
		Run: func(t *env) {
			head := t.Fill(t.Main(), "a", 1)
			t.WantAppendError(eventlog.ErrNotFound, t.Main(), "b", eventlog.At(head), suite.Note(1))
			t.WantMissing(t.Main(), "b")
		},
	},
	{
		Name:        "before validation",
		Explanation: "The log compares the head before it validates the events: at a wrong head every append is a conflict.",
		Run: func(t *env) {
			old := t.Append(t.Main(), "a", eventlog.New(), suite.Note(1))
			t.Fill(t.Main(), "a", 1)
			t.WantAppendError(eventlog.ErrConflict, t.Main(), "a", eventlog.At(old), suite.Result("missing"))
		},
	},
	{
		Name:        "independent sessions",
		Explanation: "Appends to one session do not change the heads of other sessions.",
		Run:         testExpectApart,
	},
}

func testExpectTooLow(t *env) {
	l := t.Main()
	heads := []event.Head{t.Fill(l, "a", 1)}
	for range 5 {
		heads = append(heads, t.Fill(l, "a", 1))
	}
	actual := heads[5]
	for _, old := range heads[:5] {
		t.WantConflict(t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(old), suite.Note(1)), old, actual)
		t.WantConflict(t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(old), suite.Notes(9)...), old, actual)
	}
	t.WantConflict(t.WantAppendError(eventlog.ErrConflict, t.Reopen(), "a", eventlog.At(heads[2]), suite.Note(1)), heads[2], actual)
}

func testExpectApart(t *env) {
	l := t.Main()
	heads := map[string]event.Head{}
	sessions := []string{"a", "b", "c", "d"}
	for n := range 40 {
		session := sessions[n*7%4]
		heads[session] = t.Append(l, session, eventlog.At(heads[session]), suite.Notes(1+n%2)...)
	}
	l = t.Reopen()
	for _, session := range sessions {
		t.WantEqual("head of "+session, heads[session], t.Head(l, session))
		t.WantVerified(l, session)
	}
}

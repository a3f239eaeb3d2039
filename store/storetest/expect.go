package storetest

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var expectCases = []testCase{
	{
		name:        "New",
		explanation: "New creates a session once; on an existing one it is a conflict that carries the actual head.",
		run: func(t *env) {
			head := t.append(t.log(), "a", eventlog.New(), note(1))
			t.conflict(t.refused(eventlog.ErrConflict, t.log(), "a", eventlog.New(), note(2)), event.Head{}, head)
			t.conflict(t.refused(eventlog.ErrConflict, t.reopen(), "a", eventlog.New(), note(2)), event.Head{}, head)
		},
	},
	{
		name:        "Any",
		explanation: "Any appends at whatever head there is, and creates a session that is missing.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.Any(), note(1))
			t.append(t.reopen(), "a", eventlog.Any(), note(2))
			t.same("events", 2, len(t.lines(t.log(), "a")))
		},
	},
	{
		name:        "At",
		explanation: "At appends at exactly its head, also after a reopen.",
		run: func(t *env) {
			head := t.append(t.log(), "a", eventlog.At(event.Head{}), note(1))
			head = t.append(t.log(), "a", eventlog.At(head), note(2))
			head = t.append(t.reopen(), "a", eventlog.At(head), note(3))
			t.same("seq", int64(3), head.Seq)
		},
	},
	{
		name:        "At too low",
		explanation: "A head that the session has left behind is a conflict that carries expected and actual.",
		run:         testExpectTooLow,
	},
	{
		name:        "At too high",
		explanation: "A head that the session has not reached is a conflict that carries expected and actual.",
		run: func(t *env) {
			actual := t.fill(t.log(), "a", 3)
			beyond := event.Head{Seq: 9, Hash: actual.Hash}
			t.conflict(t.refused(eventlog.ErrConflict, t.log(), "a", eventlog.At(beyond), note(1)), beyond, actual)
			t.conflict(t.refused(eventlog.ErrConflict, t.reopen(), "a", eventlog.At(beyond), note(1)), beyond, actual)
		},
	},
	{
		name:        "At another history",
		explanation: "A head with the right seq and another hash is a conflict: seqs alone do not name a history.",
		run: func(t *env) {
			actual := t.fill(t.log(), "a", 3)
			foreign := t.fill(t.log(), "b", 3)
			t.conflict(t.refused(eventlog.ErrConflict, t.log(), "a", eventlog.At(foreign), note(1)), foreign, actual)
		},
	},
	{
		name:        "At on a missing session",
		explanation: "At on a session that does not exist is ErrNotFound, and does not create it.",
		run: func(t *env) {
			head := t.fill(t.log(), "a", 1)
			t.refused(eventlog.ErrNotFound, t.log(), "b", eventlog.At(head), note(1))
			t.missing(t.log(), "b")
		},
	},
	{
		name:        "before validation",
		explanation: "The expectation is compared first: at a wrong head an append is a conflict, whatever its history would say of it.",
		run: func(t *env) {
			old := t.append(t.log(), "a", eventlog.New(), note(1))
			t.fill(t.log(), "a", 1)
			t.refused(eventlog.ErrConflict, t.log(), "a", eventlog.At(old), result("nobody"))
		},
	},
	{
		name:        "sessions are apart",
		explanation: "Appends to one session leave the heads of all others as they were.",
		run:         testExpectApart,
	},
}

func testExpectTooLow(t *env) {
	l := t.log()
	heads := []event.Head{t.fill(l, "a", 1)}
	for range 5 {
		heads = append(heads, t.fill(l, "a", 1))
	}
	actual := heads[5]
	for _, old := range heads[:5] {
		t.conflict(t.refused(eventlog.ErrConflict, l, "a", eventlog.At(old), note(1)), old, actual)
		t.conflict(t.refused(eventlog.ErrConflict, l, "a", eventlog.At(old), notes(9)...), old, actual)
	}
	t.conflict(t.refused(eventlog.ErrConflict, t.reopen(), "a", eventlog.At(heads[2]), note(1)), heads[2], actual)
}

func testExpectApart(t *env) {
	l := t.log()
	heads := map[string]event.Head{}
	sessions := []string{"a", "b", "c", "d"}
	for n := range 40 {
		session := sessions[n*7%4]
		heads[session] = t.append(l, session, eventlog.At(heads[session]), notes(1+n%2)...)
	}
	l = t.reopen()
	for _, session := range sessions {
		t.same("head of "+session, heads[session], t.head(l, session))
		t.sound(l, session)
	}
}

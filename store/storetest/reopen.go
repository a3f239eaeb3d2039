package storetest

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var reopenCases = []testCase{
	{
		name:        "a thousand events",
		explanation: "A session of a thousand events has the same head and lines after a reopen, and goes on from there.",
		run:         testReopenThousand,
	},
	{
		name:        "many times",
		explanation: "A store that is closed and opened after every append has lost nothing.",
		run: func(t *env) {
			head := event.Head{}
			for n := range 12 {
				head = t.append(t.reopen(), "a", eventlog.At(head), notes(1+n%3)...)
			}
			t.same("events", 24, len(t.lines(t.reopen(), "a")))
			t.sound(t.log(), "a")
		},
	},
	{
		name:        "more sessions than are kept in memory",
		explanation: "Sessions that fell out of memory behave as those that did not.",
		run:         testReopenCold,
	},
	{
		name:        "changes nothing",
		explanation: "Opening, reading and closing a store leaves every line as it was.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), calls("c1"), result("c1"))
			want := t.lines(t.log(), "a")
			for range 3 {
				t.read(t.reopen(), "a", eventlog.All())
				t.sound(t.log(), "a")
			}
			t.same("lines", want, t.lines(t.reopen(), "a"))
		},
	},
}

func testReopenThousand(t *env) {
	l := t.log()
	head := event.Head{}
	for n := range 1000 {
		head = t.append(l, "a", eventlog.At(head), note(n))
	}
	want := t.lines(l, "a")
	l = t.reopen()
	t.same("head", head, t.head(l, "a"))
	t.same("lines", want, t.lines(l, "a"))
	next := t.append(l, "a", eventlog.At(head), note(1000))
	t.same("seq", int64(1001), next.Seq)
	t.sound(l, "a")
}

func testReopenCold(t *env) {
	l := t.over(t.store(), eventlog.Options{HotSessions: 4})
	heads := map[string]event.Head{}
	for n := range 150 {
		session := fmt.Sprintf("s%d", n*7%15)
		switch n / 15 % 3 {
		case 0:
			heads[session] = t.append(l, session, eventlog.At(heads[session]), calls("c"))
		case 1:
			heads[session] = t.append(l, session, eventlog.At(heads[session]), note(n))
		default:
			heads[session] = t.append(l, session, eventlog.At(heads[session]), result("c"))
			t.refused(event.ErrInvalidResult, l, session, eventlog.Any(), result("c"))
		}
	}
	for session, head := range heads {
		t.same("head of "+session, head, t.head(t.log(), session))
		t.sound(t.log(), session)
	}
}

package storetest

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var reopenCases = []testCase{
	{
		Name:        "a thousand events",
		Explanation: "A session of a thousand events has the same head and lines after a reopen and accepts more appends.",
		Run:         testReopenThousand,
	},
	{
		Name:        "many times",
		Explanation: "A store that is closed and reopened after every append loses nothing.",
		Run: func(t *env) {
			head := event.Head{}
			for n := range 12 {
				head = t.Append(t.Reopen(), "a", eventlog.At(head), suite.Notes(1+n%3)...)
			}
			t.WantEqual("events", 24, len(t.Lines(t.Reopen(), "a")))
			t.WantVerified(t.Main(), "a")
		},
	},
	{
		Name:        "uncached sessions",
		Explanation: "Sessions that left the log's cache behave like cached sessions.",
		Run:         testReopenCold,
	},
	{
		Name:        "changes nothing",
		Explanation: "Opening, reading and closing a store changes no line.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1"), suite.Result("c1"))
			want := t.Lines(t.Main(), "a")
			for range 3 {
				t.Read(t.Reopen(), "a", eventlog.All())
				t.WantVerified(t.Main(), "a")
			}
			t.WantEqual("lines", want, t.Lines(t.Reopen(), "a"))
		},
	},
}

func testReopenThousand(t *env) {
	l := t.Main()
	head := event.Head{}
	count := t.Volume(1000)
	for n := range count {
		head = t.Append(l, "a", eventlog.At(head), suite.Note(n))
	}
	want := t.Lines(l, "a")
	l = t.Reopen()
	t.WantEqual("head", head, t.Head(l, "a"))
	t.WantEqual("lines", want, t.Lines(l, "a"))
	next := t.Append(l, "a", eventlog.At(head), suite.Note(count))
	t.WantEqual("seq", int64(count+1), next.Seq)
	t.WantVerified(l, "a")
}

func testReopenCold(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{HotSessions: 4})
	heads := map[string]event.Head{}
	for n := range 150 {
		session := fmt.Sprintf("s%d", n*7%15)
		switch n / 15 % 3 {
		case 0:
			heads[session] = t.Append(l, session, eventlog.At(heads[session]), suite.Calls("c"))
		case 1:
			heads[session] = t.Append(l, session, eventlog.At(heads[session]), suite.Note(n))
		default:
			heads[session] = t.Append(l, session, eventlog.At(heads[session]), suite.Result("c"))
			t.WantAppendError(event.OrphanResult, l, session, eventlog.Any(), suite.Result("c"))
		}
	}
	for session, head := range heads {
		t.WantEqual("head of "+session, head, t.Head(t.Main(), session))
		t.WantVerified(t.Main(), session)
	}
}

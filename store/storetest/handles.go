package storetest

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

var handleCases = []testCase{
	{
		name:        "take turns",
		explanation: "What one handle appends the other sees at once, and appends behind it.",
		needs:       []Need{Handles},
		run:         testHandlesTurns,
	},
	{
		name:        "a result does not vanish",
		explanation: "A call through one handle and its result through the other both stand, and the result is accepted once.",
		needs:       []Need{Handles},
		run:         testHandlesCall,
	},
	{
		name:        "stale memory",
		explanation: "A head that another handle has moved on from is a conflict, although this handle wrote it last.",
		needs:       []Need{Handles},
		run:         testHandlesStale,
	},
	{
		name:        "conversations interleaved",
		explanation: "Two handles that hold conversations in one session at once lose neither a call nor a result.",
		needs:       []Need{Handles},
		run:         testHandlesConversations,
	},
	{
		name:        "retry through the other",
		explanation: "An append retried through another handle is stored once.",
		needs:       []Need{Handles},
		run: func(t *env) {
			a, b := t.log(), t.second()
			head := t.fill(a, "a", 2)
			t.fill(b, "b", 1)
			events := notes(3)
			want := t.append(a, "a", eventlog.At(head), events...)
			t.same("head", want, t.append(b, "a", eventlog.At(head), events...))
			t.same("head with Any", want, t.append(b, "a", eventlog.Any(), events...))
			t.same("events", 5, len(t.lines(a, "a")))
		},
	},
	{
		name:        "removed by the other",
		explanation: "A session that another handle removed and created anew never satisfies the head this handle remembers.",
		needs:       []Need{Handles, Remover},
		run:         testHandlesRemoved,
	},
	{
		name:        "rewritten by the other",
		explanation: "A redaction through another handle is seen at once, and this handle appends behind it.",
		needs:       []Need{Handles, Rewriter},
		run:         testHandlesRedacted,
	},
	{
		name:        "closing one",
		explanation: "Closing one handle does not disturb the other.",
		needs:       []Need{Handles},
		run: func(t *env) {
			a, b := t.log(), t.second()
			t.fill(a, "a", 2)
			t.fill(b, "a", 2)
			t.must(a.Close())
			t.fill(b, "a", 2)
			t.same("seqs", []int64{1, 2, 3, 4, 5, 6}, seqsIn(t.read(b, "a", eventlog.All())))
			t.sound(b, "a")
		},
	},
}

func testHandlesTurns(t *env) {
	logs := []*eventlog.Log{t.log(), t.second()}
	head := event.Head{}
	for n := range 40 {
		head = t.append(logs[n%2], "a", eventlog.At(head), notes(1+n%3)...)
		t.same("head of the other", head, t.head(logs[1-n%2], "a"))
	}
	t.same("lines", t.lines(logs[0], "a"), t.lines(logs[1], "a"))
	t.sound(logs[1], "a")
}

func testHandlesCall(t *env) {
	a, b := t.log(), t.second()
	t.append(a, "a", eventlog.New(), user("go"))
	t.append(b, "a", eventlog.Any(), note(1))
	t.append(a, "a", eventlog.Any(), calls("c1", "c2"))
	t.append(b, "a", eventlog.Any(), result("c1"))
	t.append(a, "a", eventlog.Any(), note(2))
	t.refused(event.ErrInvalidResult, a, "a", eventlog.Any(), result("c1"))
	t.append(a, "a", eventlog.Any(), result("c2"))
	t.refused(event.ErrInvalidResult, b, "a", eventlog.Any(), result("c2"))
	t.same("events", 6, len(t.lines(b, "a")))
	t.sound(b, "a")
}

func testHandlesStale(t *env) {
	a, b := t.log(), t.second()
	old := t.fill(a, "a", 3)
	actual := t.fill(b, "a", 1)
	t.conflict(t.refused(eventlog.ErrConflict, a, "a", eventlog.At(old), note(1)), old, actual)
	t.append(a, "a", eventlog.At(actual), note(2))
	t.refused(eventlog.ErrConflict, b, "a", eventlog.At(actual), note(3))
}

func testHandlesConversations(t *env) {
	logs := []*eventlog.Log{t.log(), t.second()}
	const turns = 25
	errs := together(2, func(i int) error {
		for n := range turns {
			id := fmt.Sprintf("call-%d-%d", i, n)
			for _, e := range []event.Event{calls(id), result(id)} {
				if _, err := logs[i].Append(t.ctx, "a", eventlog.Any(), e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	t.must(errors.Join(errs...))
	t.same("events", 4*turns, len(t.lines(logs[0], "a")))
	for i := range logs {
		t.refused(event.ErrInvalidResult, logs[i], "a", eventlog.Any(), result(fmt.Sprintf("call-%d-3", 1-i)))
		t.sound(logs[i], "a")
	}
}

func testHandlesRemoved(t *env) {
	a, b := t.log(), t.second()
	events := notes(3)
	old := t.append(a, "a", eventlog.New(), events...)
	t.must(erase.Remove(t.ctx, b, "a"))
	t.missing(a, "a")
	t.refused(eventlog.ErrNotFound, a, "a", eventlog.At(old), note(1))
	t.append(b, "a", eventlog.New(), events...)
	t.refused(eventlog.ErrConflict, a, "a", eventlog.At(old), note(1))
	t.append(a, "a", eventlog.Any(), note(1))
	t.same("seqs", []int64{1, 2, 3, 4}, seqsIn(t.read(b, "a", eventlog.All())))
	t.sound(b, "a")
}

func testHandlesRedacted(t *env) {
	a, b := t.log(), t.second()
	t.append(a, "a", eventlog.New(), user("the secret"))
	t.fill(a, "a", 2)
	_, err := erase.Redact(t.ctx, b, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.must(err)
	t.append(a, "a", eventlog.Any(), note(9))
	events := t.read(a, "a", eventlog.All())
	t.same("seqs", []int64{1, 2, 3, 4, 5}, seqsIn(events))
	t.same("redacted", true, events[0].Redacted())
	t.sound(a, "a")
	t.same("lines", t.lines(b, "a"), t.lines(a, "a"))
}

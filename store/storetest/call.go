package storetest

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var callCases = []testCase{
	{
		name:        "result without a call",
		explanation: "A tool result is accepted only for a call that is pending.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), user("go"), calls("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c2"))
			t.refused(event.ErrInvalidResult, t.reopen(), "a", eventlog.Any(), result("c2"))
			t.append(t.log(), "a", eventlog.Any(), result("c1"))
		},
	},
	{
		name:        "result twice",
		explanation: "A call has one result: the second is refused, also after a reopen, and also within one append.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), calls("c1", "c2"), result("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c2"), result("c2"))
			t.refused(event.ErrInvalidResult, t.reopen(), "a", eventlog.Any(), result("c1"))
			t.append(t.log(), "a", eventlog.Any(), result("c2"))
		},
	},
	{
		name:        "after a refusal",
		explanation: "What a refused append would have opened or ended is as it was, also where the history was searched for it.",
		run: func(t *env) {
			last := note(1)
			t.append(t.log(), "a", eventlog.New(), calls("c1"))
			t.append(t.log(), "a", eventlog.Any(), calls("c2"), result("c1"), last)
			l := t.reopen()
			taken := note(2)
			taken.ID = last.ID
			t.refused(eventlog.ErrConflict, l, "a", eventlog.Any(), calls("c1"), result("c2"), taken)
			t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), result("c1"))
			t.append(l, "a", eventlog.Any(), result("c2"))
		},
	},
	{
		name:        "interrupted result",
		explanation: "An explicit interrupted result ends its call like any other.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), calls("c1"))
			t.append(t.log(), "a", eventlog.Any(), interrupted("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c1"))
		},
	},
	{
		name:        "what comes between",
		explanation: "Messages, compactions and snapshots between a call and its result do not clear the call.",
		run:         testCallBetween,
	},
	{
		name:        "a hundred at once",
		explanation: "A message may make a hundred calls; their results come in any order, one by one, in between a reopen.",
		run:         testCallHundred,
	},
	{
		name:        "far back",
		explanation: "The result of a call that lies thousands of events back is accepted, in a store that was just opened.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), calls("c1", "c2"))
			t.append(t.log(), "a", eventlog.Any(), notes(4000)...)
			t.append(t.reopen(), "a", eventlog.Any(), result("c1"))
			t.refused(event.ErrInvalidResult, t.reopen(), "a", eventlog.Any(), result("c1"))
			t.append(t.log(), "a", eventlog.Any(), result("c2"))
		},
	},
	{
		name:        "id used again",
		explanation: "A call id may be used again once its call has ended; one result ends it each time, however far back the older ones lie.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), calls("c1"), result("c1"), calls("c1"))
			t.append(t.reopen(), "a", eventlog.Any(), result("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c1"))
			t.append(t.log(), "a", eventlog.Any(), calls("c1"), result("c1"))
			t.refused(event.ErrInvalidResult, t.reopen(), "a", eventlog.Any(), result("c1"))
		},
	},
	{
		name:        "id pending twice",
		explanation: "A call id that an import made pending twice is ended by one result, in memory and after a reopen alike.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), calls("c0"))
			t.append(t.log(), "a", eventlog.Any().Lenient(), calls("c1"))
			t.append(t.log(), "a", eventlog.Any().Lenient(), calls("c1"))
			t.append(t.reopen(), "a", eventlog.Any(), result("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c1"))
			t.append(t.log(), "a", eventlog.Any(), result("c0"))
			t.refused(event.ErrInvalidResult, t.reopen(), "a", eventlog.Any(), result("c1"))
		},
	},
	{
		name:        "id twice",
		explanation: "An id that repeats within a message is refused; one that repeats while it is pending stays pending, and one result ends it.",
		run: func(t *env) {
			t.refused(event.ErrInvalidCall, t.log(), "a", eventlog.New(), calls("c1", "c1"))
			t.append(t.log(), "a", eventlog.New(), calls("c1"), calls("c1"), result("c1"))
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.Any(), result("c1"))
			t.refused(event.ErrInvalidResult, t.reopen(), "a", eventlog.Any(), result("c1"))
			t.append(t.log(), "a", eventlog.Any(), calls("c1"), result("c1"))
		},
	},
	{
		name:        "lenient",
		explanation: "An import may break the rules of conversation: they are marked in the metadata, and a retry is still stored once.",
		run:         testCallLenient,
	},
}

func testCallBetween(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), user("go"), calls("c1", "c2"))
	between := []event.Event{
		user("and another thing"),
		newEvent(event.CompactionTriggered, `{"strategy":"test","covers":{"from":1,"to":1},"entries":[]}`),
		newEvent(event.ProjectionSnapshotted, `{"projection":"p","version":1,"snapshot_id":"0190a5a4-7d4c-7000-8000-000000000001",`+
			`"state_digest":"`+string(event.DigestOf([]byte("{}")))+`","index":0,"turn_index":0,"trigger":"manual","seq":2,"state":{}}`),
		newEvent(event.SessionUpdated, `{"title":"t"}`),
		calls("c3"),
	}
	for _, e := range between {
		t.append(l, "a", eventlog.Any(), e)
	}
	t.append(l, "a", eventlog.Any(), result("c1"))
	l = t.reopen()
	for _, id := range []string{"c3", "c2"} {
		t.append(l, "a", eventlog.Any(), result(id))
	}
	t.sound(l, "a")
}

func testCallHundred(t *env) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("call-%02d", i)
	}
	l := t.log()
	t.append(l, "a", eventlog.New(), calls(ids...))
	for i := range ids {
		if i == 50 {
			l = t.reopen()
		}
		t.append(l, "a", eventlog.Any(), result(ids[i*37%100]))
	}
	t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), result(ids[0]))
	t.same("events", 101, len(t.lines(l, "a")))
	t.sound(l, "a")
}

func testCallLenient(t *env) {
	l := t.log()
	events := []event.Event{result("nobody"), calls("c1"), calls("c1"), newEvent(event.MessageAdded, `{"role":"assistant","parts":[]}`), note(1)}
	events[0].Metadata = []byte(`{"origin":{"line":7.0}}`)
	head := t.append(l, "a", eventlog.New().Lenient(), events...)
	t.same("head of the retry", head, t.append(l, "a", eventlog.New().Lenient(), events...))
	got := t.read(t.reopen(), "a", eventlog.All())
	for i, broken := range []bool{true, false, false, true, false} {
		if value, ok := got[i].MetadataValue("broken"); ok != broken {
			t.Errorf("event %d: metadata broken is %s, want it: %v", i+1, value, broken)
		}
	}
	value, _ := got[0].MetadataValue("broken")
	t.same("the rule", `["orphan_result"]`, string(value))
	value, _ = got[0].MetadataValue("origin")
	t.same("the metadata beside it", `{"line":7.0}`, string(value))
	t.sound(t.log(), "a")
	t.refused(event.ErrInvalidRole, t.log(), "a", eventlog.Any().Lenient(), newEvent(event.MessageAdded, `{"role":"robot"}`))
}

package logtest

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var callCases = []testCase{
	{
		Name:        "result without a call",
		Explanation: "A tool result is accepted only for a pending call.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.User("go"), suite.Calls("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c2"))
			t.WantAppendError(event.OrphanResult, t.Reopen(), "a", eventlog.Any(), suite.Result("c2"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Result("c1"))
		},
	},
	{
		Name:        "result twice",
		Explanation: "A call has one result. A second result is rejected, also after a reopen and within one append.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1", "c2"), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c2"), suite.Result("c2"))
			t.WantAppendError(event.OrphanResult, t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Result("c2"))
		},
	},
	{
		Name:        "after a rejected append",
		Explanation: "A rejected append neither opens nor ends calls, even if the log searched the history for them.",
		Run: func(t *env) {
			last := suite.Note(1)
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Calls("c2"), suite.Result("c1"), last)
			l := t.Reopen()
			taken := suite.Note(2)
			taken.ID = last.ID
			t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.Any(), suite.Calls("c1"), suite.Result("c2"), taken)
			t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), suite.Result("c1"))
			t.Append(l, "a", eventlog.Any(), suite.Result("c2"))
		},
	},
	{
		Name:        "interrupted result",
		Explanation: "An interrupted result ends its call like any other result.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Interrupted("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c1"))
		},
	},
	{
		Name:        "events between call and result",
		Explanation: "Messages, compactions and snapshots between a call and its result do not end the call.",
		Run:         testCallBetween,
	},
	{
		Name:        "a hundred calls",
		Explanation: "A message may have a hundred calls. Their results come in any order, one by one, with a reopen between them.",
		Run:         testCallHundred,
	},
	{
		Name:        "old call",
		Explanation: "The result of a call thousands of events ago is accepted, even right after opening the store.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1", "c2"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Notes(4000)...)
			t.Append(t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Result("c2"))
		},
	},
	{
		Name:        "reused id",
		Explanation: "A call id may be used again after its call has ended. One result ends each call, even if earlier calls with the id are far back.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1"), suite.Result("c1"), suite.Calls("c1"))
			t.Append(t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Calls("c1"), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
		},
	},
	{
		Name:        "id pending twice",
		Explanation: "One result ends a call id that an import made pending twice, in the cache and after a reopen.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c0"))
			t.Append(t.Main(), "a", eventlog.Any().Lenient(), suite.Calls("c1"))
			t.Append(t.Main(), "a", eventlog.Any().Lenient(), suite.Calls("c1"))
			t.Append(t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Result("c0"))
			t.WantAppendError(event.OrphanResult, t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
		},
	},
	{
		Name:        "same id twice",
		Explanation: "An id that repeats within a message is rejected. An id that repeats while its call is pending stays pending, and one result ends it.",
		Run: func(t *env) {
			t.WantAppendError(event.Rule("duplicate_call"), t.Main(), "a", eventlog.New(), suite.Calls("c1", "c1"))
			t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1"), suite.Calls("c1"), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.Any(), suite.Result("c1"))
			t.WantAppendError(event.OrphanResult, t.Reopen(), "a", eventlog.Any(), suite.Result("c1"))
			t.Append(t.Main(), "a", eventlog.Any(), suite.Calls("c1"), suite.Result("c1"))
		},
	},
	{
		Name:        "lenient",
		Explanation: "An import may break the rules of conversation. The metadata marks the broken rules, and a retry is still stored once.",
		Run:         testCallLenient,
	},
	{
		Name:        "open words",
		Explanation: "A word that only a newer program knows is refused by a strict append, and kept and marked by a lenient one.",
		Run:         testOpenWords,
	},
}

func testCallBetween(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.User("go"), suite.Calls("c1", "c2"))
	between := []event.Event{
		suite.User("and another thing"),
		suite.NewEvent(event.CompactionTriggered, `{"strategy":"test","covers":{"from":1,"to":1},"entries":[]}`),
		suite.NewEvent(event.ProjectionSnapshotted, `{"projection":"p","version":1,"snapshot_id":"0190a5a4-7d4c-7000-8000-000000000001",`+
			`"state_digest":"`+string(event.DigestOf([]byte("{}")))+`","index":0,"turn_index":0,"trigger":"manual","seq":2,"state":{}}`),
		suite.NewEvent(event.SessionUpdated, `{"title":"t"}`),
		suite.Calls("c3"),
	}
	for _, e := range between {
		t.Append(l, "a", eventlog.Any(), e)
	}
	t.Append(l, "a", eventlog.Any(), suite.Result("c1"))
	l = t.Reopen()
	for _, id := range []string{"c3", "c2"} {
		t.Append(l, "a", eventlog.Any(), suite.Result(id))
	}
	t.WantVerified(l, "a")
}

func testCallHundred(t *env) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("call-%02d", i)
	}
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Calls(ids...))
	for i := range ids {
		if i == 50 {
			l = t.Reopen()
		}
		t.Append(l, "a", eventlog.Any(), suite.Result(ids[i*37%100]))
	}
	t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), suite.Result(ids[0]))
	t.WantEqual("events", 101, len(t.Lines(l, "a")))
	t.WantVerified(l, "a")
}

// openWords are payloads with a word that only a newer program knows.
var openWords = map[event.Type]string{
	event.ApprovalResolved:      `{"interrupt_id":"i","decision":"postponed"}`,
	event.ApprovalRequested:     `{"interrupt_id":"i","lapse":"ask again"}`,
	event.EffectIntended:        `{"key":"k","class":"mostly_once"}`,
	event.TurnCompleted:         `{"status":"paused"}`,
	event.ChildRequested.Type(): `{"child_id":"c","mode":"cloned"}`,
	event.WaitResolved:          `{"wait_id":"w","outcome":"forgotten"}`,
}

func testOpenWords(t *env) {
	n := 0
	for typ, data := range openWords {
		t.WantAppendError(event.Rule("unknown_word"), t.Main(), "a", eventlog.Any(), suite.NewEvent(typ, data))
		t.Append(t.Main(), "a", eventlog.Any().Lenient(), suite.NewEvent(typ, data))
		n++
	}
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		for _, e := range t.Read(l, "a", eventlog.All()) {
			t.WantEqual("data", openWords[e.Type], string(e.Data))
			t.WantEqual("mark", []event.Rule{"unknown_word"}, e.Broken())
		}
		t.WantEqual("events", int64(n), t.Head(l, "a").Seq)
		t.WantVerified(l, "a")
	})
}

func testCallLenient(t *env) {
	l := t.Main()
	events := []event.Event{suite.Result("missing"), suite.Calls("c1"), suite.Calls("c1"), suite.NewEvent(event.MessageAdded, `{"role":"assistant","parts":[]}`), suite.Note(1)}
	events[0].Metadata = []byte(`{"origin":{"line":7.0}}`)
	head := t.Append(l, "a", eventlog.New().Lenient(), events...)
	t.WantEqual("head of the retry", head, t.Append(l, "a", eventlog.New().Lenient(), events...))
	got := t.Read(t.Reopen(), "a", eventlog.All())
	for i, broken := range []bool{true, false, false, true, false} {
		if value, ok := got[i].MetadataValue("broken"); ok != broken {
			t.Errorf("event %d: metadata broken is %s, want it: %v", i+1, value, broken)
		}
	}
	value, _ := got[0].MetadataValue("broken")
	t.WantEqual("the rule", `["orphan_result"]`, string(value))
	value, _ = got[0].MetadataValue("origin")
	t.WantEqual("the other metadata", `{"line":7.0}`, string(value))
	t.WantVerified(t.Main(), "a")
	t.WantAppendError(event.Rule("unknown_role"), t.Main(), "a", eventlog.Any().Lenient(), suite.NewEvent(event.MessageAdded, `{"role":"robot"}`))
}

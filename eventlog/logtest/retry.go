package logtest

import (
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var retryCases = []testCase{
	{
		Name:        "same append",
		Explanation: "Appending the same events again at the same expectation succeeds with the same head and stores nothing.",
		Run:         testRetrySame,
	},
	{
		Name:        "partial append",
		Explanation: "An append of which only some events are stored after the expected head is a conflict.",
		Run:         testRetryPart,
	},
	{
		Name:        "before validation",
		Explanation: "A retry of a stored tool result succeeds, although its call is no longer pending.",
		Run: func(t *env) {
			head := t.Append(t.Main(), "a", eventlog.New(), suite.Calls("c1"))
			done := suite.Result("c1")
			want := t.Append(t.Main(), "a", eventlog.At(head), done)
			t.WantEqual("head", want, t.Append(t.Main(), "a", eventlog.At(head), done))
			t.WantEqual("head with Any", want, t.Append(t.Main(), "a", eventlog.Any(), done))
			t.WantEqual("head after a reopen", want, t.Append(t.Reopen(), "a", eventlog.At(head), done))
			t.WantEqual("events", 2, len(t.Lines(t.Main(), "a")))
		},
	},
	{
		Name:        "outcome unknown, stored",
		Explanation: "After an unknown outcome of a stored write, a retry stores nothing again.",
		Run:         func(t *env) { testRetryUnknown(t, suite.StoredUnknown) },
	},
	{
		Name:        "outcome unknown, lost",
		Explanation: "After an unknown outcome of a lost write, a retry stores the events.",
		Run:         func(t *env) { testRetryUnknown(t, suite.LostUnknown) },
	},
	{
		Name:        "outcome unknown, then other appends",
		Explanation: "A retry finds its events also after appends of others. AnyAfter stores the events if they are missing.",
		Run:         testRetryOvertaken,
	},
	{
		Name:        "outcome unknown many times",
		Explanation: "After any number of unknown outcomes, each event is stored once and in order.",
		Run:         testRetryOften,
	},
	{
		Name:        "head before the write",
		Explanation: "An unknown outcome has the head before the write and the session.",
		Run:         testRetryNamesHead,
	},
	{
		Name:        "synced",
		Explanation: "A retry that finds its events, and a fork of existing events, first make the events durable: a killed process may have left them unsynced. A fork in an OrdersAppends store need not.",
		Run:         testRetrySyncs,
	},
}

func testRetrySyncs(t *env) {
	s := &suite.CountingStore{Store: t.Store()}
	l := t.LogOver(s)
	events := suite.Notes(2)
	want := t.Append(l, "a", eventlog.New(), events...)
	for _, x := range []eventlog.Expect{eventlog.New(), eventlog.Any(), eventlog.Any().After(event.Head{})} {
		t.WantEqual("head", want, t.Append(l, "a", x, events...))
	}
	synced := []string{"a", "a", "a"}
	t.Append(l, "f", eventlog.New(), t.ForkAt("a", 2))
	o, ok := eventlog.As[eventlog.Syncer](t.Store())
	ordered := ok && o.OrdersAppends()
	if !ordered {
		synced = append(synced, "a")
	}
	t.WantEqual("sessions that were synced", synced, s.Synced)
	s.FailSync = true
	_, err := l.Append(t.Ctx, "a", eventlog.New(), events...)
	t.WantErr(eventlog.ErrUnknownOutcome, err)
	t.WantErr(suite.ErrInjected, err)
	if ordered {
		t.Append(l, "g", eventlog.New(), t.ForkAt("a", 2))
		return
	}
	_, err = l.Append(t.Ctx, "g", eventlog.New(), t.ForkAt("a", 2))
	t.WantErr(suite.ErrInjected, err)
	t.WantMissing(l, "g")
}

func testRetrySame(t *env) {
	l := t.Main()
	first := []event.Event{suite.User("hello"), suite.NoteWithMetadata(1, `{"k":1.0}`)}
	head := t.Append(l, "a", eventlog.New(), first...)
	second := suite.Notes(3)
	want := t.Append(l, "a", eventlog.At(head), second...)
	t.WantEqual("head", want, t.Append(l, "a", eventlog.At(head), second...))
	t.WantEqual("head of the first", head, t.Append(l, "a", eventlog.New(), first...))
	t.WantEqual("head with Any", want, t.Append(l, "a", eventlog.Any(), second...))
	t.Fill(l, "a", 3)
	l = t.Reopen()
	t.WantEqual("head after a reopen", want, t.Append(l, "a", eventlog.At(head), second...))
	t.WantEqual("events", 8, len(t.Lines(l, "a")))
}

func testRetryPart(t *env) {
	l := t.Main()
	head := t.Fill(l, "a", 2)
	stored := suite.Notes(3)
	t.Append(l, "a", eventlog.At(head), stored...)
	more := append(stored[:3:3], suite.Note(9))
	t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(head), more...)
	t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(head), stored[1:]...)
	t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(head), stored[1], stored[0], stored[2])
	t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.Any(), more...)
}

func testRetryUnknown(t *env, f suite.Fault) {
	s := &suite.FaultyStore{Store: t.Open()}
	l := t.LogOver(s)
	for _, start := range []eventlog.Expect{eventlog.New(), eventlog.Any()} {
		session := "new"
		if start == eventlog.Any() {
			session = "any"
		}
		head := event.Head{}
		x := start
		for range 3 {
			events := suite.Notes(2)
			s.Fail(f)
			_, err := l.Append(t.Ctx, session, x, events...)
			t.WantErr(eventlog.ErrUnknownOutcome, err)
			head = t.Append(l, session, retryOf(x, err), events...)
			if x = eventlog.At(head); start == eventlog.Any() {
				x = eventlog.Any()
			}
		}
		t.WantEqual("seq of the head", int64(6), head.Seq)
		t.WantVerified(l, session)
	}
	t.WantEqual("events after a reopen", 6, len(t.Lines(t.Reopen(), "any")))
}

// retryOf returns the expectation for a retry.
func retryOf(x eventlog.Expect, err error) eventlog.Expect {
	var unknown *eventlog.UnknownOutcomeError
	if x == eventlog.Any() && errors.As(err, &unknown) {
		return eventlog.Any().After(unknown.Head)
	}
	return x
}

func testRetryOvertaken(t *env) {
	s := &suite.FaultyStore{Store: t.Store()}
	l := t.LogOver(s)
	for session, f := range map[string]suite.Fault{"stored": suite.StoredUnknown, "lost": suite.LostUnknown} {
		head := t.Fill(l, session, 2)
		events := suite.Notes(2)
		s.Fail(f)
		_, err := l.Append(t.Ctx, session, eventlog.Any(), events...)
		t.WantErr(eventlog.ErrUnknownOutcome, err)
		t.Append(t.Main(), session, eventlog.Any(), suite.Notes(600)...)
		t.Append(l, session, retryOf(eventlog.Any(), err), events...)
		if f == suite.StoredUnknown {
			t.Append(l, session, eventlog.At(head), events...)
		} else {
			t.WantAppendError(eventlog.ErrConflict, l, session, eventlog.At(head), events...)
		}
		t.WantEqual("events", 604, len(t.Lines(l, session)))
		t.WantVerified(l, session)
	}
}

func testRetryOften(t *env) {
	s := &suite.FaultyStore{Store: t.Open()}
	l := t.LogOver(s)
	var want []string
	for n := range 60 {
		e := suite.Note(n)
		want = append(want, e.ID.String())
		for range n % 5 {
			s.Fail(suite.Fault(n % 2))
		}
		x := eventlog.Any()
		_, err := l.Append(t.Ctx, "a", x, e)
		for tries := 0; err != nil && tries < 10; tries++ {
			t.WantErr(eventlog.ErrUnknownOutcome, err)
			x = retryOf(x, err)
			_, err = l.Append(t.Ctx, "a", x, e)
		}
		t.Must(err)
	}
	t.WantEqual("ids", want, suite.IDsOf(t.Read(l, "a", eventlog.All())))
	t.WantVerified(l, "a")
}

func testRetryNamesHead(t *env) {
	s := &suite.FaultyStore{Store: t.Open()}
	l := t.LogOver(s)
	head := t.Fill(l, "a", 3)
	s.Fail(suite.LostUnknown)
	_, err := l.Append(t.Ctx, "a", eventlog.Any(), suite.Note(1))
	var unknown *eventlog.UnknownOutcomeError
	if !errors.As(err, &unknown) {
		t.Fatalf("got error %v, want an UnknownOutcomeError", err)
	}
	t.WantEqual("head", head, unknown.Head)
	t.WantEqual("session", "a", unknown.Session)
	t.WantErr(suite.ErrInjected, err)
}

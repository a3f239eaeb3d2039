package storetest

import (
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var retryCases = []testCase{
	{
		name:        "same append again",
		explanation: "Appending the same events at the same expectation again succeeds with the same head and stores nothing.",
		run:         testRetrySame,
	},
	{
		name:        "a part is not the whole",
		explanation: "Events of which only some stand behind the expectation are a conflict, not a success.",
		run:         testRetryPart,
	},
	{
		name:        "comes before validation",
		explanation: "A retry of a tool result that stands already succeeds, although its call is no longer pending.",
		run: func(t *env) {
			head := t.append(t.log(), "a", eventlog.New(), calls("c1"))
			done := result("c1")
			want := t.append(t.log(), "a", eventlog.At(head), done)
			t.same("head", want, t.append(t.log(), "a", eventlog.At(head), done))
			t.same("head with Any", want, t.append(t.log(), "a", eventlog.Any(), done))
			t.same("head after a reopen", want, t.append(t.reopen(), "a", eventlog.At(head), done))
			t.same("events", 2, len(t.lines(t.log(), "a")))
		},
	},
	{
		name:        "outcome unknown, stored",
		explanation: "After an unknown outcome where the write stood, the retry stores nothing twice.",
		run:         func(t *env) { testRetryUnknown(t, storedUnknown) },
	},
	{
		name:        "outcome unknown, lost",
		explanation: "After an unknown outcome where the write was lost, the retry stores it.",
		run:         func(t *env) { testRetryUnknown(t, lostUnknown) },
	},
	{
		name:        "outcome unknown, others went on",
		explanation: "A retry finds its events also behind what others appended meanwhile; AnyAfter stores them if they are not there.",
		run:         testRetryOvertaken,
	},
	{
		name:        "outcome unknown many times",
		explanation: "However often the outcome is unknown, each event is stored once, and in order.",
		run:         testRetryOften,
	},
	{
		name:        "names the head before",
		explanation: "An unknown outcome names the head before the write, and its session.",
		run:         testRetryNamesHead,
	},
	{
		name:        "what stands is synced",
		explanation: "A retry that finds its events, and a fork that is built on a parent's, have them made durable first: a process that was killed may have left them unsynced.",
		run:         testRetrySyncs,
	},
}

func testRetrySyncs(t *env) {
	s := &watchful{Store: t.store()}
	l := t.over(s)
	events := notes(2)
	want := t.append(l, "a", eventlog.New(), events...)
	for _, x := range []eventlog.Expect{eventlog.New(), eventlog.Any(), eventlog.AnyAfter(event.Head{})} {
		t.same("head", want, t.append(l, "a", x, events...))
	}
	t.append(l, "f", eventlog.New(), t.forkAt("a", 2))
	t.same("sessions that were synced", []string{"a", "a", "a", "a"}, s.synced)
	s.refuses = true
	_, err := l.Append(t.ctx, "a", eventlog.New(), events...)
	t.wantErr(eventlog.ErrUnknownOutcome, err)
	t.wantErr(errInjected, err)
	_, err = l.Append(t.ctx, "g", eventlog.New(), t.forkAt("a", 2))
	t.wantErr(errInjected, err)
	t.missing(l, "g")
}

func testRetrySame(t *env) {
	l := t.log()
	first := []event.Event{user("hello"), noted(1, `{"k":1.0}`)}
	head := t.append(l, "a", eventlog.New(), first...)
	second := notes(3)
	want := t.append(l, "a", eventlog.At(head), second...)
	t.same("head", want, t.append(l, "a", eventlog.At(head), second...))
	t.same("head of the first", head, t.append(l, "a", eventlog.New(), first...))
	t.same("head with Any", want, t.append(l, "a", eventlog.Any(), second...))
	t.fill(l, "a", 3)
	l = t.reopen()
	t.same("head after a reopen", want, t.append(l, "a", eventlog.At(head), second...))
	t.same("events", 8, len(t.lines(l, "a")))
}

func testRetryPart(t *env) {
	l := t.log()
	head := t.fill(l, "a", 2)
	stored := notes(3)
	t.append(l, "a", eventlog.At(head), stored...)
	more := append(stored[:3:3], note(9))
	t.refused(eventlog.ErrConflict, l, "a", eventlog.At(head), more...)
	t.refused(eventlog.ErrConflict, l, "a", eventlog.At(head), stored[1:]...)
	t.refused(eventlog.ErrConflict, l, "a", eventlog.At(head), stored[1], stored[0], stored[2])
	t.refused(eventlog.ErrConflict, l, "a", eventlog.Any(), more...)
}

func testRetryUnknown(t *env, f fault) {
	s := &faulty{Store: t.open()}
	l := t.over(s)
	for _, start := range []eventlog.Expect{eventlog.New(), eventlog.Any()} {
		session := "new"
		if start == eventlog.Any() {
			session = "any"
		}
		head := event.Head{}
		x := start
		for range 3 {
			events := notes(2)
			s.fail(f)
			_, err := l.Append(t.ctx, session, x, events...)
			t.wantErr(eventlog.ErrUnknownOutcome, err)
			head = t.append(l, session, retryOf(x, err), events...)
			if x = eventlog.At(head); start == eventlog.Any() {
				x = eventlog.Any()
			}
		}
		t.same("seq of the head", int64(6), head.Seq)
		t.sound(l, session)
	}
	t.same("events after a reopen", 6, len(t.lines(t.reopen(), "any")))
}

// retryOf is the expectation that an append is retried with.
func retryOf(x eventlog.Expect, err error) eventlog.Expect {
	var unknown *eventlog.UnknownOutcomeError
	if x == eventlog.Any() && errors.As(err, &unknown) {
		return eventlog.AnyAfter(unknown.Head)
	}
	return x
}

func testRetryOvertaken(t *env) {
	s := &faulty{Store: t.store()}
	l := t.over(s)
	for session, f := range map[string]fault{"stored": storedUnknown, "lost": lostUnknown} {
		head := t.fill(l, session, 2)
		events := notes(2)
		s.fail(f)
		_, err := l.Append(t.ctx, session, eventlog.Any(), events...)
		t.wantErr(eventlog.ErrUnknownOutcome, err)
		t.append(t.log(), session, eventlog.Any(), notes(600)...)
		t.append(l, session, retryOf(eventlog.Any(), err), events...)
		if f == storedUnknown {
			t.append(l, session, eventlog.At(head), events...)
		} else {
			t.refused(eventlog.ErrConflict, l, session, eventlog.At(head), events...)
		}
		t.same("events", 604, len(t.lines(l, session)))
		t.sound(l, session)
	}
}

func testRetryOften(t *env) {
	s := &faulty{Store: t.open()}
	l := t.over(s)
	var want []string
	for n := range 60 {
		e := note(n)
		want = append(want, e.ID.String())
		for range n % 5 {
			s.fail(fault(n % 2))
		}
		x := eventlog.Any()
		for {
			_, err := l.Append(t.ctx, "a", x, e)
			if err == nil {
				break
			}
			t.wantErr(eventlog.ErrUnknownOutcome, err)
			if x == eventlog.Any() {
				x = retryOf(x, err)
			}
		}
	}
	t.same("ids", want, idsOf(t.read(l, "a", eventlog.All())))
	t.sound(l, "a")
}

func testRetryNamesHead(t *env) {
	s := &faulty{Store: t.open()}
	l := t.over(s)
	head := t.fill(l, "a", 3)
	s.fail(lostUnknown)
	_, err := l.Append(t.ctx, "a", eventlog.Any(), note(1))
	var unknown *eventlog.UnknownOutcomeError
	if !errors.As(err, &unknown) {
		t.Fatalf("got error %v, want an UnknownOutcomeError", err)
	}
	t.same("head", head, unknown.Head)
	t.same("session", "a", unknown.Session)
	t.wantErr(errInjected, err)
}

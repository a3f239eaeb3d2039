package logtest

import (
	"errors"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/witness"
)

// losses are ways to lose or change sessions of the sample. lineDamages has more. Most of them leave
// sessions that are consistent in themselves: only a head shows the loss.
var losses = []struct {
	name    string
	ofLines bool // of lines only: the store has the session's row or file
	ofOther bool // only the session Other is changed
	lose    func(t *env, written map[string][]event.Event)
}{
	{"the last line", true, false, func(t *env, _ map[string][]event.Event) { t.Damage(witness.Main, withoutLast(1)) }},
	{"the last append", true, false, func(t *env, _ map[string][]event.Event) { t.Damage(witness.Main, withoutLast(2)) }},
	{"all lines but the first", true, false, func(t *env, _ map[string][]event.Event) {
		t.Damage(witness.Main, func(l []string) []string { return l[:1] })
	}},
	{"the newest append, without a trace", false, false, func(t *env, written map[string][]event.Event) {
		t.exchange(witness.Main, written[witness.Main][:20])
	}},
	{"all appends but the first, without a trace", false, false, func(t *env, written map[string][]event.Event) {
		t.exchange(witness.Main, written[witness.Main][:1])
	}},
	{"a session, without a trace", false, false, func(t *env, _ map[string][]event.Event) { t.exchange(witness.Main, nil) }},
	{"a fork, without a trace", false, false, func(t *env, _ map[string][]event.Event) { t.exchange(witness.Fork, nil) }},
	{"all sessions, without a trace", false, false, func(t *env, written map[string][]event.Event) {
		for session := range written {
			t.exchange(session, nil)
		}
	}},
	{"the newest append of each session, as in an older copy of the store", false, false, func(t *env, written map[string][]event.Event) {
		for session, events := range written {
			t.exchange(session, events[:lastBefore(events)])
		}
	}},
	{"a session, and another one has its id", false, false, func(t *env, written map[string][]event.Event) {
		t.exchange(witness.Main, forged(written[witness.Main], 0, len(written[witness.Main])))
	}},
	{"a session, and a longer one has its id", false, false, func(t *env, written map[string][]event.Event) {
		t.exchange(witness.Main, forged(written[witness.Main], 0, 40))
	}},
	{"the end of a session, and other events are there", false, false, func(t *env, written map[string][]event.Event) {
		t.exchange(witness.Main, forged(written[witness.Main], 10, len(written[witness.Main])))
	}},
	{"the newest event, and another one is there", false, true, func(t *env, written map[string][]event.Event) {
		t.exchange(witness.Other, forged(written[witness.Other], len(written[witness.Other])-1, len(written[witness.Other])))
	}},
	{"the end of a session, and more events are there", false, true, func(t *env, written map[string][]event.Event) {
		t.exchange(witness.Other, forged(written[witness.Other], 4, 20))
	}},
}

func withoutLast(n int) func([]string) []string {
	return func(l []string) []string { return l[:len(l)-n] }
}

// lastBefore is the number of events before the last append.
func lastBefore(events []event.Event) int {
	n := len(events) - 1
	for n > 0 && events[n-1].More() > 0 {
		n--
	}
	return n
}

// forged are events with the same beginning of a length and other events up to another length.
func forged(events []event.Event, same, all int) []event.Event {
	kept, lines := slices.Clone(events[:same]), make([]suite.Line, all-same)
	for i := range lines {
		lines[i] = suite.Line{Data: `{"forged":true}`}
	}
	var head event.Head
	if same > 0 {
		head = suite.HeadOf(kept)
	}
	return append(kept, suite.ChainAfter(events[0].SessionID, head, lines...)...)
}

// exchange removes a session from the store, and stores events in its place. It leaves no
// trace, as a program that knows the store and nothing of a log.
func (t *env) exchange(session string, events []event.Event) {
	t.Helper()
	s := t.Store()
	eraser, _ := eventlog.As[eventlog.Eraser](s)
	head, err := t.Main().Head(t.Ctx, session)
	if err == nil {
		err = eraser.RemoveSession(t.Ctx, session, head)
	}
	if !errors.Is(err, eventlog.ErrNotFound) {
		t.Must(err)
	}
	head = event.Head{}
	for len(events) > 0 {
		n := 1 + int(events[0].More())
		head = t.AppendLines(s, head, events[:n])
		events = events[n:]
	}
}

func testDamageHeads(t *env) {
	witness.WriteSample(t, t.Store())
	w := witness.New(t, t.Store())
	written := map[string][]event.Event{}
	for _, session := range []string{witness.Main, witness.Fork, witness.Other} {
		written[session] = t.Span(t.Store(), session, eventlog.Span{})
	}
	raw := t.RawLines(witness.Main)
	for _, x := range losses {
		x.lose(t, written)
		if named, lost := w.CheckHeads(t, t.Store()); lost == 0 || lost == 1 && slices.Contains(named, witness.Other) != x.ofOther {
			t.Errorf("%s: %d sessions are not as they were written, and these are named: %q", x.name, lost, named)
		}
		if x.ofLines {
			t.Damage(witness.Main, func([]string) []string { return raw })
			continue
		}
		for session, events := range written {
			t.exchange(session, events)
		}
	}
	if named, lost := w.CheckHeads(t, t.Store()); len(named)+lost > 0 {
		t.Errorf("of whole sessions, %d are not as they were written, and these are named: %q", lost, named)
	}
}

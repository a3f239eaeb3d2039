package replay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/replay"
)

// onEach runs a test on each backend.
func onEach(t *testing.T, test func(t *testing.T, log *eventlog.Log)) {
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()))
			t.Cleanup(func() { _ = log.Close() })
			test(t, log)
		})
	}
}

// failer is the common methods of testing.TB and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// appended appends events to a session, whatever its head is.
func appended(t failer, log *eventlog.Log, session string, events ...event.Event) event.Head {
	t.Helper()
	head, err := log.Append(context.Background(), session, eventlog.Any(), events...)
	if err != nil {
		t.Fatalf("append to %s: %v", session, err)
	}
	return head
}

func said(t failer, text string) event.Event {
	t.Helper()
	return event.UserMessage(text)
}

func moved(t failer, to int64) event.Event {
	t.Helper()
	return event.New(event.HeadMove{To: to})
}

// forked makes session a fork of parent at seq.
func forked(t failer, log *eventlog.Log, session, parent string, seq int64) {
	t.Helper()
	f := event.Fork{Parent: parent, Seq: seq}
	if seq > 0 {
		at, err := log.Event(context.Background(), parent, seq)
		if err != nil {
			t.Fatalf("event %d of %s: %v", seq, parent, err)
		}
		f.EventID, f.Hash = at.ID, at.Hash()
	}
	appended(t, log, session, event.New(f))
}

// all reads a sequence, and fails at an error.
func all(t failer, events iter.Seq2[event.Event, error]) (list []event.Event) {
	t.Helper()
	for e, err := range events {
		if err != nil {
			t.Fatalf("after %d events: %v", len(list), err)
		}
		list = append(list, e)
	}
	return list
}

// failure returns the error that ends a sequence and the events before it.
func failure(events iter.Seq2[event.Event, error]) (before []event.Event, err error) {
	for e, err := range events {
		if err != nil {
			return before, err
		}
		before = append(before, e)
	}
	return before, nil
}

// places formats events as session and seq.
func places(events []event.Event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = fmt.Sprintf("%s %d", e.SessionID, e.Seq)
	}
	return list
}

// family fills a log. Session p has events 1 to 6. Session f is a fork of p at 4 and
// has 5 to 8. Session g is a fork of f at 6 and has 7 to 10; its event 9 moves the
// head to 2.
func family(t failer, log *eventlog.Log) {
	t.Helper()
	for i := range 6 {
		appended(t, log, "p", said(t, fmt.Sprint("p", i+1)))
	}
	forked(t, log, "f", "p", 4)
	for i := range 3 {
		appended(t, log, "f", said(t, fmt.Sprint("f", i+6)))
	}
	forked(t, log, "g", "f", 6)
	appended(t, log, "g", said(t, "g8"))
	appended(t, log, "g", moved(t, 2))
	appended(t, log, "g", said(t, "g10"))
}

// rule is the rule of an expected OrderError.
type rule string

func (r rule) Error() string { return string(r) }

// fails reports whether err is the wanted error, or an OrderError of the wanted rule.
func fails(err, want error) bool {
	broken, isRule := want.(rule)
	if !isRule {
		return errors.Is(err, want)
	}
	where := new(replay.OrderError)
	return errors.As(err, &where) && where.Rule == string(broken)
}

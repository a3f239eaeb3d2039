package eventlog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// The fork point of a second fork may be before the fork point of the first: later
// events of the parent do not belong to the second fork.
func TestReadForkOfAForkBelowItsForkPoint(t *testing.T) {
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { _ = log.Close() })
	for range 4 {
		say(t, log, "parent")
	}
	forkAt(t, log, "child", "parent", 3)
	say(t, log, "child")
	forkAt(t, log, "grandchild", "child", 2)
	say(t, log, "grandchild")
	want := []string{"parent 1", "parent 2", "grandchild 3", "grandchild 4"}
	tests := []struct {
		name string
		r    eventlog.Range
		want []string
	}{
		{"all", eventlog.All(), want},
		{"from 2", eventlog.From(2), want[1:]},
		{"from 3", eventlog.From(3), want[2:]},
		{"to 3", eventlog.Between(0, 3), want[:3]},
		{"within the prefix", eventlog.Between(1, 2), want[:2]},
		{"last 3", eventlog.Last(3), want[1:]},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, lineage(t, log, "grandchild", test.r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		backward := lineage(t, log, "grandchild", test.r.Backward())
		slices.Reverse(backward)
		if diff := cmp.Diff(test.want, backward); diff != "" {
			t.Errorf("%s, backward (-want +got):\n%s", test.name, diff)
		}
	}
}

func say(t *testing.T, log *eventlog.Log, session string) {
	t.Helper()
	e := event.UserMessage("hello")
	if _, err := log.Append(context.Background(), session, eventlog.Any(), e); err != nil {
		t.Fatal(err)
	}
}

func forkAt(t *testing.T, log *eventlog.Log, session, parent string, seq int64) {
	t.Helper()
	at, err := log.Event(context.Background(), parent, seq)
	if err != nil {
		t.Fatal(err)
	}
	e := event.New(event.Fork{Parent: parent, Seq: seq, EventID: at.ID, Hash: at.Hash()})
	if _, err := log.Append(context.Background(), session, eventlog.New(), e); err != nil {
		t.Fatal(err)
	}
}

func lineage(t *testing.T, log *eventlog.Log, session string, r eventlog.Range) (names []string) {
	t.Helper()
	for e, err := range log.Read(context.Background(), session, r) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.SessionID+" "+string(rune('0'+e.Seq)))
	}
	return names
}

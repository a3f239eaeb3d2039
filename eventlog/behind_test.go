package eventlog_test

import (
	"context"
	"iter"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// spanned records the span of the last read, and the number of reads.
type spanned struct {
	eventlog.Store
	last  eventlog.Span
	reads int
}

func (s *spanned) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	s.last = r
	s.reads++
	return s.Store.Read(ctx, session, r)
}

// A log that lost a head to another log reads only the events after the head that it knows,
// unless the session was removed and created again.
func TestBehind(t *testing.T) {
	store := memory.New()
	reads := &spanned{Store: store}
	log, other := eventlog.Open(reads), eventlog.Open(store)
	add := func(log *eventlog.Log, want int64) {
		t.Helper()
		head, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello"))
		if err != nil || head.Seq != want {
			t.Fatalf("append: got %v, %v; want seq %d", head, err, want)
		}
	}
	add(log, 1)
	add(other, 2)
	add(other, 3)
	add(log, 4)
	if reads.last.From != 2 {
		t.Errorf("the last read began with seq %d, want 2", reads.last.From)
	}
	head, err := other.Head(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.RemoveSession(t.Context(), "s", head); err != nil {
		t.Fatal(err)
	}
	again := eventlog.Open(store)
	for seq := range int64(6) {
		add(again, seq+1)
	}
	add(log, 7)
	if reads.last.From != 0 {
		t.Errorf("the last read of the new session began with seq %d, want 0", reads.last.From)
	}
}

// A log that is far behind reads the newest events once, and the first event.
func TestFarBehind(t *testing.T) {
	store := memory.New()
	reads := &spanned{Store: store}
	log, other := eventlog.Open(reads), eventlog.Open(store)
	talk(t, log, "s", 1)
	talk(t, other, "s", 1000)
	before := reads.reads
	talk(t, log, "s", 1)
	if n := reads.reads - before; n != 2 {
		t.Errorf("%d reads, want 2", n)
	}
}

package eventlog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/memory"
)

// A fork with a missing or too short parent is unreadable, and appends to it fail. A
// retry of a stored append succeeds.
func TestAppendToAnOrphan(t *testing.T) {
	for _, own := range []int{1, 63, 64, 200} { // events of the fork itself
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d events, cut %v", own, cut), func(t *testing.T) {
				whole, broken := memory.New(), memory.New()
				log := testkit.Open(t, whole)
				head, err := log.Append(t.Context(), "parent", eventlog.New(), event.UserMessage("1"), event.UserMessage("2"))
				if err == nil {
					_, err = testkit.Fork(t.Context(), log, "child", "parent", head.Seq)
				}
				var last event.Event
				var before event.Head
				for range own - 1 {
					if err == nil {
						before, err = log.Head(t.Context(), "child")
					}
					last = event.UserMessage("3")
					if err == nil {
						_, err = log.Append(t.Context(), "child", eventlog.Any(), last)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				want := eventlog.ErrNotFound
				if carry(t, whole, broken, "child", 1<<40); cut {
					carry(t, whole, broken, "parent", 1)
					want = eventlog.ErrCorrupt
				}
				log = testkit.Open(t, broken)
				if _, err := log.Append(t.Context(), "child", eventlog.Any(), event.UserMessage("4")); !errors.Is(err, want) {
					t.Errorf("appended: %v", err)
				}
				if own > 1 {
					if _, err := log.Append(t.Context(), "child", eventlog.At(before), last); err != nil {
						t.Errorf("what stands: %v", err)
					}
				}
				carry(t, whole, broken, "parent", 2)
				log = testkit.Open(t, broken)
				if _, err := log.Append(t.Context(), "child", eventlog.Any(), event.UserMessage("4")); err != nil {
					t.Errorf("appended to a fork that is whole again: %v", err)
				}
			})
		}
	}
}

// carry brings the first events of a session into another store, as far as that
// lacks them.
func carry(t *testing.T, from, to eventlog.Store, session string, most int64) {
	t.Helper()
	var head event.Head
	for e, err := range to.Read(t.Context(), session, eventlog.Span{Backward: true, Limit: 1}) {
		if err == nil {
			head = e.Head()
		}
	}
	for e, err := range from.Read(t.Context(), session, eventlog.Span{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq <= head.Seq || e.Seq > most {
			continue
		}
		if err := to.Append(t.Context(), session, head, []event.Event{e}, false); err != nil {
			t.Fatal(err)
		}
		head = e.Head()
	}
}

package eventlog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/storetest"
)

// A fork whose parent is gone, or ends before the fork point, cannot be read, and
// nothing is appended to it; a retry of what stands is told so.
func TestAppendToAnOrphan(t *testing.T) {
	for _, own := range []int{1, 63, 64, 200} { // events of the fork itself
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d events, cut %v", own, cut), func(t *testing.T) {
				whole, broken := storetest.NewMemory(), storetest.NewMemory()
				log := openLog(t, whole)
				b := busy{t: t, log: log, acked: map[string]eventlog.Head{}}
				head, err := log.Append(t.Context(), "parent", eventlog.New, userSays(t, "1"), userSays(t, "2"))
				if err == nil {
					err = b.fork(t.Context(), "child", "parent", head)
				}
				var last eventlog.Event
				var before eventlog.Head
				for range own - 1 {
					if err == nil {
						before, err = log.Head(t.Context(), "child")
					}
					last = userSays(t, "3")
					if err == nil {
						_, err = log.Append(t.Context(), "child", eventlog.Any, last)
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
				log = openLog(t, broken)
				if _, err := log.Append(t.Context(), "child", eventlog.Any, userSays(t, "4")); !errors.Is(err, want) {
					t.Errorf("appended: %v", err)
				}
				if own > 1 {
					if _, err := log.Append(t.Context(), "child", eventlog.At(before), last); err != nil {
						t.Errorf("what stands: %v", err)
					}
				}
				carry(t, whole, broken, "parent", 2)
				log = openLog(t, broken)
				if _, err := log.Append(t.Context(), "child", eventlog.Any, userSays(t, "4")); err != nil {
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
	var head eventlog.Head
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
		if err := to.Append(t.Context(), session, head, []eventlog.Event{e}, false); err != nil {
			t.Fatal(err)
		}
		head = e.Head()
	}
}

package sessions

import (
	"fmt"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/store/memory"
)

// A record is compared with as few of the new sessions of a day, however many there are.
func TestOwnersOfNewSessions(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	var compared []int
	for _, n := range []int{10, 1000} {
		ctx := importrun.WithShared(t.Context())
		log := eventlog.Open(memory.New())
		var all []*Session
		for i := range n {
			s, err := Open(ctx, log, fmt.Sprint("s", i), func(*event.Event) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			s.Program, s.Format = "test", "test"
			s.Add(Key{Own: fmt.Sprint("own", i)}, at, event.UserMessage("hello"))
			all = append(all, s)
		}
		x, most := all[0].owners, 0
		find := func(own, want string, at time.Time) {
			t.Helper()
			c, err := x.find(ctx, "test", Key{Own: own}, at, true)
			if err != nil || c.Session != want {
				t.Errorf("record %q is of %q, not of %q: %v", own, c.Session, want, err)
			}
			most = max(most, len(x.candidates(Key{Own: own}, at, false)))
		}
		for i := range n {
			find(fmt.Sprint("own", i), fmt.Sprint("s", i), at)
		}
		find("own of no session", "", at)
		find("own0", "", at.Add(24*time.Hour))
		compared = append(compared, most)

		// Of two sessions with one own id, the second owns the record if the first was not stored.
		all[1].Add(Key{Own: "own0"}, at, event.UserMessage("again"))
		find("own0", "s0", at)
		all[0].forget(all[0].pending)
		find("own0", "s1", at)
		all[1].forget(all[1].pending)
		find("own0", "", at)
	}
	if compared[0] > 2 || compared[1] > 2 {
		t.Errorf("compared with %d of 10 sessions, and %d of 1,000", compared[0], compared[1])
	}
}

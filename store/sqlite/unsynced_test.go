package sqlite

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// An append that needs no sync is not synced, whatever the policy. The next commit has the
// level that it asks for, and syncs all commits before it.
func TestUnsyncedAppend(t *testing.T) {
	for _, policy := range []Options{{}, {SyncAtCheckpoint: true}, {NoSync: true}} {
		s := New(tempPath(t), policy)
		head := event.Head{}
		for _, c := range []struct {
			unsynced, durable bool
			want              syncLevel
		}{{want: policy.level()}, {unsynced: true, want: max(atCheckpoint, policy.level())}, {durable: true, want: always},
			{unsynced: true, want: max(atCheckpoint, policy.level())}, {want: policy.level()}} {
			events := eventChain("a", head, 1, "x")
			must(t, s.Append(engine.SetUnsynced(t.Context(), c.unsynced), "a", head, events, c.durable))
			head = events[0].Head()
			if s.writer.level != c.want {
				t.Errorf("%+v: %+v is at level %d", policy, c, s.writer.level)
			}
			if loose := s.writer.unsyncedCommits; loose != (c.want != always) {
				t.Errorf("%+v: after %+v there are unsynced commits: %v", policy, c, loose)
			}
		}
		must(t, s.Close())
	}
}

package jetstream

import (
	"context"

	"github.com/convlog/convlog/eventlog"
)

// Retained implements eventlog.Retainer. The files of the streams themselves are
// overwritten.
func (s *Store) Retained(ctx context.Context) ([]eventlog.Retained, error) {
	l, err := s.reading(ctx)
	if l == nil || err != nil {
		return nil, wrap("find what keeps erased bytes", err)
	}
	var places []eventlog.Retained
	if !s.options.Synced {
		places = append(places, eventlog.Retained{
			Where:  "the files of servers that lose their power before they sync, by default every two minutes",
			Remedy: "check the erasure after a loss of power; run the servers with sync_interval: always and set synced=true",
		})
	}
	for _, st := range l.all() {
		if st.replicas > 1 {
			places = append(places, eventlog.Retained{
				Where:  "the Raft logs of the streams, on each server",
				Remedy: "wait until the servers have compacted them; a server does so minutes after the last message, while it runs",
			})
			break
		}
	}
	return append(places,
		eventlog.Retained{Where: "mirrors of the streams", Remedy: "delete the same messages there"},
		eventlog.Retained{Where: "backups of the streams and of the servers' disks", Remedy: "make new ones, then delete the old ones"}), nil
}

package postgres

import (
	"context"

	"github.com/convlog/convlog/eventlog"
)

// findKeepers finds what keeps erased bytes besides the tables. A user without rights sees
// the standbys too.
const findKeepers = `SELECT current_setting('archive_mode') <> 'off', (SELECT count(*) FROM pg_stat_replication),
	EXISTS (SELECT FROM pg_replication_slots)`

// Retained implements eventlog.Retainer.
func (s *Store) Retained(ctx context.Context) ([]eventlog.Retained, error) {
	var archived, slots bool
	var standbys int
	if _, err := s.one(ctx, []any{&archived, &standbys, &slots}, findKeepers); err != nil {
		return nil, wrap("find what keeps erased bytes", err)
	}
	places := []eventlog.Retained{
		{Where: "the free space of the pages of the tables", Remedy: "run VACUUM FULL on the tables of schema " + s.schema},
		{Where: "the write-ahead log of the server", Remedy: "run SELECT pg_switch_wal() and CHECKPOINT; with wal_recycle=off the server then deletes the old segments"},
	}
	if archived {
		places = append(places, eventlog.Retained{Where: "the archive of the write-ahead log", Remedy: "make a new base backup, then delete the older segments and backups"})
	}
	if slots {
		places = append(places, eventlog.Retained{Where: "the segments that replication slots keep", Remedy: "drop unused slots with pg_drop_replication_slot"})
	}
	if standbys > 0 {
		places = append(places, eventlog.Retained{Where: "the standby servers", Remedy: "wait until they have replayed the erasure (pg_stat_replication), then run CHECKPOINT on each"})
	}
	return append(places, eventlog.Retained{Where: "backups and dumps of the server", Remedy: "make new ones, then delete the old ones"}), nil
}

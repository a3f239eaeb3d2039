package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
)

// Snapshots are found by the index: as many rows are read in a long session as in a short one.
func TestSnapshotsAreFoundByAnIndex(t *testing.T) {
	dsn := pgtest.DSN(t)
	_, schema, err := pgtest.Split(dsn)
	if err != nil {
		t.Fatal(err)
	}
	dsn = with(t, dsn, "application_name", schema) // for closeLog
	const marks = 10
	var reads []int64
	for _, events := range []int{1000, testsize.Pick(4_000, 10_000, 100_000)} {
		log, session := openLog(t, dsn), fmt.Sprint(events)
		for i := range marks {
			notes := make([]event.Event, events/marks)
			for i := range notes {
				notes[i] = event.UserMessage("hello")
			}
			notes = append(notes, event.New(event.Snapshot{Projection: "p", Version: 1, SnapshotID: fmt.Sprint(i), Trigger: "manual"}))
			for part := range slices.Chunk(notes, 1000) {
				if _, err := log.Append(t.Context(), session, eventlog.Any(), part...); err != nil {
					t.Fatal(err)
				}
			}
		}
		closeLog(t, dsn, log)
		before := rowsRead(t, dsn)
		log = openLog(t, dsn)
		if _, err := projection.Find(t.Context(), log, session, "0"); err != nil {
			t.Fatal(err)
		}
		closeLog(t, dsn, log)
		reads = append(reads, rowsRead(t, dsn)-before)
	}
	if reads[0] < marks || reads[1] > 2*reads[0] {
		t.Errorf("read %d rows in a session of 1,000 events, and %d in the long one", reads[0], reads[1])
	}
}

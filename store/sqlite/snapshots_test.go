package sqlite

import (
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/verify"
)

// addSnapshots appends a mark, a head_moved event and a mark after each of so many events.
func addSnapshots(t *testing.T, log *eventlog.Log, session string, marks, gap int) {
	t.Helper()
	for i := range marks {
		must(t, log.Store().Append(t.Context(), session, headIn(t, log, session), eventChain(session, headIn(t, log, session), gap, "x"), false))
		for j := range 2 {
			head := headIn(t, log, session)
			mark := event.Snapshot{Projection: "p", Version: 1, SnapshotID: fmt.Sprintf("%s-%d-%d", session, i, j), Trigger: "manual", Seq: head.Seq, Hash: head.Hash}
			moved, err := log.Append(t.Context(), session, eventlog.At(head), event.New(mark))
			must(t, err)
			if j == 0 {
				_, err = log.Append(t.Context(), session, eventlog.At(moved), event.New(event.HeadMove{To: head.Seq}))
				must(t, err)
			}
		}
	}
}

func headIn(t *testing.T, log *eventlog.Log, session string) event.Head {
	t.Helper()
	head, err := log.Head(t.Context(), session)
	if session != "" && err != nil {
		want(t, eventlog.ErrNotFound, err)
	}
	return head
}

// Snapshots are found by the index: the rows that a search for them reads depend on the snapshots
// and rewinds only, in a session, in a fork, and for a fork at a snapshot.
func TestSnapshotsAreFoundByAnIndex(t *testing.T) {
	const marks = 40
	read := func(events int) (rows [3]int) {
		s := open(t, tempPath(t), Options{NoSync: true})
		log := eventlog.Open(s)
		addSnapshots(t, log, "a", marks, events/marks)
		_, err := fork.At(t.Context(), log, "a", fork.Head(), fork.Options{ID: "f"})
		must(t, err)
		byIndex := countQueries(t, s, readSnapshots)
		others := []*countedStmt{countQueries(t, s, readForward), countQueries(t, s, readBackward)}
		for i, find := range []func(){
			func() {
				_, err := projection.Find(t.Context(), log, "f", "a-0-1") // the oldest
				must(t, err)
			},
			func() {
				found := 0
				for _, err := range projection.Snapshots(t.Context(), log, "a", true) {
					must(t, err)
					found++
				}
				if found != 2*marks {
					t.Errorf("%d snapshots, want %d", found, 2*marks)
				}
			},
			func() {
				_, err := fork.Resolve(t.Context(), log, "a", fork.AtSnapshot("a-1-0"))
				must(t, err)
			},
		} {
			before := byIndex.rows + others[0].rows + others[1].rows
			find()
			rows[i] = byIndex.rows + others[0].rows + others[1].rows - before
		}
		if byIndex.rows < 3*3*marks-10 {
			t.Errorf("the index gave %d rows", byIndex.rows)
		}
		return rows
	}
	few, many := read(1000), read(testsize.Pick(5_000, 20_000, 100_000))
	if few != many {
		t.Errorf("rows read: %v in a session of 1,000 events, %v in the long one", few, many)
	}
}

// Verify names the snapshots that the index lacks.
func TestVerifyComparesTheIndexOfSnapshots(t *testing.T) {
	path := tempPath(t)
	log := eventlog.Open(New(path, Options{NoSync: true}))
	addSnapshots(t, log, "a", 2, 3) // snapshots 4, 6, 10, 12, and head_moved 5 and 11
	must(t, log.Close())
	makeDatabase(t, path, "UPDATE events SET type = 'x' WHERE seq IN (4, 11)")
	log = eventlog.Open(open(t, path))
	report, err := verify.Session(t.Context(), log, "a")
	must(t, err)
	if len(report.Defects) != 2 || report.Defects[0].Seq != 11 || report.Defects[1].Seq != 4 || report.Defects[0].Rule != "index" {
		t.Errorf("defects %v", report.Defects)
	}
}

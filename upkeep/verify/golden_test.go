package verify_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
)

const goldens = "../../testdata/golden"

// TestGoldensAreSound opens the golden logs with today's code, for reading only.
func TestGoldensAreSound(t *testing.T) {
	events := map[string]int64{}
	for session, report := range verifyAll(t, goldens) {
		for _, d := range report.Defects {
			t.Errorf("%s: %v", session, d)
		}
		events[session] = report.Events
	}
	for session, want := range map[string]int64{"basic": 9, "batch": 7, "cut": 3, "torn": 1, "spilled": 4, "redacted": 6, "bodies": 9,
		"parent": 4, "child": 2, "grandchild": 2, "sibling": 1, "unknown": 5, "numbers": 2, "..": 2, ".hidden": 2, "UPPER": 2, "nul.txt": 2} {
		if events[session] != want {
			t.Errorf("%q holds %d events, want %d", session, events[session], want)
		}
	}
	if len(events) != 20 {
		t.Errorf("there are %d sessions, want 20: %q", len(events), slices.Sorted(maps.Keys(events)))
	}
}

// verifyAll verifies every session of a folder. A session that cannot even be
// listed has its error for a defect.
func verifyAll(t *testing.T, dir string) map[string]verify.Report {
	t.Helper()
	log := eventlog.Open(suite.OverwritingSalvager{Overwriting: suite.Overwriting{Store: jsonl.New(dir, jsonl.Options{ReadOnly: true})}})
	defer log.Close()
	sessions := map[string]bool{}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		sessions[info.ID] = true
	}
	for torn, err := range verify.TornTails(t.Context(), log) {
		if err != nil {
			t.Fatal(err)
		}
		sessions[torn.Session] = true
	}
	reports := map[string]verify.Report{}
	for id := range sessions {
		report, err := verify.Session(t.Context(), log, id)
		if err != nil {
			report.Defects = append(report.Defects, eventlog.Defect{Session: id, Detail: err.Error()})
		}
		reports[id] = report
	}
	return reports
}

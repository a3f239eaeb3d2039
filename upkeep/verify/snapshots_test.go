package verify_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/verify"
)

// A snapshot that a replay contradicts is a defect that names it.
func TestVerifyNamesASnapshotThatLies(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	head, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello"))
	if err != nil {
		t.Fatal(err)
	}
	lie := event.New(event.Snapshot{Projection: "session", Version: 1, SnapshotID: "by hand", Seq: 1, Hash: head.Hash,
		State: []byte(`{"info":{"version":1,"state":{"title":"another"}}}`)})
	if _, err := log.Append(t.Context(), "s", eventlog.At(head), lie); err != nil {
		t.Fatal(err)
	}
	report, err := verify.Session(t.Context(), log, "s")
	if err != nil || len(report.Defects) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	want := eventlog.Defect{Session: "s", Seq: 2, Offset: -1, Rule: verify.RuleSnapshot,
		Detail: "info of session snapshot by hand to event 1: state differs from a replay"}
	if report.Defects[0] != want || report.Checked != 1 {
		t.Errorf("found %+v of %d, want %+v", report.Defects[0], report.Checked, want)
	}
}

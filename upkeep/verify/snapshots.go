package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// checkSnapshots compares snapshots with a replay, unless damage prevents a replay.
// Damage of a parent is reported with the parent.
func (v *Verifier) checkSnapshots(ctx context.Context, report *Report) {
	if report.Snapshots == 0 || slices.ContainsFunc(report.Defects, func(d eventlog.Defect) bool { return d.Rule != ruleBlob }) {
		return
	}
	found, err := projection.VerifySnapshots(ctx, v.log, report.Session)
	if err != nil && report.Damaged() == 0 {
		report.addNote(eventlog.Defect{Session: report.Session, Offset: -1, Rule: RuleSnapshot, Detail: err.Error()})
	}
	report.Checked = found.Checked
	for _, n := range found.Skipped {
		report.Skipped += n
	}
	for _, f := range found.Findings {
		d := snapshotDefect(f)
		switch {
		case f.Mark:
			report.addNote(d)
		case !slices.ContainsFunc(report.Defects, func(o eventlog.Defect) bool { return o.Rule == ruleBlob && o.Seq == d.Seq }):
			report.addDefect(d)
		}
	}
}

func snapshotDefect(f projection.SnapshotProblem) eventlog.Defect {
	what := f.Snapshot.Projection
	if f.Part != "" && f.Part != what {
		what = f.Part + " of " + what
	}
	if what != "" {
		what += " "
	}
	return eventlog.Defect{
		Session: f.Session, Seq: f.Snapshot.Seq, Offset: -1, Rule: RuleSnapshot,
		Detail: fmt.Sprintf("%ssnapshot %s to event %d: %v", what, f.Snapshot.ID, f.Snapshot.Covers, f.Err),
	}
}

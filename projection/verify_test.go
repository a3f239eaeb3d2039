package projection_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/projection"
)

// traceParts are the projections that the snapshots of gardens are of.
var traceParts = allTraces.Parts

// verified verifies the snapshots of a session of a garden.
func (g *garden) verified(name string) projection.SnapshotReport {
	g.t.Helper()
	report, err := projection.VerifySnapshots(bg, g.log, name, traceParts...)
	g.allow(err)
	return report
}

// Whatever was done to a session, the snapshots that were taken of it are what a
// replay gives.
func TestSnapshotsAreWhatAReplayGives(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		for _, name := range g.names {
			if report := g.verified(name); len(report.Findings) > 0 {
				r.Fatalf("%s: %v", name, report.Findings)
			}
		}
	})
}

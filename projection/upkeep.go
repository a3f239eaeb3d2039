package projection

import "github.com/convlog/convlog/event"

// isUpkeep reports whether an event belongs to the log's own housekeeping. Such
// events say nothing about the conversation and may come and go.
func isUpkeep(e *event.Event) bool {
	switch e.Type.Name() {
	case event.ProjectionSnapshotted, event.Redacted, event.AccountingFlushed:
		return true
	}
	return false
}

// noDigest is the Digest of a projection whose state is not content.
func noDigest[S any](*S) (event.Digest, error) { return "", nil }
